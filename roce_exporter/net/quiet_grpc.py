"""gRPC, set to print nothing: its C core writes failed handshakes to standard error, which are faults of sources here."""

from __future__ import annotations

import os
from functools import cache

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC reads it when it is imported

import grpc
import grpc.aio

__all__ = ["grpc", "start_grpc"]


@cache
def start_grpc() -> None:
    """Start gRPC's thread, and keep it: else every first channel starts one on the event loop, without a limit, and the last ends it."""
    grpc.aio.init_grpc_aio()
