"""Clients of the network: HTTP and gRPC."""
