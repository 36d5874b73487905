"""A running exporter that notifies a fake systemd."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass
class Daemon:
    """A process, its address, and the notifications that it has sent."""

    process: subprocess.Popen[bytes]
    port: int
    supervisor: socket.socket
    told: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def hear(self) -> str:
        """The next notification.

        Raises:
            TimeoutError: no notification for two minutes.
        """
        self.told.append(self.supervisor.recv(4096).decode())
        return self.told[-1]

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    action: str = "serve",
) -> Iterator[Daemon]:
    """The daemon that a command starts; the action, its address and the flags are added."""
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(
            ""
        )  # an abstract name chosen by the kernel: accessible from every user and mount namespace
        supervisor.settimeout(120)
        told = {"NOTIFY_SOCKET": "@" + supervisor.getsockname()[1:].decode(), **(environment or {})}
        process = subprocess.Popen(
            [*command, action, f"--web.listen-address=127.0.0.1:{port}", *flags], env={**os.environ, **told}
        )
        try:
            yield Daemon(process, port, supervisor)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
