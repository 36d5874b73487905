"""NX-OS: from replies to readings. No reply was recorded on a device; `tests/recordings/README.md` says what each was made of."""

from __future__ import annotations

import json
from functools import partial

import pytest
from https_switch import Says, https_switch
from switch_recordings import as_text, changed, paths, read_recorded, recorded, values
from switch_replay import nxapi

from roce_exporter.switches.doors import https
from roce_exporter.switches.modules import nxos
from roce_exporter.switches.modules.nxos_tables import (
    bitmap,
    command_body,
    counter,
    modules,
    port_name,
    qos_group,
    rows,
    switched,
)
from roce_exporter.switches.readings import SourceError

CLASSIC, CLOUD = "switch-nxos", "switch-nxos-cloudscale"


@pytest.mark.parametrize("folder", [CLASSIC, CLOUD])
def test_one_row_may_be_an_object_or_a_list_at_every_level(folder) -> None:
    def listed(node):
        if isinstance(node, list):
            return [listed(child) for child in node]
        if not isinstance(node, dict):
            return node
        return {
            key: [listed(child)]
            if key.startswith(("ROW_", "TABLE_")) and isinstance(child, dict)
            else listed(child)
            for key, child in node.items()
        }

    every_row_in_a_list = {source: listed(reply) for source, reply in recorded(folder).items()}
    assert as_text(read_recorded(nxos, folder, **every_row_in_a_list)) == as_text(read_recorded(nxos, folder))


@pytest.fixture(autouse=True)
def no_sessions():
    https.JARS.clear()


# Names and numbers


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ethernet1/1", "Ethernet1/1"),
        ("eth1/1", "Ethernet1/1"),
        ("Eth1/1/4", "Ethernet1/1/4"),
        ("Eth101/1/48", "Ethernet101/1/48"),
        ("Ethernet1/23 Interface PFC watchdog: [Enabled]", "Ethernet1/23"),
        ("Egress Queuing for Ethernet2/1 [System]", "Ethernet2/1"),
        ("ii1/1/1", ""),
        ("ii1/1/1 Interface PFC watchdog: [Enabled]", ""),
        ("Ethernet1/1.100", ""),
        ("mgmt0", ""),
        ("po10", ""),
        ("Ethernet", ""),
        ("xEthernet1/1", ""),
        ("Ethernet1/1/1/1/1", ""),
        ("Ethernet99999/1", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_ports_have_one_spelling(text, name) -> None:
    assert port_name(text) == name


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("3", "3"),
        ("3 ", "3"),
        (3, "3"),
        ("QOS GROUP 3", "3"),
        ("[3]", "3"),
        ("8", ""),
        ("13", ""),
        ("-", ""),
        ("CONTROL QOS GROUP", ""),
        ("CONTROL QOS GROUP 4", ""),
        ("SPAN QOS GROUP 5", ""),
        ("3-4", ""),
        ("1.5", ""),
        (None, ""),
        ({}, ""),
    ],
)
def test_groups_beyond_seven_are_control_and_span(text, group) -> None:
    assert qos_group(text) == group


@pytest.mark.parametrize(
    ("text", "priorities"),
    [
        ("On   (8)", {3}),
        ("Auto On  (9)", {0, 3}),
        ("On (20)", {5}),
        ("On (0x18)", {3, 4}),
        ("On (ff)", set(range(8))),
        ("On (0)", set()),
        ("Off", set()),
        ("Off (0)", set()),
        ("On", None),
        ("(8)", None),
        ("On (zz)", None),
        ("On (100)", None),
        ("", None),
        (None, None),
    ],
)
def test_the_bitmap_is_hexadecimal(text, priorities) -> None:
    assert bitmap(text) == (None if priorities is None else frozenset(priorities))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("4,088,353", 4_088_353),
        ("0", 0),
        (7, 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("18446744073709551000", None),
        ("-1", None),
        ("1.5", None),
        ("NaN", None),
        (1.5, None),
        ([], None),
    ],
)
def test_counters_above_two_to_the_63_are_not_plausible(value, number) -> None:
    assert counter(value) == number


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("Enabled", 1),
        ("[Disabled]", 0),
        ("Not Enabled", 0),
        ("YES", 1),
        ("No", 0),
        ("perhaps", None),
        (1, None),
    ],
)
def test_switches_in_the_words_of_nxos(text, flag) -> None:
    assert switched(text) == flag


def output(**changes) -> dict:
    return {"ins_api": {"outputs": {"output": {"code": "200", "msg": "Success", "body": {"a": 1}} | changes}}}


