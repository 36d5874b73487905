"""Clients of the network: HTTP and gRPC, their TLS and their credentials."""


class NetError(Exception):
    """A request that failed, or a reply that cannot be used: one line that says what is wrong, and the remedy if there is one.

    The line holds no credential and no part of a reply that could hold one.
    """
