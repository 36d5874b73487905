"""I/O with switches: one file per protocol. A door sends reading requests only, and never interprets a reply."""
