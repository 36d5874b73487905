"""NX-OS and Cumulus over HTTPS: servers replay the recordings to the modules and to the command."""

import asyncio
import logging
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from https_switch import LOGIN, NAME, Asked, HttpsSwitch, Says, https_switch
from servers import exporter
from switch_fakes import prober
from switch_recordings import as_text, read_recorded, recorded
from switch_replay import SECRETS, nvue, nxapi

from roce_exporter.net.login import Credentials
from roce_exporter.switches import json_client as https
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.systems.cumulus import requests as cumulus
from roce_exporter.switches.systems.nxos import requests as nxos
from roce_exporter.switches.targets import ProbeLimits

SYSTEMS = {"nxos": (nxos, "switch-nxos", nxapi), "cumulus": (cumulus, "switch-cumulus", nvue)}


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    https.JARS.clear()
    https.warn_once.cache_clear()
    cumulus.PER_PORT.clear()


async def visit(switch: Any, system: str, **options: Any) -> tuple[Any, Any]:
    """The replies of one visit, and the readings."""
    module = SYSTEMS[system][0]
    visit = switch.visit(system, **{"seconds": 30.0, "record": True, **options})
    replies = await module.query(visit)
    return replies, module.read(replies, visit.target)


def assert_no_secret(*texts: Any) -> None:
    spoken = "\n".join(map(str, texts))
    assert not [secret for secret in SECRETS if secret in spoken]


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_switch_is_read_over_https_as_from_its_files(tmp_path, system, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    module, folder, replay = SYSTEMS[system]
    async with https_switch(partial(replay, replies=recorded(folder)), tmp_path) as switch:
        for _ in range(2):
            replies, found = await visit(switch, system)
            assert as_text(found) == as_text(read_recorded(module, folder))
            assert {exchange.source for exchange in replies.logged} == set(recorded(folder))
        assert switch.most_at_once <= https.CONNECTIONS + 1
        assert not {asked.method for asked in switch.asked} - {"GET", "POST"}
    assert_no_secret(caplog.text, replies, found)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_one_bad_reply_costs_one_source(tmp_path, system, caplog) -> None:
    """Each kind of bad reply is in unit/switches/test_json_client.py."""
    caplog.set_level(logging.DEBUG)
    _, folder, replay = SYSTEMS[system]
    for source in recorded(folder):
        replies = recorded(folder) | {source: Says(b"{}", status=500)}
        async with https_switch(partial(replay, replies=replies), tmp_path) as switch:
            got, found = await visit(switch, system)
        spoken = {**found.faults, **got.faults}
        assert list(spoken) == [source]
        assert "status 500" in spoken[source]
        assert set(recorded(folder)) - {source} <= set(found.sources)
        assert_no_secret(caplog.text, spoken, got)


# The command

CONFIGURATION = """\
targets:
  {system}:
    module: {system}
    address: "https://127.0.0.1:{port}"
    tls: {{ca_file: {ca_file}, server_name: {name}}}
    basic_auth: {{username: {user}, password_file: {folder}/password}}
"""


EXPECTED = {
    "nxos": 'roce_switch_pfc_watchdog_detection_seconds{device="spine1",port="Ethernet1/2",queue="3"} 0.2',
    "cumulus": 'roce_switch_pfc_receive_frames_total{device="leaf3",port="swp1",priority="3"} 200',
}


def one_target(switch: HttpsSwitch, host: str, folder: Path) -> Prober:
    (folder / "password").write_text(LOGIN.password)
    asked = switch.visit("nxos").target
    tls, login = replace(asked.tls, server_name=NAME), Credentials("reader", folder / "password")
    limits = ProbeLimits(cache_seconds=0)
    return prober(replace(asked, host=host, tls=tls, basic_auth=login), limits=limits)


async def test_a_switch_that_asks_for_rest_gets_it(tmp_path, monkeypatch) -> None:
    _, folder, replay = SYSTEMS["nxos"]
    loop, later, busy = asyncio.get_running_loop(), [0.0], [True]
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + later[0])

    def answer(asked: Asked) -> Says:
        return Says(b"", 429, (("Retry-After", "1800"),)) if busy[0] else replay(asked, recorded(folder))

    async with https_switch(answer, tmp_path) as switch:
        one = one_target(switch, "127.0.0.1", tmp_path)
        await one.probe("spine1", "", 60)
        first = len(switch.asked)
        busy[0], later[0] = False, 1700.0
        (fault,) = (await one.probe("spine1", "", 60)).readings.faults.values()
        assert "wants no requests for now (Retry-After); it is queried again in" in fault
        assert 1 <= first == len(switch.asked)
        later[0] = 1801.0
        assert not (await one.probe("spine1", "", 60)).readings.faults


@pytest.mark.parametrize("system", SYSTEMS)
async def test_the_command_serves_the_switch(tmp_path, system) -> None:
    _, folder, replay = SYSTEMS[system]
    (tmp_path / "password").write_text(LOGIN.password + "\n")
    async with https_switch(partial(replay, replies=recorded(folder)), tmp_path) as switch:
        configuration = CONFIGURATION.format(
            system=system,
            port=switch.port,
            ca_file=switch.ca_file,
            name=NAME,
            user=LOGIN.username,
            folder=tmp_path,
        )
        file = tmp_path / "switches.yml"
        file.write_text(configuration)
        flags = ("--no-host", f"--switches.config={file}", "--log.level=debug")
        with exporter(tmp_path, *flags) as running:
            text, debug = [
                (await asyncio.to_thread(running.get, f"{path}?target={system}")).decode()
                for path in ("/probe", "/debug/probe")
            ]
            assert running.stop() == 0
    assert EXPECTED[system] in text
    up = re.findall(r'roce_switch_source_up\{.*source="(\w+)"\} (\d)', text)
    assert dict(up) == dict.fromkeys(recorded(folder), "1")
    assert "/api/node/class/l1PhysIf.json" in debug or "/nvue_v1/" in debug
    assert_no_secret(text, debug, running.log)
