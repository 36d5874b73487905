"""A real Redis with the databases of a recorded SONiC switch."""

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from recorded import files
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError
from tools import need
from waiting import wait_until

from roce_exporter.net.login import Login
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.readings import ProbeReply, ProbeRequest, SwitchReadings
from roce_exporter.switches.systems.sonic import redis_requests as sonic
from roce_exporter.switches.systems.sonic.keys import NAME_MAPS, WATERMARK_TABLES, names_of
from roce_exporter.switches.systems.sonic.tables import SonicTables, SonicWatermarks
from roce_exporter.switches.targets import Route, SwitchTarget

NO_LOGIN = Login()
DATABASES = {"appl_db": 0, "counters_db": 2, "config_db": 4, "state_db": 6}

Tables = dict[str, dict[str, dict[str, str]]]
"""Database, key, field."""


def recorded(name: str) -> Tables:
    """The databases of a recorded namespace: `switch-sonic`, `switch-sonic-asics/asic0`."""
    host, _, namespace = name.partition("/")
    kept = re.compile(rf"{namespace and namespace + '/'}(\w+_db)\.json")
    return {
        found[1]: json.loads(text) for path, text in files(host).items() if (found := kept.fullmatch(path))
    }


def as_tables(databases: Tables) -> SonicTables:
    """The tables as they are read over Redis, without Redis: by object identifier, all of them."""
    named = {name.lower(): hashes for name, hashes in databases.items()}
    counters, appl = named["counters_db"], named["appl_db"]
    names = names_of([counters.get(name, {}) for name in NAME_MAPS])

    def hashes(table: str, objects: Any) -> dict[Any, dict[str, str]]:
        return {name: counters.get(f"{table}:{oid}", {}) for oid, name in objects.items()}

    def of_ports(hashes: Mapping[str, dict[str, str]], *tables: str) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for key, row in hashes.items():
            table, _, port = key.replace("|", ":", 1).partition(":")
            if table in tables:
                found.setdefault(port, {}).update(row)
        return found

    links = of_ports(appl, "PORT_TABLE")
    for port, row in of_ports(named["state_db"], "PORT_OPERR_TABLE").items():
        links.get(port, {}).update(row)
    for oid, port in names.ports.items():
        links.get(port, {}).update(counters.get(f"RATES:{oid}", {}))
    return SonicTables(
        port_counters=hashes("COUNTERS", names.ports),
        queue_counters=hashes("COUNTERS", names.queues),
        priority_group_counters=hashes("COUNTERS", names.groups),
        watermarks={
            window: SonicWatermarks(
                hashes(table, names.queues), hashes(table, names.groups), hashes(table, names.pools)
            )
            for window, table in WATERMARK_TABLES.items()
        },
        configuration=named["config_db"]
        | {key: row for key, row in appl.items() if key.startswith("BUFFER_")},
        state=named["state_db"],
        links=links,
        transceivers=of_ports(
            named["state_db"], "TRANSCEIVER_DOM_SENSOR", "TRANSCEIVER_DOM_THRESHOLD", "TRANSCEIVER_INFO"
        ),
        voq_counters=hashes("COUNTERS", names.voqs),
        lldp={key: row for key, row in appl.items() if key.startswith("LLDP_")},
    )


def need_redis() -> None:
    """Skip, and name what is missing; in CI fail."""
    need("redis-server")


@dataclass
class RedisServer:
    """A redis-server of its own in a folder, by a unix socket, without persistence.

    `door` is the flag of a port of loopback that it has, too: `--port` or `--tls-port`.
    """

    place: Path
    flags: tuple[str, ...] = ()
    door: str = ""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        return str(self.place / "redis.sock")

    def start(self) -> Self:
        """Start it, and wait until it answers."""
        self.place.mkdir(exist_ok=True)
        command = ["redis-server", "--bind", "127.0.0.1", "--unixsocket", self.socket]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self.place), *self.flags]
        for _ in range(10):
            # A redis cannot let the kernel choose; it ends where another program got this port first.
            with socket.socket() as chosen:
                chosen.bind(("127.0.0.1", 0))
                self.port = chosen.getsockname()[1]
            doors = ["--port", "0"] if self.door != "--port" else []
            doors += [self.door, str(self.port)] if self.door else []
            self.process = subprocess.Popen([*command, *doors], stdout=subprocess.DEVNULL)
            wait_until(lambda: self._has_ended() or self._answers())
            if not self._has_ended():
                return self
        raise AssertionError("redis-server did not start")

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _answers(self) -> bool:
        try:
            with Redis(unix_socket_path=self.socket) as client:
                client.ping()
        except AuthenticationError:
            return True
        except RedisError:
            return False
        return True

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def client(self, number: int = 0, **options: Any) -> Redis:
        return Redis(unix_socket_path=self.socket, db=number, decode_responses=True, **options)

    def load(self, tables: Mapping[str, Mapping[str, Mapping[str, str]]], **options: Any) -> None:
        """Replace what the databases hold."""
        for name, rows in tables.items():
            with (
                self.client(DATABASES[name], **options) as client,
                client.pipeline(transaction=False) as pipeline,
            ):
                pipeline.flushdb()
                for key, fields in rows.items():
                    if fields:
                        pipeline.hset(key, mapping=dict(fields))
                pipeline.execute()


def target_of(host: str, scheme: str = "unix", **options: Any) -> SwitchTarget:
    """A target by its socket, or by its address with the port in `ports`."""
    return SwitchTarget(options.pop("name", "t"), "sonic", scheme, host, **{"ports": {}, **options})


async def query_switch(
    target: SwitchTarget, login: Login = NO_LOGIN, seconds: float = 60.0, *, record: bool = False
) -> tuple[ProbeReply, SwitchReadings]:
    """One round of queries, interpreted."""
    deadline = asyncio.get_running_loop().time() + seconds
    replies = await sonic.query(ProbeRequest(target, Route(target.host), login, deadline, record))
    return replies, sonic.read(replies, target)


def values(readings: SwitchReadings, name: str) -> dict[tuple[str, ...], Any]:
    """The values of one metric by its labels without the device, as the catalogue makes them."""
    samples = Interpreter("sonic").samples("d", readings)
    pairs = zip(samples.series, samples.values, strict=True)
    return {series.labels[1:]: value for series, value in pairs if series.row.name == name}
