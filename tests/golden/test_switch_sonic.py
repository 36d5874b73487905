"""Recorded SONiC switches through a real Redis and the whole interpretation, series by series.

`pytest --rewrite-golden` rewrites the golden files; read the diff.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sonic_redis import RECORDINGS, RedisServer, need_redis, recorded

from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.module import Visit
from roce_exporter.switches.modules import sonic
from roce_exporter.switches.probe_samples import probe_samples
from roce_exporter.switches.targets import Login, Route, SwitchTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.normalise.series import Samples
    from roce_exporter.switches.readings import SwitchReadings

GOLDEN = Path(__file__).parent
NAMES = ("switch-sonic", "switch-sonic-breakout/0", "switch-sonic-breakout/1")


def ask_switch(target: SwitchTarget) -> SwitchReadings:
    async def visit() -> SwitchReadings:
        deadline = asyncio.get_running_loop().time() + 60
        replies = await sonic.query(Visit(target, Route(target.host), Login(), deadline))
        return sonic.read(replies, target)

    return asyncio.run(visit())


def lines(samples: Samples) -> Iterator[str]:
    for series, value in zip(samples.series, samples.values, strict=True):
        labels = zip(series.row.labels, series.labels, strict=True)
        text = ",".join(f"{name}={json.dumps(label)}" for name, label in labels if label)
        yield f"{series.row.name}{{{text}}} {value}"


def shown(readings: SwitchReadings) -> str:
    found = [*lines(Interpreter("sonic").samples(readings.name, readings))]
    found += lines(probe_samples(readings.name, readings, 0.0))
    assert len(found) == len({line.rpartition(" ")[0] for line in found}), "a series twice"
    return "\n".join(sorted(found)) + "\n"


def compare(request: pytest.FixtureRequest, name: str, text: str) -> None:
    place = GOLDEN / f"{name.replace('/', '.')}.series"
    if request.config.getoption("--rewrite-golden"):
        place.write_text(text)
    assert text == place.read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    need_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.mark.parametrize("name", NAMES)
def test_a_switch(request: pytest.FixtureRequest, server: RedisServer, name: str) -> None:
    server.load(recorded(name))
    readings = ask_switch(SwitchTarget("t", "sonic", "unix", server.socket, {}))
    compare(request, name, shown(readings))


def test_all_queues_of_a_switch(request: pytest.FixtureRequest, server: RedisServer) -> None:
    server.load(recorded("switch-sonic"))
    readings = ask_switch(SwitchTarget("t", "sonic", "unix", server.socket, {}, priorities="all"))
    compare(request, "switch-sonic-all", shown(readings))


def test_a_switch_with_several_asics(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Three Redis, as on such a switch; the included files have the form of SONiC's database_global.json."""
    need_redis()
    servers = {name: RedisServer(tmp_path / name) for name in ("host", "asic0", "asic1")}
    includes = []
    for name, server in servers.items():
        server.start()
        server.load(recorded(f"switch-sonic-asics/{name}"))
        document = json.loads((RECORDINGS / "switch-sonic/database_config.json").read_text())
        document["INSTANCES"]["redis"] |= {"unix_socket_path": server.socket, "port": server.port}
        (tmp_path / name / "database_config.json").write_text(json.dumps(document))
        namespace = {} if name == "host" else {"namespace": name}
        includes.append({**namespace, "include": f"./{name}/database_config.json"})
    place = tmp_path / "database_global.json"
    place.write_text(json.dumps({"INCLUDES": includes, "VERSION": "1.0"}))
    try:
        unix = SwitchTarget("t", "sonic", "unix", "/nowhere", {}, database_config=place)
        text = shown(ask_switch(unix))
        remote = SwitchTarget("t", "sonic", "redis", "127.0.0.1", {"redis": 1}, database_config=place)
        assert shown(ask_switch(remote)) == text
        compare(request, "switch-sonic-asics", text)
    finally:
        for server in servers.values():
            server.stop()
