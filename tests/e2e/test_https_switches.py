"""NX-OS and Cumulus over HTTPS: servers replay the recordings, whole and damaged, to the modules and to the command."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from https_switch import LOGIN, NAME, Says, https_switch, says
from switch_recordings import as_text, assert_sound, damaged, read_recorded, recorded
from switch_replay import SECRETS, nvue, nxapi

from roce_exporter.switches.doors import https
from roce_exporter.switches.modules import cumulus, nxos

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SYSTEMS = {"nxos": (nxos, "switch-nxos", nxapi), "cumulus": (cumulus, "switch-cumulus", nvue)}
SOURCES = [(system, source) for system, (_, folder, _) in SYSTEMS.items() for source in recorded(folder)]

LOGIN_PAGE = (
    b"<!doctype html><html><head><title>Log in</title></head><body><form action=/login></form></body></html>"
)


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    https.JARS.clear()
    https.WARNED.clear()
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
            assert {exchange.source for exchange in replies.exchanges} == set(recorded(folder))
        assert switch.most_at_once <= https.CONNECTIONS + 1
        assert not {asked.method for asked in switch.asked} - {"GET", "POST"}
    assert_no_secret(caplog.text, replies, found)


async def test_the_second_visit_to_nxos_sends_no_password(tmp_path) -> None:
    async with https_switch(partial(nxapi, replies=recorded("switch-nxos")), tmp_path) as switch:
        await visit(switch, "nxos")
        switch.asked.clear()
        await visit(switch, "nxos")
        assert len(switch.asked) == 6
        assert not [
            asked
            for asked in switch.asked
            if "authorization" in asked.headers or LOGIN.password.encode() in asked.body
        ]


def truncated(reply: Any, point: float) -> Says:
    body = json.dumps(reply).encode()
    return Says(body[: int(len(body) * point)])


def faults() -> dict[str, Any]:
    """What can happen to the reply of one source."""
    cut = {
        f"cut off at {point:.0%}": partial(truncated, point=point) for point in (0.0, 0.1, 0.5, 0.9, 0.999)
    }
    return {
        **cut,
        "a login page": lambda reply: Says(LOGIN_PAGE, headers=(("Content-Type", "text/html"),)),
        "not a number": lambda reply: Says(b'{"imdata": NaN}'),
        "a list": lambda reply: Says(b"[]"),
        "status 500": lambda _: says({}, status=500),
        "status 403": lambda _: says({}, status=403),
        "a connection that ends": lambda reply: Says(
            raw=b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{"
        ),
        "no HTTP": lambda reply: Says(raw=b"\x00\x01\x02\r\n\r\n"),
    }


@pytest.mark.parametrize(("system", "source"), SOURCES)
@pytest.mark.parametrize("fault", faults())
async def test_one_bad_reply_costs_one_source(tmp_path, system, source, fault, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    _, folder, replay = SYSTEMS[system]
    replies = recorded(folder)
    replies[source] = faults()[fault](replies[source])
    async with https_switch(partial(replay, replies=replies), tmp_path) as switch:
        got, found = await visit(switch, system)
    spoken = {**found.faults, **got.faults}
    assert list(spoken) == [source]
    assert "\n" not in spoken[source]
    assert not fault.startswith("status") or fault in spoken[source]
    assert set(recorded(folder)) - {source} <= set(found.sources) - set(spoken)
    assert_sound(found if source in found.faults else read_again(system, got), system)
    assert_no_secret(caplog.text, spoken, got)


def read_again(system: str, replies: Any) -> Any:
    module, folder, _ = SYSTEMS[system]
    kept = {source: replies.replies.get(source, ...) for source in recorded(folder)}
    return read_recorded(module, folder, **kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "source"),
    [("nxos", "queuing_statistics"), ("cumulus", "counters")],
)
async def test_a_reply_that_never_ends_costs_one_source(tmp_path, system, source) -> None:
    _, folder, replay = SYSTEMS[system]
    replies = recorded(folder) | {source: Says(raw=b"HTTP/1.1 200 OK\r\n\r\n{", hang=True)}
    async with https_switch(partial(replay, replies=replies), tmp_path) as switch:
        got, found = await visit(switch, system, seconds=10.0)
        await switch.quiet.wait()
    assert "no complete reply within 10.0 s" in got.faults[source]
    assert set(got.faults) == {source}
    assert set(recorded(folder)) - {source} <= set(found.sources) - set(got.faults)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_wrong_password_is_one_clear_line_per_source(tmp_path, system) -> None:
    async with https_switch(lambda asked: Says(status=401), tmp_path) as switch:
        got, found = await visit(switch, system)
    assert set(got.faults) == set(recorded(SYSTEMS[system][1]))
    assert all("refuses the user or the password" in fault for fault in got.faults.values())
    assert not found.readings
    assert_no_secret(got)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_values_of_any_kind_arrive_without_harm(tmp_path, system) -> None:
    """Each tenth damaged reply of each source, through the whole chain."""
    _, folder, replay = SYSTEMS[system]
    replies = recorded(folder)
    async with https_switch(lambda asked: replay(asked, replies=replies), tmp_path) as switch:
        for source, reply in recorded(folder).items():
            for bad in list(damaged(reply))[::100]:
                replies[source] = Says(json.dumps(bad).encode())
                _, found = await visit(switch, system)
                assert_sound(found, system)
            replies[source] = reply


# The command

CONFIGURATION = """\
targets:
  {system}:
    module: {system}
    address: "https://127.0.0.1:{port}"
    tls: {{ca_file: {ca_file}, server_name: {name}}}
    basic_auth: {{username: {user}, password_file: {folder}/password}}
