"""A real redis-server with the tables of the simulated switch, for tests from end to end."""

import contextlib
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from servers import Running
from sonic_redis import RedisServer, need_redis

from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.simulated.simulated_switch import (
    DATABASE_NUMBERS,
    Databases,
    SimulatedSwitch,
    simulate_switch,
)
from roce_exporter.view.host_view import HostClock

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


def began(running: Running, scenario: str, seed: int) -> float:
    """When the scenario of a simulated host began, by the monotonic clock: by what its first port has sent since."""
    sent = re.compile(r'^roce_port_transmit_bytes_total{device="mlx5_0",port="1"} (\S+)', re.MULTILINE)
    seen, now = float(sent.search(running.get().decode())[1]), time.monotonic()  # type: ignore[index]
    clock = HostClock()
    kernel = simulate(scenario, clock=clock, vendors=PORTS, seed=seed)
    while 4 * int(kernel.text("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data")) < seen:
        clock.now += 0.1
    return now - clock.now


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
def sonic_server(
    scenario: str, *, seed: int = 1, at: float | None = None, start: float | None = None
) -> Iterator[Path]:
    """A redis-server whose tables are those of the simulated switch, written every half second; its unix socket.

    With `at` the tables are those of this number of seconds after the start of the scenario, and do not change. `start` is when the
    scenario began, by the monotonic clock: now, unless given.
    """
    began = time.monotonic() if start is None else start
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
