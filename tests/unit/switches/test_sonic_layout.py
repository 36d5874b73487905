"""Which of SONiC's databases is where."""

import json
from pathlib import Path
from typing import Any

import pytest
from recorded import files
from sonic_redis import query_switch, target_of

from roce_exporter.net import NetError
from roce_exporter.switches.systems.sonic import database_layout as redis_layout
from roce_exporter.switches.systems.sonic.database_layout import (
    DEFAULT_LAYOUT,
    address_of,
    layout_of,
    read_layout,
)
from roce_exporter.switches.systems.sonic.redis_client import RedisAddress
from roce_exporter.switches.systems.sonic.tables import SOURCES
from roce_exporter.switches.targets import Route

PLAIN: dict[str, Any] = json.loads(files("switch-sonic")["database_config.json"])
NAMES = ("APPL_DB", "COUNTERS_DB", "CONFIG_DB", "STATE_DB")


def write(place: Path, document: Any, name: str = "database_config.json") -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def two_instances(**second: Any) -> dict[str, Any]:
    document = json.loads(json.dumps(PLAIN))
    document["INSTANCES"]["redis2"] = {
        "hostname": "127.0.0.1",
        "port": 6380,
        "unix_socket_path": "/run/2.sock",
    } | second
    document["DATABASES"]["COUNTERS_DB"]["instance"] = "redis2"
    return document


async def addresses(path: Path, **options: Any) -> dict[str, RedisAddress]:
    target = target_of(**({"host": "192.0.2.7", "scheme": "redis", "ports": {"redis": 16379}} | options))
    layout = await read_layout(path)
    (part,) = layout.namespaces
    return {name: address_of(layout, part, name, target, Route(target.host)) for name in NAMES}


async def test_without_a_file_the_layout_is_the_default() -> None:
    target = target_of("192.0.2.7", "redis", ports={"redis": 6379})
    assert await layout_of(target) is DEFAULT_LAYOUT
    (part,) = DEFAULT_LAYOUT.namespaces
    found = [address_of(DEFAULT_LAYOUT, part, name, target, Route("192.0.2.7")) for name in NAMES]
    assert [str(address) for address in found] == [f"192.0.2.7:6379 database {n}" for n in (0, 2, 4, 6)]


async def test_on_the_switch_its_own_file_is_read(tmp_path, monkeypatch) -> None:
    document = json.loads(json.dumps(PLAIN))
    document["DATABASES"]["COUNTERS_DB"]["id"] = 12
    monkeypatch.setattr(redis_layout, "ON_THE_SWITCH", (tmp_path / "no.json", write(tmp_path, document)))
    assert (await layout_of(target_of("/s"))).namespaces[0].databases["COUNTERS_DB"].number == 12
    assert await layout_of(target_of("192.0.2.7", "redis")) is DEFAULT_LAYOUT


async def test_one_instance_is_at_the_address_of_the_target(tmp_path) -> None:
    """A forwarded port or another path: the file decides about numbers only."""
    path = write(tmp_path, PLAIN)
    assert (await addresses(path))["CONFIG_DB"] == RedisAddress("192.0.2.7", 16379, "", 4)
    assert (await addresses(path, host="/my.sock", scheme="unix"))["CONFIG_DB"] == RedisAddress(
        "", 0, "/my.sock", 4
    )


async def test_several_instances_are_where_the_file_says_on_the_host_of_the_target(tmp_path) -> None:
    path = write(tmp_path, two_instances())
    assert (await addresses(path))["COUNTERS_DB"] == RedisAddress("192.0.2.7", 6380, "", 2)
    assert (await addresses(path))["STATE_DB"] == RedisAddress("192.0.2.7", 6379, "", 6)
    assert (await addresses(path, host="/x", scheme="unix"))["COUNTERS_DB"].path == "/run/2.sock"


