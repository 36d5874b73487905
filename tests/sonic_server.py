"""A real redis-server with the tables of the simulated switch, for tests from end to end."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from sonic_redis import RedisServer, need_redis

from roce_exporter.host.simulated.simulated_switch import (
    DATABASE_NUMBERS,
    Databases,
    SimulatedSwitch,
    simulate_switch,
)

PORTS = ("mlx5",) * 4
"""Those of a simulated host without flags."""


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a socket; those of pytest can be too long."""
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        yield Path(folder)


@contextlib.contextmanager
def redis_server() -> Iterator[Path]:
    """An empty redis-server: its unix socket."""
    need_redis()
    with short_folder() as folder:
        server = RedisServer(folder).start()
        try:
            yield Path(server.socket)
        finally:
            server.stop()


def load_tables(socket: Path, databases: Databases) -> None:
    """Replace everything in the server by these tables, each database at once."""
    for name, tables in databases.items():
        with (
            redis.Redis(unix_socket_path=str(socket), db=DATABASE_NUMBERS[name]) as client,
            client.pipeline(transaction=True) as pipeline,
        ):
            pipeline.flushdb()
            for key, fields in tables.items():
                pipeline.hset(key, mapping=fields)
            pipeline.execute()


@contextlib.contextmanager
def sonic_server(scenario: str, *, seed: int = 1, at: float | None = None) -> Iterator[Path]:
    """A redis-server whose tables are those of the simulated switch, written every half second; its unix socket.

    With `at` the tables are those of this number of seconds after the start of the scenario, and do not change.
    """
    began = time.monotonic()
    leaf = simulate_switch(scenario, start=began, vendors=PORTS, seed=seed)
    with redis_server() as socket:
        load_tables(socket, leaf.databases(began + (at or 0.0)))
        with contextlib.nullcontext() if at is not None else _written_on(socket, leaf):
            yield socket


@contextlib.contextmanager
def _written_on(socket: Path, leaf: SimulatedSwitch) -> Iterator[None]:
    end = threading.Event()

    def write() -> None:
        while not end.wait(0.5):
            # A test may have ended the server.
            with contextlib.suppress(redis.RedisError):
                load_tables(socket, leaf.databases(time.monotonic()))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
