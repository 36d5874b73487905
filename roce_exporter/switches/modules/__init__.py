"""One file per operating system of switches: its queries, and a pure function from the replies to readings."""