@pytest.mark.parametrize(
    ("second", "options", "line"),
    [
        ({"hostname": "203.0.113.9"}, {}, "the instance redis2 is at 203.0.113.9, which is not the address"),
        (
            {"unix_socket_path": ""},
            {"host": "/x", "scheme": "unix"},
            "no unix_socket_path for the instance redis2",
        ),
    ],
)
async def test_an_instance_that_cannot_be_reached_by_the_target(tmp_path, second, options, line) -> None:
    """Only the address that was checked is connected to."""
    with pytest.raises(NetError, match=line):
        await addresses(write(tmp_path, two_instances(**second)), **options)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ("", "not a database_config.json"),
        ("[]", "not a database_config.json"),
        ("[" * 100_000, "not a database_config.json"),
        ('"' + "x" * (1 << 20) + '"', "not a database_config.json"),
        ({}, "INSTANCES or DATABASES is missing"),
        ({"INSTANCES": [], "DATABASES": {}}, "INSTANCES or DATABASES is missing"),
        ({**PLAIN, "INSTANCES": {}}, "APPL_DB has no instance or no id that can be used"),
        (
            {**PLAIN, "DATABASES": {"STATE_DB": {"instance": "redis", "id": "x"}}},
            "STATE_DB has no instance or no id that can be used",
        ),
        ({**PLAIN, "DATABASES": {"STATE_DB": 5}}, "STATE_DB has no instance or no id that can be used"),
        ({"INCLUDES": {}}, "INCLUDES is not a list of at most 64 files"),
        ({"INCLUDES": [{}] * 65}, "INCLUDES is not a list of at most 64 files"),
        ({"INCLUDES": [{"namespace": "asic0"}]}, "an entry of INCLUDES has no file"),
        ({"INCLUDES": ["x"]}, "an entry of INCLUDES has no file"),
    ],
)
async def test_a_file_that_is_no_such_file(tmp_path, document, line) -> None:
    path = write(tmp_path, document)
    with pytest.raises(NetError) as caught:
        await read_layout(path)
    assert str(caught.value) == f"{path}: {line}"
    _, readings = await query_switch(target_of("/no.sock", database_config=path))
    assert set(readings.faults) == set(SOURCES)


async def test_a_file_that_does_not_exist_or_lacks_a_database(tmp_path) -> None:
    with pytest.raises(NetError, match=r"no\.json: No such file"):
        await read_layout(tmp_path / "no.json")
    less = {**PLAIN, "DATABASES": {"STATE_DB": PLAIN["DATABASES"]["STATE_DB"]}}
    _, readings = await query_switch(target_of("/no.sock", database_config=write(tmp_path, less)))
    assert readings.faults["lldp"] == "database_config has no APPL_DB"


async def test_several_asics(tmp_path) -> None:
    """As in SONiC's /var/run/redis/sonic-db/database_global.json: the host's own databases and one set per ASIC."""
    includes = [{"include": "../../redis/sonic-db/database_config.json"}]
    for number in range(2):
        document = json.loads(json.dumps(PLAIN))
        document["INSTANCES"]["redis"]["unix_socket_path"] = f"/var/run/redis{number}/redis.sock"
        write(tmp_path, document, f"redis{number}/sonic-db/database_config.json")
        path = f"../../redis{number}/sonic-db/database_config.json"
        includes.append({"namespace": f"asic{number}", "include": path})
    write(tmp_path, PLAIN, "redis/sonic-db/database_config.json")
    includes.append({"namespace": "asic2", "include": "../../redis2/sonic-db/database_config.json"})
    layout = await read_layout(write(tmp_path, {"INCLUDES": includes}, "redis/sonic-db/database_global.json"))
    assert [part.name for part in layout.namespaces] == ["", "asic0", "asic1", "asic2"]
    target, route = target_of("/x"), Route("/x")
    found = [address_of(layout, part, "COUNTERS_DB", target, route).path for part in layout.namespaces[:3]]
    assert found == ["/var/run/redis/redis.sock", "/var/run/redis0/redis.sock", "/var/run/redis1/redis.sock"]
    with pytest.raises(NetError, match=r"redis2/sonic-db/database_config\.json: No such file"):
        address_of(layout, layout.namespaces[3], "COUNTERS_DB", target, route)
