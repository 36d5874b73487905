"""What EOS's replies mean, apart from the recorded ones: golden/switch-eos.*.txt has the series of those."""

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
from switch_recordings import assert_sound, read_recorded, recorded, series, target

from roce_exporter.net import NetError
from roce_exporter.net.gnmi_messages import Leaf, path_of
from roce_exporter.net.grpc import grpc
from roce_exporter.net.login import Login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.gnmi import AbsentError
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.readings import ProbeReply, SwitchReadings
from roce_exporter.switches.systems.eos import requests as eos
from roce_exporter.switches.systems.eos.requests import (
    COMMANDS,
    MODULE,
    PATHS,
    is_reading,
    request_of,
    result_of,
)

DOCUMENTS = recorded("switch-eos")


def readings(priorities: str = "pfc", **changed: Any) -> SwitchReadings:
    """A source that is None is left out."""
    kept = {source: ... if document is None else document for source, document in changed.items()}
    return read_recorded(eos, "switch-eos", priorities, **kept)


def shown(found: SwitchReadings) -> dict[str, float | None]:
    return series(found, "eos")


def document(source: str) -> dict[str, Any]:
    """A whole source as one document at the root, with numbers as text and names of modules, as RFC 7951 has them."""
    root: dict[str, Any] = {}
    for path, value in DOCUMENTS[source].items():
        node: Any = root
        *steps, last = path_of(path)
        for name, keys in steps:
            if keys:
                rows = node.setdefault(f"m:{name}", [])
                row = next((row for row in rows if all(row[f"m:{key}"] == text for key, text in keys)), None)
                node = row if row is not None else {f"m:{key}": text for key, text in keys}
                if row is None:
                    rows.append(node)
            else:
                node = node.setdefault(f"m:{name}", {})
        node[last.name] = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return root


def test_documents_for_subtrees_say_the_same_as_leaves() -> None:
    whole = {source: (Leaf((), document(source)),) for source in PATHS}
    assert shown(readings(**whole)) == shown(readings())


def test_marks_are_one_row_from_two_protocols_chosen_once() -> None:
    eapi = {path: value for path, value in DOCUMENTS["queues"].items() if "ecn-marked" not in path}
    kept = Interpreter("eos")
    series(readings(), "eos", kept)
    found = series(readings(queues=eapi), "eos", kept)
    assert not [name for name in found if "marked" in name], "another source for a series would be a reset"


@pytest.mark.parametrize("source", PATHS)
def test_names_that_no_port_or_priority_has_are_harmless(source) -> None:
    odd = {
        path.replace("Ethernet1/1", "Ethernet\x00\n").replace("index=3", "index=x"): 1
        for path in DOCUMENTS[source]
    }
    assert_sound(readings("all", **{source: odd}), "eos")


@pytest.mark.parametrize("source", COMMANDS)
def test_commands_read_and_only_listed_ones_are_allowed(source) -> None:
    command = COMMANDS[source]
    assert (command if isinstance(command, str) else command["cmd"]).startswith("show ")
    assert is_reading(request_of(source))
    for change in (
        {"params": {"version": 1, "cmds": ["configure"], "format": "json"}},
        {"params": {"version": 1, "cmds": [command, "reload"], "format": "json"}},
        {"method": "other"},
        {"more": 1},
    ):
        assert not is_reading({**request_of(source), **change})


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"error": {"code": 1002, "message": "invalid command"}}, AbsentError),
        ({"error": {"code": 1003}}, AbsentError),
        ({"error": {"code": 1005, "message": "authorization denied for hunter2"}}, NetError),
        ({"error": {"code": "x"}}, NetError),
        ({"result": []}, NetError),
        ({"result": [{}, {}]}, NetError),
        ({"result": ["text"]}, NetError),
        ({}, NetError),
        ([], NetError),
    ],
)
def test_replies_of_eapi_without_a_result(reply, kind) -> None:
    with pytest.raises(NetError) as fault:
        result_of(reply)
    assert type(fault.value) is kind
    assert "hunter2" not in str(fault.value)


