"""SONiC over gNMI gives the series that Redis gives, from the same databases: through a real gRPC server over TLS."""

import asyncio
import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from clock import pass_time
from gnmi_switch import GnmiQuestion, RefusedError, get_response, gnmi_switch, ietf
from recorded import files
from sonic_gnmi_replies import PATHS, Databases, reply, virtual
from sonic_redis import as_tables
from switch_recordings import series
from waiting import HUNG_SECONDS, until

from roce_exporter.net.gnmi_messages import path_of
from roce_exporter.net.grpc import grpc
from roce_exporter.net.login import Login
from roce_exporter.switches.gnmi import GnmiClient
from roce_exporter.switches.readings import ProbeReply, SwitchReadings
from roce_exporter.switches.systems.sonic import gnmi_requests
from roce_exporter.switches.systems.sonic.gnmi_requests import MODULE, NO_ALIASES
from roce_exporter.switches.systems.sonic.read import read_tables

RECORDED = files("switch-sonic-gnmi")
DATABASES: Databases = json.loads(RECORDED["databases.json"])


def shown(found: SwitchReadings) -> dict[str, float | None]:
    return series(found, MODULE.dialect)


async def over_gnmi(
    folder: Path, databases: Databases, answer: Callable[[GnmiQuestion], Any] | None = None, **options: Any
) -> tuple[ProbeReply, SwitchReadings, list[GnmiQuestion]]:
    async with gnmi_switch(answer or (lambda asked: reply(asked, databases)), folder) as switch:
        visit = switch.visit(**options)
        replies = await MODULE.query(visit)
    return replies, MODULE.read(replies, visit.target), switch.asked


@pytest.mark.parametrize("priorities", ["pfc", "all"])
async def test_the_series_are_those_from_redis(tmp_path, priorities) -> None:
    replies, over, _ = await over_gnmi(tmp_path, DATABASES, priorities=priorities)
    direct = read_tables([as_tables(DATABASES)], {}, priorities)
    assert not replies.faults
    assert shown(over) == shown(direct)
    assert (over.name, over.sources, dict(over.faults)) == (direct.name, direct.sources, dict(direct.faults))
    assert dict(over.renewals) == dict(direct.renewals)


def test_the_replies_are_those_that_the_recorded_switch_gave() -> None:
    recorded = json.loads(RECORDED["replies.json"])
    assert {path: virtual(path, DATABASES) for path in recorded} == recorded


async def test_what_is_requested_is_limited_to_lossless_objects(tmp_path) -> None:
    _, _, asked = await over_gnmi(tmp_path, DATABASES)
    assert {one.method for one in asked} == {"Get"}
    by_identifier = [path for one in asked for path in one.paths if "/oid:" in path]
    assert sum(path.startswith("COUNTERS/") for path in by_identifier) == 3, (
        "of three lossless priority groups"
    )
    assert len(by_identifier) == 3 + 2 * (3 + 3 + 1) + 1
    assert {one.target for one in asked} == {"COUNTERS_DB", "CONFIG_DB", "APPL_DB", "STATE_DB"}


def without_aliases(databases: Databases) -> None:
    for port in ("Ethernet1", "Ethernet68"):
        del databases["CONFIG_DB"][f"PORT|{port}"]["alias"]


def with_exchanged_aliases(databases: Databases) -> None:
    databases["CONFIG_DB"]["PORT|Ethernet1"]["alias"] = "Ethernet68"
    databases["CONFIG_DB"]["PORT|Ethernet68"]["alias"] = "Ethernet1"


def without_drops(databases: Databases) -> None:
    for oid in databases["COUNTERS_DB"]["COUNTERS_PG_NAME_MAP"].values():
        databases["COUNTERS_DB"].pop(f"COUNTERS:{oid}", None)


def with_health(databases: Databases) -> None:
    """State and faults of a port, its module, and the bit error ratios that a switch gave for RATES/Ethernet*."""
    oid = databases["COUNTERS_DB"]["COUNTERS_PORT_NAME_MAP"]["Ethernet68"]
    databases["COUNTERS_DB"][f"RATES:{oid}"] = {"FEC_PRE_BER": "5.3e-10", "FEC_POST_BER": "0"}
    databases["APPL_DB"]["PORT_TABLE:Ethernet68"] = {"oper_status": "up", "speed": "400000", "mtu": "9100"}
    databases["STATE_DB"]["PORT_OPERR_TABLE|Ethernet68"] = {"mac_local_fault_count": "2"}
    databases["STATE_DB"]["TRANSCEIVER_DOM_SENSOR|Ethernet68"] = {"rx1power": "-1.24", "temperature": "41.5"}
    databases["STATE_DB"]["TRANSCEIVER_INFO|Ethernet68"] = {"type": "QSFP-DD", "model": "M"}


