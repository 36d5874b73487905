"""A real Redis with the databases of a recorded SONiC switch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ports import free_port
from redis import Redis
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDINGS = Path(__file__).parent / "recordings"
DATABASES = {"appl_db": 0, "counters_db": 2, "config_db": 4, "state_db": 6}

Tables = dict[str, dict[str, dict[str, str]]]
"""Database, key, field."""


def recorded(name: str) -> Tables:
    """The databases of a recorded namespace: `switch-sonic`, `switch-sonic-asics/asic0`."""
    place = RECORDINGS / name
    return {path.stem: json.loads(path.read_text()) for path in sorted(place.glob("*_db.json"))}


def need_redis() -> None:
    """Skip, and name what is missing; in CI fail."""
    if shutil.which("redis-server") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("redis-server is not installed")


@dataclass
class RedisServer:
    """A redis-server of its own in a folder, by a unix socket and a port of loopback, without persistence."""

    place: Path
    flags: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        return str(self.place / "redis.sock")

    def start(self) -> RedisServer:
        self.place.mkdir(exist_ok=True)
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", self.socket]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self.place), *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with Redis(unix_socket_path=self.socket) as client:
                    client.ping()
            except RedisError as error:
                if "NOAUTH" in str(error) or "Authentication" in str(error):
                    return self
                time.sleep(0.02)
            else:
                return self
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def client(self, number: int = 0, **options: Any) -> Redis:
        return Redis(unix_socket_path=self.socket, db=number, decode_responses=True, **options)

    def load(self, tables: Mapping[str, Mapping[str, Mapping[str, str]]], **options: Any) -> None:
        """Replace what the databases hold."""
        for name, rows in tables.items():
            with self.client(DATABASES[name], **options) as client, client.pipeline(transaction=False) as pipeline:
                pipeline.flushdb()
                for key, fields in rows.items():
                    if fields:
                        pipeline.hset(key, mapping=dict(fields))
                pipeline.execute()