"""


@asynccontextmanager
async def command(folder: Any, configuration: str) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """`roce-exporter switches` as a process, and the port that it listens on."""
    file = folder / "switches.yml"
    file.write_text(configuration)
    arguments = ("switches", f"--config.file={file}", "--web.listen-address=127.0.0.1:0", "--log.level=debug")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "roce_exporter", *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr
    try:
        async for line in process.stderr:
            if found := re.search(rb"listens on \S*?:(\d+)", line):
                yield int(found[1]), process
                break
        else:
            raise AssertionError("the command ended")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def page(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    text = await reader.read()
    writer.close()
    await writer.wait_closed()
    return text.decode()


EXPECTED = {
    "nxos": (
        'roce_switch_pfc_watchdog_tripped{device="spine1",port="Ethernet1/2",queue="3"} 1',
        'roce_switch_pfc_watchdog_detection_seconds{device="spine1",port="Ethernet1/2",queue="3"} 0.2',
        'roce_switch_queue_ecn_marked_packets_total{device="spine1",port="Ethernet1/2",queue="3"} 42000',
        'roce_switch_source_unreadable_values{device="spine1",source="queuing_statistics"} 1',
    ),
    "cumulus": (
        'roce_switch_pfc_watchdog_trips_total{device="leaf3",port="swp1",queue="3"} 2',
        'roce_switch_pfc_receive_frames_total{device="leaf3",port="swp1",priority="3"} 200',
        'roce_switch_config_ecn_enabled{device="leaf3",port="swp2s0",queue="3"} 0',
        'roce_switch_source_unreadable_values{device="leaf3",source="counters"} 1',
    ),
}


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
        async with command(tmp_path, configuration) as (port, process):
            text = await page(port, f"/probe?target={system}")
            debug = await page(port, f"/debug/probe?target={system}")
            process.terminate()
            assert process.stderr
            log = (await process.stderr.read()).decode()
    for line in EXPECTED[system]:
        assert line in text
    up = re.findall(r'roce_switch_source_up\{.*source="(\w+)"\} (\d)', text)
    assert dict(up) == dict.fromkeys(recorded(folder), "1")
    assert nxos.CLASS_QUERY in debug or "/nvue_v1/" in debug
    assert_no_secret(text, debug, log)