def no_number(text: str) -> Callable[[Databases], None]:
    def change(databases: Databases) -> None:
        counters = databases["COUNTERS_DB"]
        oid = counters["COUNTERS_PORT_NAME_MAP"]["Ethernet68"]
        counters[f"COUNTERS:{oid}"]["SAI_PORT_STAT_PFC_3_RX_PKTS"] = text

    return change


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (without_aliases, "no alias"),
        (with_exchanged_aliases, "no alias"),
        (without_drops, "buffer_discards_total"),
        (with_health, "link_changes_total"),
        *((no_number(text), "no number") for text in ("NaN", str(2**64), "-1", "x")),
        (no_number(""), "pfc_receive_frames_total Ethernet68 3"),
    ],
)
async def test_other_databases_give_the_series_of_redis_too(tmp_path, change, missing) -> None:
    databases = copy.deepcopy(DATABASES)
    change(databases)
    replies, over, _ = await over_gnmi(tmp_path, databases)
    assert not replies.faults
    assert shown(over) == shown(read_tables([as_tables(databases)], {}))
    assert not [name for name in shown(over) if name.startswith(missing)]


async def test_one_object_without_a_watermark_costs_its_kind_and_window_over_gnmi_alone(tmp_path) -> None:
    """The one thing that Redis says and gNMI does not: the server refuses a request if one of its keys does not exist."""
    databases = copy.deepcopy(DATABASES)
    counters = databases["COUNTERS_DB"]
    del counters[f"USER_WATERMARKS:{counters['COUNTERS_QUEUE_NAME_MAP']['Ethernet1:3']}"]
    replies, over, _ = await over_gnmi(tmp_path, databases)
    direct = shown(read_tables([as_tables(databases)], {}))
    assert not replies.faults
    assert set(direct) - set(shown(over)) == {
        f"queue_watermark_bytes Ethernet68 {queue} user" for queue in (3, 4)
    }
    assert not set(shown(over)) - set(direct)


def refusing(part: str, code: grpc.StatusCode) -> Callable[[GnmiQuestion], bytes]:
    def answer(asked: GnmiQuestion) -> bytes:
        if any(part in path for path in asked.paths) or part == asked.target:
            raise RefusedError(code, "not today")
        return reply(asked, DATABASES)

    return answer


@pytest.mark.parametrize(
    ("part", "sources"),
    [
        ("COUNTERS/Ethernet*/Queues", {"queue_counters"}),
        ("PriorityGroups", {"watermarks"}),
        ("USER_WATERMARKS", {"watermarks"}),
        ("STATE_DB", {"state", "transceivers"}),
        ("LLDP", {"lldp"}),
        ("COUNTERS/oid", {"priority_group_counters"}),
        (
            "COUNTERS_PG_NAME_MAP",
            {"port_counters", "queue_counters", "priority_group_counters", "watermarks"},
        ),
        ("BUFFER_PG_TABLE", {"configuration"}),
    ],
)
async def test_each_source_fails_alone(tmp_path, part, sources) -> None:
    answer = refusing(part, grpc.StatusCode.INTERNAL)
    replies, found, _ = await over_gnmi(tmp_path, DATABASES, answer)
    assert set(replies.faults) == sources
    assert all("INTERNAL: not today" in line for line in replies.faults.values())
    whole = shown((await over_gnmi(tmp_path, DATABASES))[1])
    assert {key: value for key, value in shown(found).items() if key in whole}
    assert set(found.sources) >= sources


async def test_without_configuration_replies_by_alias_cannot_be_used(tmp_path) -> None:
    answer = refusing("CONFIG_DB", grpc.StatusCode.INTERNAL)
    replies, found, _ = await over_gnmi(tmp_path, DATABASES, answer)
    assert replies.faults["port_counters"] == replies.faults["queue_counters"] == NO_ALIASES
    assert "configuration" in replies.faults
    assert "lldp_neighbor_info" in " ".join(shown(found))
    databases = copy.deepcopy(DATABASES)
    for port in ("Ethernet1", "Ethernet68"):
        del databases["CONFIG_DB"][f"PORT|{port}"]["alias"]

    def plain(asked: GnmiQuestion) -> bytes:
        return answer(asked) if asked.target == "CONFIG_DB" else reply(asked, databases)

    replies, found, _ = await over_gnmi(tmp_path, databases, plain)
    assert set(replies.faults) == {"configuration"}
    assert shown(found)["pfc_receive_frames_total Ethernet68 3"] == 4711


