"""One SONiC switch over both its doors: a real Redis with the recorded databases, and a gNMI server that replies from them."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from gnmi_switch import gnmi_switch
from ports import free_port
from recorded import files
from redis.asyncio import Redis
from sonic_gnmi_replies import reply

from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.module import Visit
from roce_exporter.switches.modules import sonic, sonic_gnmi
from roce_exporter.switches.targets import Login, Route, SwitchTarget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from roce_exporter.switches.readings import SwitchReadings

REDIS_SERVER = shutil.which("redis-server")
DATABASES = json.loads(files("switch-sonic-gnmi")["databases.json"])
NUMBERS = {"APPL_DB": 0, "COUNTERS_DB": 2, "CONFIG_DB": 4, "STATE_DB": 6}

pytestmark = pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is missing: apt-get install redis-server"
)


@asynccontextmanager
async def redis_of_the_switch(folder: Path) -> AsyncIterator[int]:
    """The port of a Redis that holds the databases."""
    port = free_port()
    flags = (
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(folder),
        "--daemonize",
        "no",
    )
    assert REDIS_SERVER
    server = await asyncio.create_subprocess_exec(REDIS_SERVER, *flags, stdout=asyncio.subprocess.PIPE)
    assert server.stdout
    try:
        async for line in server.stdout:
            if b"Ready to accept connections" in line:
                break
        for name, hashes in DATABASES.items():
            async with Redis(port=port, db=NUMBERS[name]) as client:
                for key, fields in hashes.items():
                    await client.hset(key, mapping=fields)
        yield port
    finally:
        server.terminate()
        await server.communicate()


def series(found: SwitchReadings) -> dict[object, object]:
    return dict(zip(*Interpreter("sonic").samples("leaf2", found), strict=True))


@pytest.mark.parametrize("priorities", ["pfc", "all"])
async def test_both_doors_give_the_same_series(tmp_path: Path, priorities: str) -> None:
    async with (
        redis_of_the_switch(tmp_path) as port,
        gnmi_switch(lambda asked: reply(asked, DATABASES), tmp_path) as switch,
    ):
        target = SwitchTarget("leaf2", "sonic", "redis", "127.0.0.1", {"redis": port}, priorities=priorities)
        deadline = asyncio.get_running_loop().time() + 20
        direct = await sonic.query(Visit(target, Route("127.0.0.1"), Login(), deadline))
        over = await sonic_gnmi.query(switch.visit(priorities=priorities, seconds=20))
    assert direct.faults == over.faults == {}
    from_redis, from_gnmi = sonic.read(direct, target), sonic_gnmi.read(over, target)
    assert len(series(from_redis)) > 50
    assert series(from_gnmi) == series(from_redis)
    assert from_gnmi.name == from_redis.name == "leaf2"
    assert from_gnmi.sources == from_redis.sources
