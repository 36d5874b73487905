"""The other end of the link: counters and settings of switches, queried over the network in a process of its own.

`systems/` has one folder per operating system: `requests.py` queries the switch through a client (JSON over HTTPS, gNMI, Redis),
and `read.py` is a pure function from the replies to readings. `probe` decides who may be queried, when and for how long. The
catalogue gives the readings their meaning, as it does for hosts.
"""
