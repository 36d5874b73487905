"""The other end of the link: counters and settings of switches, queried over the network in a process of its own.

`doors/` does the I/O (Redis, gNMI, HTTPS) and nothing else. `modules/` has one file per operating system: which queries
it sends through a door, and a pure function from the replies to readings. `probe` decides who may be queried, when and for how
long. The catalogue gives the readings their meaning, as it does for hosts.
"""
