"""Prometheus exporter for the health of RDMA over Converged Ethernet (RoCE)."""

__version__ = "0.1.0"
