"""Recorded SONiC switches through a real Redis and the whole interpretation, series by series.

`pytest --rewrite-golden` rewrites the golden files; read the diff.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded import files
from sonic_redis import RedisServer, need_redis, query_switch, recorded, target_of

from roce_exporter.normalise.series import Samples
from roce_exporter.switches.interpretation import Interpreter, probe_samples, unreadable_values
from roce_exporter.switches.readings import SwitchReadings
from roce_exporter.switches.targets import SwitchTarget

GOLDEN = Path(__file__).parent
NAMES = ("switch-sonic", "switch-sonic-breakout/0", "switch-sonic-breakout/1")


def read_switch(target: SwitchTarget) -> SwitchReadings:
    return asyncio.run(query_switch(target))[1]


def lines(samples: Samples) -> Iterator[str]:
    for series, value in zip(samples.series, samples.values, strict=True):
        labels = zip(series.row.labels, series.labels, strict=True)
        text = ",".join(f"{name}={json.dumps(label)}" for name, label in labels if label)
        yield f"{series.row.name}{{{text}}} {value}"


def shown(readings: SwitchReadings) -> str:
    found = [*lines(Interpreter("sonic").samples(readings.name, readings))]
    found += lines(probe_samples(readings.name, readings, 0.0, unreadable_values(readings), refused=False))
    assert len(found) == len({line.rpartition(" ")[0] for line in found}), "a series twice"
    return "\n".join(sorted(found)) + "\n"


def kept(name: str) -> Path:
    return GOLDEN / f"{name.replace('/', '.')}.series"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RedisServer]:
    need_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.mark.parametrize("name", NAMES)
def test_a_switch_matches_its_golden_file(golden, server, name) -> None:
    server.load(recorded(name))
    readings = read_switch(target_of(server.socket))
    golden(kept(name), shown(readings))


def test_all_queues_of_a_switch_match_their_golden_file(golden, server) -> None:
    server.load(recorded("switch-sonic"))
    readings = read_switch(target_of(server.socket, priorities="all"))
    golden(kept("switch-sonic-all"), shown(readings))


def test_a_switch_with_several_asics_matches_its_golden_file(golden, tmp_path) -> None:
    """Three Redis, as on such a switch; the included files have the form of SONiC's database_global.json."""
    need_redis()
    servers = {name: RedisServer(tmp_path / name, door="--port") for name in ("host", "asic0", "asic1")}
    includes = []
    for name, server in servers.items():
        server.start()
        server.load(recorded(f"switch-sonic-asics/{name}"))
        document = json.loads(files("switch-sonic")["database_config.json"])
        document["INSTANCES"]["redis"] |= {"unix_socket_path": server.socket, "port": server.port}
        (tmp_path / name / "database_config.json").write_text(json.dumps(document))
        namespace = {} if name == "host" else {"namespace": name}
        includes.append({**namespace, "include": f"./{name}/database_config.json"})
    place = tmp_path / "database_global.json"
    place.write_text(json.dumps({"INCLUDES": includes, "VERSION": "1.0"}))
    try:
        unix = target_of("/nowhere", database_config=place)
        text = shown(read_switch(unix))
        remote = target_of("127.0.0.1", "redis", ports={"redis": 1}, database_config=place)
        assert shown(read_switch(remote)) == text
        golden(kept("switch-sonic-asics"), text)
    finally:
        for server in servers.values():
            server.stop()
