"""gRPC, set to print nothing: its C core writes failed handshakes to standard error, which are faults of sources here."""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC reads it when it is imported

import grpc
import grpc.aio

__all__ = ["grpc"]
