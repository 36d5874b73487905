"""Readiness, watchdog and stop notifications to systemd (sd_notify(3)): one datagram each to the socket in NOTIFY_SOCKET."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"


def watchdog_interval() -> float | None:
    """Seconds between two watchdog notifications, half of systemd's limit (sd_watchdog_enabled(3)); None without a watchdog."""
    patience, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not patience.isdecimal() or int(patience) == 0 or process not in ("", str(os.getpid())):
        return None
    return int(patience) / 2e6


def notify(state: str) -> bool:
    """Notify systemd; returns whether the notification was sent. Errors are ignored: only systemd is affected."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    name = "\0" + address[1:] if address[0] == "@" else address
    with (
        contextlib.suppress(OSError),
        # Non-blocking: a systemd that does not read must not block the event loop.
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as sock,
    ):
        sock.connect(name)
        sock.sendall(state.encode())
        return True
    return False


async def report_alive(interval: float | None) -> None:
    """Notify the watchdog from the event loop, which serves requests: systemd restarts a daemon whose loop hangs."""
    while interval:
        notify(ALIVE)
        await asyncio.sleep(interval)
