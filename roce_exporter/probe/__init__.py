"""Active probes between RoCE ports: whether the peer answers, which path loses, and whether the class survives.

Counters speak only of traffic that exists. A probe is a UDP packet of STAMP (RFC 8762) with the DSCP of RoCE, answered by the same
command on the other host; kernel timestamps at both ends separate the network from the hosts. It is a command of its own: `serve`
opens no UDP port and sends nothing.
"""
