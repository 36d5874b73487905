"""NX-OS: from replies to readings. No reply was recorded on a device; `tests/recordings/README.md` says what each was made of."""

import json
from functools import partial

import pytest
from https_switch import Says, https_switch
from switch_recordings import as_text, changed, paths, read_recorded, recorded, values
from switch_replay import nxapi

from roce_exporter.net import NetError, ReplyBudget
from roce_exporter.switches import json_client as https
from roce_exporter.switches.readings import Unreadable
from roce_exporter.switches.systems.nxos import requests as nxos
from roce_exporter.switches.systems.nxos.ports import bitmap, command_body, counter, port_name, qos_group

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
    ("read", "value", "expected"),
    [
        (port_name, "Ethernet1/1", "Ethernet1/1"),
        (port_name, "eth1/1", "Ethernet1/1"),
        (port_name, "Eth1/1/4", "Ethernet1/1/4"),
        (port_name, "Eth101/1/48", "Ethernet101/1/48"),
        (port_name, "Ethernet1/23 Interface PFC watchdog: [Enabled]", "Ethernet1/23"),
        (port_name, "Egress Queuing for Ethernet2/1 [System]", "Ethernet2/1"),
        (port_name, "ii1/1/1", ""),
        (port_name, "ii1/1/1 Interface PFC watchdog: [Enabled]", ""),
        (port_name, "Ethernet1/1.100", ""),
        (port_name, "mgmt0", ""),
        (port_name, "po10", ""),
        (port_name, "Ethernet", ""),
        (port_name, "xEthernet1/1", ""),
        (port_name, "Ethernet1/1/1/1/1", ""),
        (port_name, "Ethernet99999/1", ""),
        (port_name, None, ""),
        (port_name, 7, ""),
        (qos_group, "3", "3"),
        (qos_group, "3 ", "3"),
        (qos_group, 3, "3"),
        (qos_group, "QOS GROUP 3", "3"),
        (qos_group, "[3]", "3"),
        (qos_group, "8", ""),
        (qos_group, "13", ""),
        (qos_group, "-", ""),
        (qos_group, "CONTROL QOS GROUP", ""),
        (qos_group, "CONTROL QOS GROUP 4", ""),
        (qos_group, "SPAN QOS GROUP 5", ""),
        (qos_group, "3-4", ""),
        (qos_group, "1.5", ""),
        (qos_group, None, ""),
        (qos_group, {}, ""),
        (bitmap, "On   (8)", frozenset("3")),
        (bitmap, "Auto On  (9)", frozenset("03")),
        (bitmap, "On (20)", frozenset("5")),
        (bitmap, "On (0x18)", frozenset("34")),
        (bitmap, "On (ff)", frozenset("01234567")),
        (bitmap, "On (0)", frozenset()),
        (bitmap, "Off", frozenset()),
        (bitmap, "Off (0)", frozenset()),
        (bitmap, "On", None),
        (bitmap, "(8)", None),
        (bitmap, "On (zz)", None),
        (bitmap, "On (100)", None),
        (bitmap, "", None),
        (bitmap, None, None),
        (counter, "4,088,353", 4_088_353),
        (counter, str(2**63 - 1), 2**63 - 1),
        (counter, str(2**63), Unreadable("out_of_range")),
        (counter, "NaN", Unreadable("garbage")),
    ],
)
def test_what_is_printed_is_a_value(read, value, expected) -> None:
    assert read(value) == expected


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


NO_OUTPUT = "the reply has no output of a command: is this NX-API?"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (
            output(code="400", clierror="% Permission denied for the role\n"),
            "the role of the user does not permit the command: network-operator does",
        ),
        (output(code="500", msg="Backend processing error hunter2"), "the command failed with code 500"),
        (output(code="<b>"), "the command failed with code unknown"),
        ({}, NO_OUTPUT),
        ([], NO_OUTPUT),
        (None, NO_OUTPUT),
        ({"ins_api": {"outputs": {"output": []}}}, NO_OUTPUT),
        ({"ins_api": {"outputs": {"output": "x"}}}, NO_OUTPUT),
    ],
)
def test_a_command_that_failed_is_one_line_without_its_text(reply, words) -> None:
    with pytest.raises(NetError) as caught:
        command_body(reply)
    assert str(caught.value) == words


# Forms


@pytest.mark.parametrize("repeated", [(), ("if_name_str", "intf-multi")])
def test_the_queues_of_a_port_may_come_in_a_row_of_their_own(repeated) -> None:
    reply = recorded(CLOUD)["pfc_queue_detail"]
    module = reply["ins_api"]["outputs"]["output"]["body"]["TABLE_module"]["ROW_module"]
    row = module["TABLE_queuing_interface"]["ROW_queuing_interface"]
    queues = {name: row[name] for name in repeated} | {"TABLE_qosgrp_stats": row.pop("TABLE_qosgrp_stats")}
    module["TABLE_queuing_interface"]["ROW_queuing_interface"] = [row, queues]
    assert as_text(read_recorded(nxos, CLOUD, pfc_queue_detail=reply)) == as_text(read_recorded(nxos, CLOUD))


# Requests


async def queried(folder, **replies):
    """The readings and faults of a visit to a switch that replays a recording with some replies replaced."""
    async with https_switch(partial(nxapi, replies=recorded(CLASSIC) | replies), folder) as switch:
        visit = switch.visit()
        got = await nxos.query(visit)
        return nxos.read(got, visit.target), got.faults


async def test_nx_api_and_the_dme_share_the_bounds_of_the_round(tmp_path, monkeypatch) -> None:
    made = []

    def budget(*bounds):
        made.append(ReplyBudget(*bounds))
        return made[-1]

    monkeypatch.setattr(https, "ReplyBudget", budget)
    _, faults = await queried(tmp_path)
    assert not faults
    assert len(made) == 1
    assert made[0].received >= sum(len(json.dumps(reply)) for reply in recorded(CLASSIC).values())


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


@pytest.mark.parametrize(
    ("status", "words", "cli"),
    [(400, "", True), (404, "", True), (503, "overloaded", False), (403, "the role of the user", True)],
)
async def test_the_command_line_replaces_a_dme_that_is_absent_or_refuses_but_not_one_that_is_late(
    tmp_path, status, words, cli
) -> None:
    found, faults = await queried(tmp_path, queuing_statistics=Says(status=status))
    assert words in faults.pop("queuing_statistics") if words else "queuing_statistics" not in found.sources
    assert not faults
    assert ("Tx Pkts" in values(found, "queuing_interface", port="Ethernet1/2", queue="3")) is cli


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
