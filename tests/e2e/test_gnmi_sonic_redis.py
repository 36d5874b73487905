"""One SONiC switch over both its doors: a real Redis with the recorded databases, and a gNMI server that replies from them."""

import json
from collections.abc import Iterator

import pytest
from gnmi_switch import gnmi_switch
from recorded import files
from sonic_gnmi_replies import reply
from sonic_redis import RedisServer, need_redis, query_switch, target_of

from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.readings import SwitchReadings
from roce_exporter.switches.systems.sonic import gnmi_requests as sonic_gnmi
from roce_exporter.switches.systems.sonic import redis_requests as sonic

DATABASES = json.loads(files("switch-sonic-gnmi")["databases.json"])


@pytest.fixture(scope="module")
def redis(tmp_path_factory) -> Iterator[RedisServer]:
    """A Redis that holds the databases."""
    need_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    server.load({name.lower(): hashes for name, hashes in DATABASES.items()})
    yield server
    server.stop()


def series(found: SwitchReadings) -> dict[object, object]:
    return dict(zip(*Interpreter("sonic").samples("leaf2", found), strict=True))


@pytest.mark.parametrize("priorities", ["pfc", "all"])
async def test_both_doors_give_the_same_series(redis, tmp_path, priorities) -> None:
    async with gnmi_switch(lambda asked: reply(asked, DATABASES), tmp_path) as switch:
        target = target_of(redis.socket, priorities=priorities, name="leaf2")
        direct, _ = await query_switch(target)
        over = await sonic_gnmi.query(switch.visit(priorities=priorities, seconds=20))
    assert direct.faults == over.faults == {}
    from_redis, from_gnmi = sonic.read(direct, target), sonic_gnmi.read(over, target)
    assert len(series(from_redis)) > 50
    assert series(from_gnmi) == series(from_redis)
    assert from_gnmi.name == from_redis.name == "leaf2"
    assert from_gnmi.sources == from_redis.sources
