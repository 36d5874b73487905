"""Ports of loopback for the servers of the tests: each worker of pytest-xdist has a range of its own."""

from __future__ import annotations

import itertools
import os
import socket

FIRST = 12_000
PER_WORKER = 1_000
WORKERS = 20
"""The ranges end at 31,999: the kernel gives ports from 32,768 to clients, and to servers that leave the choice to it."""

_number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
_offsets = itertools.count(os.getpid())  # another run on this machine begins elsewhere


def free_port() -> int:
    """A port that no server uses and that no other test of this run gets."""
    for offset in itertools.islice(_offsets, PER_WORKER):
        port = FIRST + _number * PER_WORKER + offset % PER_WORKER
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError(f"all {PER_WORKER} ports of this worker are in use")