EAPI_PORTS = {
    "links": {
        "interfaces": {
            "Ethernet1": {
                "interfaceStatus": "connected",
                "bandwidth": 400_000_000_000,
                "mtu": 9214,
                "lastStatusChangeTimestamp": 1749630055.5,
                "interfaceCounters": {
                    "inOctets": 7,
                    "totalInErrors": 3,
                    "inputErrorsDetail": {"fcsErrors": 2},
                },
            },
            "Ethernet2": {"interfaceStatus": "disabled", "bandwidth": 0},
            "Management1": {"interfaceStatus": "connected"},
        }
    },
    "error_counters": {
        "interfaceErrorCounters": {"Ethernet1": {"inErrors": 99}, "Ethernet3": {"inErrors": 4}}
    },
    "fec": {
        "interfacePhyStatuses": {
            "Ethernet1": {
                "phyStatuses": [
                    {"description": {"location": "system"}, "fec": {"correctedCodewords": {"value": 2}}},
                    {
                        "description": {"location": "line"},
                        "fec": {"correctedCodewords": {"value": 3}, "uncorrectedCodewords": 0},
                        "preFecBer": {"value": 5.3e-10},
                    },
                ]
            }
        }
    },
    "transceivers": {
        "interfaces": {
            "Ethernet1": {"parameters": {"rxPower": {"channels": {"1": -30.0, "2": "N/A"}}}},
            "Ethernet2": {},
        }
    },
    "ecn_counters": {"intfQueueCounters": {"Ethernet1": {"queueCounters": {"3": "5"}}}},
}


def test_eapi_alone_serves_ports_and_queues() -> None:
    """Without gNMI nothing names the priorities with PFC: every queue that eAPI counts is shown."""
    found = eos.read(ProbeReply(EAPI_PORTS), target("eos"))
    shown = {name: value for name, value in series(found, "eos").items() if not name.startswith("port_info")}
    assert not [name for name in shown if "Management" in name]
    assert shown == {
        "link_up Ethernet1": 1,
        "link_up Ethernet2": 0,
        "link_admin_up Ethernet1": 1,
        "link_admin_up Ethernet2": 0,
        "link_speed_bytes_per_second Ethernet1": 50e9,
        "link_mtu_bytes Ethernet1": 9214,
        "link_last_change_timestamp_seconds Ethernet1": 1749630055.5,
        "phy_receive_bytes_total Ethernet1": 7,
        "phy_receive_errors_total Ethernet1": 3,
        "phy_receive_errors_total Ethernet3": 4,
        "phy_receive_crc_errors_total Ethernet1": 2,
        "phy_fec_corrected_blocks_total Ethernet1": 3,
        "phy_fec_uncorrectable_blocks_total Ethernet1": 0,
        "phy_pre_fec_bit_error_ratio Ethernet1": 5.3e-10,
        "transceiver_receive_power_watts Ethernet1 1": 1e-6,
        "queue_ecn_marked_packets_total Ethernet1 3": 5,
    }


# EOS through both its clients: a gRPC server and a web server on loopback that replay the recorded switch

REPLAYED = {source: json.loads(files("switch-eos")[f"{source}.json"]) for source in (*PATHS, *COMMANDS)}


def replay(asked: GnmiQuestion) -> list[bytes]:
    """As EOS: leaves in scalar values, some in each message, in JSON where a value is neither text nor a number."""
    source = next(source for source, paths in PATHS.items() if paths == asked.paths)
    updates = [
        update
        for path, value in REPLAYED[source].items()
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
    return says({"jsonrpc": "2.0", "id": source, "result": [REPLAYED[source]]})


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
        source: tuple((path_of(path), value) for path, value in REPLAYED[source].items()) for source in PATHS
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


def test_a_switch_without_pfc_says_so_of_all_priorities_and_shows_the_usual_queues() -> None:
    """The commonest wrong setting must not look like a healthy switch, nor a fabric that only marks like an idle one."""
    off = {
        path: "00" if path.endswith("priorities-no-drop") else value
        for path, value in DOCUMENTS["configuration"].items()
    }
    found = shown(readings(configuration=off))
    ports = [f"Ethernet{number}/1" for number in (1, 2, 3)]
    assert {name: value for name, value in found.items() if name.startswith("pfc_enabled ")} == {
        f"pfc_enabled {port} {priority}": 0 for port in ports for priority in range(8)
    }
    marks = {name for name in found if name.startswith("queue_ecn_marked_packets_total ")}
    assert marks == {f"queue_ecn_marked_packets_total {port} {queue}" for port in ports for queue in (3, 4)}
