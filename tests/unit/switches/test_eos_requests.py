"""EOS through both its clients: a gRPC server and a web server on loopback that replay the recorded switch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gnmi_switch import (
    LOGIN,
    GnmiQuestion,
    RefusedError,
    gnmi_switch,
    ietf,
    leaf_updates,
    subscribe_response,
    sync_response,
)
from https_switch import Asked, Says, https_switch, says
from recorded import files

from roce_exporter.net.gnmi_messages import path_of
from roce_exporter.net.grpc import grpc
from roce_exporter.net.login import Login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.readings import ProbeReply, SwitchReadings
from roce_exporter.switches.systems.eos.requests import COMMANDS, MODULE, PATHS, request_of

DOCUMENTS = {source: json.loads(files("switch-eos")[f"{source}.json"]) for source in (*PATHS, *COMMANDS)}


def replay(asked: GnmiQuestion) -> list[bytes]:
    """As EOS: leaves in scalar values, some in each message, in JSON where a value is neither text nor a number."""
    source = next(source for source, paths in PATHS.items() if paths == asked.paths)
    updates = [
        update
        for path, value in DOCUMENTS[source].items()
        for update in (
            [(path_of(path), ietf(value))] if isinstance(value, bool) else leaf_updates({path: value})
        )
    ]
    return [
        *(subscribe_response(*updates[place : place + 5]) for place in range(0, len(updates), 5)),
        sync_response(),
    ]


def eapi(asked: Asked) -> Says:
    assert asked.method == "POST"
    assert asked.path == "/command-api"
    source = asked.document["id"]
    assert asked.document == request_of(source)
    return says({"jsonrpc": "2.0", "id": source, "result": [DOCUMENTS[source]]})


async def visited(
    folder: Path,
    gnmi: Callable[[GnmiQuestion], Any] = replay,
    web: Callable[[Asked], Says] = eapi,
    login: Login = LOGIN,
    **options: Any,
) -> tuple[ProbeReply, SwitchReadings]:
    (folder / "web").mkdir()
    async with gnmi_switch(gnmi, folder) as switch, https_switch(web, folder / "web") as server:
        both = folder / "both.pem"
        both.write_bytes(switch.ca_file.read_bytes() + server.ca_file.read_bytes())
        tls = TlsFiles(ca_file=both)
        # The two servers have certificates with two names; a switch has one.
        visit = switch.visit("eos", ports={"https": server.port}, login=login, tls=tls, **options)
        replies = await MODULE.query(visit)
    return replies, MODULE.read(replies, visit.target)


@pytest.fixture(autouse=True)
def _one_name(monkeypatch) -> None:
    """Both servers have the name of one switch."""
    monkeypatch.setattr("https_switch.NAME", "leaf2.example.com")


async def test_both_clients(tmp_path) -> None:
    replies, readings = await visited(tmp_path)
    assert not replies.faults
    assert set(replies.replies) == {*PATHS, *COMMANDS}
    assert not replies.logged
    assert readings.name == "leaf2"
    recorded = {
        source: tuple((path_of(path), value) for path, value in DOCUMENTS[source].items()) for source in PATHS
    }
    assert {source: replies.replies[source] for source in PATHS} == recorded


async def test_a_source_that_is_absent_is_no_source(tmp_path) -> None:
    def gnmi(asked: GnmiQuestion) -> Any:
        if "pfc" in asked.paths[0]:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "no such path")
        return replay(asked)

    def web(asked: Asked) -> Says:
        error = {"code": 1002, "message": "CLI command 1 of 1 failed: invalid command"}
        return says({"error": error}) if asked.document["id"] == "ecn_counters" else eapi(asked)

    replies, readings = await visited(tmp_path, gnmi, web)
    assert not replies.faults
    assert {*PATHS, *COMMANDS} - set(readings.sources) == {"pfc", "configuration", "ecn_counters"}


async def test_one_client_that_is_away_leaves_the_other(tmp_path) -> None:
    replies, readings = await visited(tmp_path, web=lambda asked: Says(b"<html>Login</html>"))
    assert list(replies.faults) == ["eapi"]
    assert "an HTML page instead of JSON" in replies.faults["eapi"]
    assert {reading.source for reading in readings.readings} >= {"pfc", "queues", "configuration"}


async def test_gnmi_that_is_away_leaves_eapi(tmp_path) -> None:
    def gnmi(asked: GnmiQuestion) -> Any:
        raise RefusedError(grpc.StatusCode.UNAVAILABLE, "agent restarts")

    replies, readings = await visited(tmp_path, gnmi)
    assert list(replies.faults) == ["gnmi"]
    of_ports = {"error_counters", "discard_counters", "fec", "links", "transceivers"}
    of_queues = {"ecn_counters", "queue_drops", "watchdog_counters"}
    assert {reading.source for reading in readings.readings} == of_ports | of_queues
    assert readings.name == "leaf2"
    assert len([fact for fact in readings.facts if "neighbor" in fact.labels]) == 2


async def test_a_wrong_password_is_a_fault_of_every_source_and_is_not_shown(tmp_path) -> None:
    wrong = Login("reader", "wrong-but-secret")
    replies, _ = await visited(tmp_path, web=lambda asked: Says(status=401), login=wrong, record=True)
    assert set(replies.faults) == {*PATHS, *COMMANDS}
    assert wrong.password not in str(replies)