async def test_what_every_path_refuses_with_not_found_is_a_fault_where_every_sonic_has_it(tmp_path) -> None:
    answer = refusing("COUNTERS/Ethernet*", grpc.StatusCode.NOT_FOUND)
    replies, _, _ = await over_gnmi(tmp_path, DATABASES, answer)
    assert set(replies.faults) == {"port_counters", "queue_counters"}


async def test_stale_name_maps_of_the_server_are_a_fault(tmp_path) -> None:
    """After a breakout the server queries objects that no longer exist, and leaves all of them out."""

    def stale(asked: GnmiQuestion) -> bytes:
        virtual_paths = [path for path in asked.paths if path in PATHS]
        return (
            get_response((path_of(virtual_paths[0]), ietf({}))) if virtual_paths else reply(asked, DATABASES)
        )

    _, found, _ = await over_gnmi(tmp_path, DATABASES, stale)
    assert "none of the 2 ports has counters" in found.faults["port_counters"]


async def test_a_wrong_password_is_one_line_for_every_source(tmp_path) -> None:
    wrong = Login("reader", "wrong-but-secret")
    replies, found, asked = await over_gnmi(tmp_path, DATABASES, login=wrong, record=True)
    assert len(asked) == 1
    assert len(set(replies.faults.values())) == 1
    assert "check basic_auth" in replies.faults["port_counters"]
    assert wrong.password not in str(replies)
    assert not shown(found)


BAD: tuple[Any, ...] = (
    None,
    7,
    "x",
    [],
    ["x"],
    {},
    {"": {}},
    {"Ethernet68/1": 7},
    {"Ethernet68/1:3": None},
    {"PORT": []},
)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("Queues", "pfc_receive_frames_total"),
        ("PriorityGroups", "queue_transmit_packets_total"),
        ("NAME_MAP", "lldp_neighbor_info"),
        ("PORT", "info sonic 202411.7"),
        ("LLDP", "queue_transmit_packets_total"),
        ("oid", "pfc_receive_frames_total"),
        ("QUEUE_C", "queue_transmit_packets_total"),
    ],
)
async def test_documents_of_another_shape_cost_nothing_else(tmp_path, part, other) -> None:
    def answer(asked: GnmiQuestion) -> bytes:
        if any(part in path for path in asked.paths):
            return get_response(*((path_of(path), ietf(wrong[-1])) for path in asked.paths))
        return reply(asked, DATABASES)

    wrong: list[Any] = []
    async with gnmi_switch(answer, tmp_path) as switch:
        for bad in BAD:
            wrong.append(bad)
            visit = switch.visit(priorities="all")
            found = MODULE.read(await MODULE.query(visit), visit.target)
            assert any(name.startswith(other) for name in shown(found)), bad


async def test_a_configuration_that_hangs_leaves_the_rest(tmp_path, monkeypatch) -> None:
    """What is lossless is not waited for; the time of the visit is up when the others have their replies."""
    get, had = GnmiClient.get, set()

    async def noted(client: GnmiClient, source: str, database: str, paths: Sequence[str], **more: Any) -> Any:
        if database == "CONFIG_DB":
            await until(lambda: had >= {"COUNTERS/oid:", "LLDP_ENTRY_TABLE"})
            pass_time(HUNG_SECONDS)
        found = await get(client, source, database, paths, **more)
        had.update(path[:13] if "oid:" in path else path.partition("/")[0] for path in paths)
        return found

    async def answer(asked: GnmiQuestion) -> bytes:
        if asked.target == "CONFIG_DB":
            await asyncio.Event().wait()
        return reply(asked, DATABASES)

    monkeypatch.setattr(GnmiClient, "get", noted)
    monkeypatch.setattr(gnmi_requests.keys, "WAIT_SHARE", 0.0)
    replies, found, asked = await over_gnmi(tmp_path, DATABASES, answer)
    assert any("COUNTERS/oid:" in path for one in asked for path in one.paths)
    assert "no answer by the deadline" in replies.faults["configuration"]
    assert dict(found.faults)["port_counters"] == NO_ALIASES
    assert "lldp_neighbor_info" in " ".join(shown(found))