def test_the_envelope_of_a_command() -> None:
    assert command_body(output()) == {"a": 1}
    assert command_body({"ins_api": {"outputs": {"output": [output()["ins_api"]["outputs"]["output"]]}}}) == {
        "a": 1
    }
    assert (
        command_body(output(code="400", msg="Input CLI command error", clierror="% Invalid command\n"))
        is None
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (output(code="400", clierror="% Permission denied for the role\n"), "role of the user"),
        (output(code="500", msg="Backend processing error hunter2"), "code 500"),
        (output(code="<b>"), "code unknown"),
        ({}, "is this NX-API"),
        ([], "is this NX-API"),
        (None, "is this NX-API"),
        ({"ins_api": {"outputs": {"output": []}}}, "is this NX-API"),
        ({"ins_api": {"outputs": {"output": "x"}}}, "is this NX-API"),
    ],
)
def test_a_command_that_failed_is_one_line_without_its_text(reply, words) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        command_body(reply)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_of_other_forms_have_no_rows() -> None:
    for node in (None, [], "x", {"TABLE_a": "x"}, {"TABLE_a": {"ROW_a": ["x", None]}}, {"TABLE_a": [1]}):
        assert list(rows(node, "a")) == []
        with pytest.raises(SourceError, match="TABLE_module"):
            modules(node)


# Priorities, queues and groups


def test_a_queue_is_never_taken_for_a_priority() -> None:
    """CoS 3 is in qos-group 1 here."""
    reply = recorded(CLASSIC)["queuing_interface"]
    for path in paths(reply):
        if path[-1] == "pfc-qosgrp":
            reply = changed(reply, path, "1")
    found = read_recorded(nxos, CLASSIC, queuing_interface=reply, pfc_queue_detail=...)
    labels = next(dict(fact.labels) for fact in found.facts if fact.row.name == "roce_switch_queue_info")
    assert labels == {"port": "Ethernet1/2", "priority": "3", "queue": "1", "priority_group": "2"}
    assert values(found, "queuing_interface", port="Ethernet1/2", priority="3")["tx-pause-count"] == 7
    assert values(found, "queuing_interface", port="Ethernet1/2", queue="1") == {"rx-pause-state": 1}
    assert not values(found, "queuing_statistics", port="Ethernet1/2", queue="3")


def test_without_the_pfc_mode_priorities_with_frames_are_lossless() -> None:
    found = read_recorded(nxos, CLASSIC, priority_flow_control=SourceError("late"), pfc_queue_detail=...)
    assert values(found, "queuing_interface", port="Ethernet1/2", priority="3")
    assert not values(found, "queuing_interface", port="Ethernet1/2", priority="0")
    assert not values(found, "queuing_interface", port="Ethernet1/3/1", priority="3")
    assert values(found, "queuing_statistics", port="Ethernet1/2", queue="3")
    assert not values(found, "queuing_statistics", port="Ethernet1/2", queue="0")


def test_without_the_pfc_mode_priorities_in_the_watchdog_are_lossless() -> None:
    found = read_recorded(nxos, CLOUD, priority_flow_control=SourceError("late"), queuing_interface=...)
    assert values(found, "pfc_queue_detail", port="Ethernet1/51", queue="5")["q-shutdown"] == 0


def test_without_any_map_all_queues_of_a_port_with_pfc_are_covered() -> None:
    found = read_recorded(
        nxos, CLASSIC, queuing_interface=SourceError("late"), pfc_queue_detail=SourceError("late")
    )
    assert values(found, "queuing_statistics", port="Ethernet1/2", queue="0")
    assert values(found, "queuing_statistics", port="Ethernet1/2", queue="3")


# The watchdog


def test_a_watchdog_that_is_off_globally_is_off_everywhere() -> None:
    reply = recorded(CLASSIC)["pfc_queue_detail"]
    path = next(path for path in paths(reply) if path[-1] == "glb-wd-status")
    found = read_recorded(nxos, CLASSIC, pfc_queue_detail=changed(reply, path, "Disabled"))
    assert values(found, "pfc_queue_detail", port="Ethernet1/2", queue="3")["wd-status"] == 0


def test_the_queues_of_a_port_may_come_in_a_row_of_their_own() -> None:
    reply = recorded(CLOUD)["pfc_queue_detail"]
    module = reply["ins_api"]["outputs"]["output"]["body"]["TABLE_module"]["ROW_module"]
    row = module["TABLE_queuing_interface"]["ROW_queuing_interface"]
    queues = {"TABLE_qosgrp_stats": row.pop("TABLE_qosgrp_stats")}
    module["TABLE_queuing_interface"]["ROW_queuing_interface"] = [row, queues]
    assert as_text(read_recorded(nxos, CLOUD, pfc_queue_detail=reply)) == as_text(read_recorded(nxos, CLOUD))


def test_an_unknown_state_is_absent() -> None:
    reply = recorded(CLOUD)["pfc_queue_detail"]
    path = next(path for path in paths(reply) if path[-1] == "eq-qosgrp-state")
    for state in ("Not Applicable", "-", ""):
        found = read_recorded(nxos, CLOUD, pfc_queue_detail=changed(reply, path, state))
        assert "eq-qosgrp-state" not in values(found, "pfc_queue_detail", port="Ethernet1/51", queue="5")


# The DME


