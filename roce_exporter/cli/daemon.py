"""What commands that serve until they are stopped have in common: signals, the web config file, notifications to systemd (sd_notify(3))."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from roce_exporter.web.web_config_file import WebConfigFile

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"


def stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def web_config_of(options: argparse.Namespace) -> WebConfigFile | None:
    """The file of `--web.config.file`; None without it. Raises DocumentError: the file is invalid."""
    if not options.web_config_file:
        return None
    from roce_exporter.web.web_config_file import WebConfigFile  # noqa: PLC0415 - rarely used, and YAML is slow to import

    return WebConfigFile(options.web_config_file)


def watchdog_interval() -> float | None:
    """Seconds between two watchdog notifications, half of systemd's limit (sd_watchdog_enabled(3)); None without a watchdog."""
    limit, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not limit.isdecimal() or int(limit) == 0 or process not in ("", str(os.getpid())):
        return None
    return int(limit) / 2e6


def notify(state: str) -> bool:
    """Notify systemd: one datagram to the socket in NOTIFY_SOCKET. Returns whether the notification was sent. Errors are ignored: only systemd is affected."""
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
