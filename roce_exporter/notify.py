"""Readiness and stopping told to systemd (sd_notify(3)): one datagram to the socket that NOTIFY_SOCKET names."""

from __future__ import annotations

import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str) -> bool:
    """Tell systemd; returns whether there was anyone to tell. A failure is nobody's problem but systemd's."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    name = "\0" + address[1:] if address[0] == "@" else address
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
    ):
        sock.connect(name)
        sock.sendall(state.encode())
        return True
    return False