@pytest.mark.parametrize(
    ("reply", "cli"),
    [
        (..., True),
        (None, True),
        (SourceError(f"{nxos.REFUSED_DME}: status 403"), True),
        (SourceError("no complete reply within 5 s"), False),
        ({"imdata": [{"error": {"attributes": {"code": "500"}}}]}, False),
        ({"totalCount": "0", "imdata": []}, True),
    ],
)
def test_counters_of_the_command_line_replace_only_a_dme_that_is_not_there(reply, cli) -> None:
    """A DME that is late for once must not switch to counters that count differently: it would look like a reset."""
    found = read_recorded(nxos, CLASSIC, queuing_statistics=reply)
    queue = values(found, "queuing_interface", port="Ethernet1/2", queue="3")
    assert ("Tx Pkts" in queue) is cli
    if cli:
        assert (queue["Tx Pkts"], queue["Tx Byts"], queue["Dropped Pkts"]) == (1057, 105700, 6)


# Neighbours


def test_a_neighbour_with_control_characters_in_its_name() -> None:
    reply = recorded(CLASSIC)["lldp_neighbors"]
    path = next(path for path in paths(reply) if path[-1] == "sys_name")
    found = read_recorded(
        nxos, CLASSIC, lldp_neighbors=changed(reply, path, "gpu\x1b[31m\n-001\x00" + "x" * 999)
    )
    name = next(fact.labels["neighbor"] for fact in found.facts if "neighbor" in fact.labels)
    assert name.startswith("gpu [31m -001 xxx")
    assert len(name) == 256


@pytest.mark.parametrize("body", ["", [], {}, {"neigh_hdr": "neigh_hdr", "neigh_count": "0"}])
def test_no_neighbours_are_no_fault(body) -> None:
    found = read_recorded(nxos, CLASSIC, lldp_neighbors=output(body=body))
    assert "lldp_neighbors" in found.sources
    assert "lldp_neighbors" not in found.faults


# Requests


async def queried(folder, **replies):
    """The readings and faults of a visit to a switch that replays a recording with some replies replaced."""
    async with https_switch(partial(nxapi, replies=recorded(CLASSIC) | replies), folder) as switch:
        visit = switch.visit(seconds=30.0)
        got = await nxos.query(visit)
        return nxos.read(got, visit.target), got.faults


def envelope(**changes) -> bytes:
    return json.dumps(output(**changes)).encode()


@pytest.mark.parametrize("status", [400, 500])
async def test_newer_versions_refuse_a_command_over_http_too(tmp_path, status) -> None:
    """The usual document is in the body of the error: LLDP that is off is absent, not broken."""
    body = envelope(code="400", msg="Input CLI command error", clierror="% Invalid command\n")
    found, faults = await queried(tmp_path, lldp_neighbors=Says(body, status=status))
    assert not faults
    assert not found.faults
    assert "lldp_neighbors" not in found.sources


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (envelope(code="500", msg="Backend processing error"), "status 500"),
        (b"<html>500</html>", "status 500"),
        (b"", "status 500"),
        (b"x" * 200_000, "status 500"),
    ],
)
async def test_an_error_without_an_answer_of_the_command_keeps_its_status(tmp_path, body, words) -> None:
    found, faults = await queried(tmp_path, version=Says(body, status=500))
    assert words in faults["version"]
    assert values(found, "pfc_queue_detail", port="Ethernet1/2", queue="3")


@pytest.mark.parametrize("status", [400, 404])
async def test_without_a_dme_the_command_line_has_the_counters(tmp_path, status) -> None:
    found, faults = await queried(tmp_path, queuing_statistics=Says(status=status))
    assert not faults
    assert "queuing_statistics" not in found.sources
    assert values(found, "queuing_interface", port="Ethernet1/2", queue="3")["Tx Pkts"] == 1057


async def test_a_dme_that_fails_for_now_is_not_replaced(tmp_path) -> None:
    found, faults = await queried(tmp_path, queuing_statistics=Says(status=503))
    assert "overloaded" in faults["queuing_statistics"]
    assert "Tx Pkts" not in values(found, "queuing_interface", port="Ethernet1/2", queue="3")


async def test_a_dme_that_refuses_the_user_is_a_fault_and_replaced(tmp_path) -> None:
    found, faults = await queried(tmp_path, queuing_statistics=Says(status=403))
    assert "the role of the user" in faults["queuing_statistics"]
    assert values(found, "queuing_interface", port="Ethernet1/2", queue="3")["Tx Pkts"] == 1057


# Reading only


def test_only_the_show_commands_of_the_module_can_be_sent() -> None:
    assert all(nxos.only_show(nxos.show(command)) for command in nxos.COMMANDS.values())
    assert all(command.startswith("show ") and ";" not in command for command in nxos.COMMANDS.values())
    good = nxos.show("show version")
    assert not nxos.only_show(nxos.show("show version ; conf t"))
    assert not nxos.only_show(nxos.show("show running-config"))
    for path in paths(good):
        assert not nxos.only_show(changed(good, path, "cli_conf"))
        assert not nxos.only_show(changed(good, path, ...))
    assert not nxos.only_show(good | {"more": 1})
