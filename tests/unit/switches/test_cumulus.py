"""Cumulus Linux: NVUE's requests, and from its replies to readings. `tests/recordings/README.md` says what each was made of."""

from dataclasses import replace

import pytest
from https_switch import Says, https_switch, says
from switch_recordings import as_text, read_recorded, values
from switch_replay import nvue

from roce_exporter.switches import json_client as https
from roce_exporter.switches.readings import Unreadable
from roce_exporter.switches.reply_values import number as exact
from roce_exporter.switches.reply_values import switched as state
from roce_exporter.switches.systems.cumulus import requests as cumulus
from roce_exporter.switches.systems.cumulus.read import size

FOLDER = "switch-cumulus"


GARBAGE, UNKNOWN = Unreadable("garbage"), Unreadable("unknown_word")


@pytest.fixture(autouse=True)
def nothing_remembered():
    https.JARS.clear()
    cumulus.PER_PORT.clear()


# Values


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (exact, 4, 4),
        (exact, "4", 4),
        (exact, "0 Bytes", 0),
        (exact, "25000 B", 25_000),
        (exact, "1,024 Bytes", 1024),
        (exact, "75.19 KB", GARBAGE),
        (exact, "64 KB", GARBAGE),
        (exact, "-1 Bytes", GARBAGE),
        (exact, {}, GARBAGE),
        (size, 1_500_000, 1_500_000),
        (size, "40000 B", 40_000),
        (size, "146.48 KB", 149_996),
        (size, "153.00 KB", 156_672),
        (size, "1.43 MB", 1_499_464),
        (size, "2 GB", 2 * 1024**3),
        (size, "1.5 kB", GARBAGE),
        (size, "1.5 KiB", GARBAGE),
        (size, "KB", GARBAGE),
        (size, None, GARBAGE),
        (state, "enabled", 1),
        (state, "disable", 0),
        (state, "on", 1),
        (state, {"enabled": {}}, 1),
        (state, {"off": {}}, 0),
        (state, {}, UNKNOWN),
        (state, "maybe", UNKNOWN),
        (state, True, 1),
        (cumulus.is_port, "swp1", True),
        (cumulus.is_port, "swp12s3", True),
        (cumulus.is_port, "eth0", False),
        (cumulus.is_port, "bond1", False),
        (cumulus.is_port, "swp1.100", False),
        (cumulus.is_port, 1, False),
    ],
)
def test_what_is_printed_is_a_value_or_garbage(read, value, expected) -> None:
    """75.19 KB was printed for 76993 discarded frames: such a number would make a rate of steps. 150000 and 1500000 bytes, the defaults of ECN, are printed as 146.48 KB and 1.43 MB."""
    assert read(value) == expected


# Requests


async def readings_from(switch, **options):
    visit = switch.visit("cumulus", **options)
    replies = await cumulus.query(visit)
    found = cumulus.read(replies, visit.target)
    return replace(found, faults={**found.faults, **replies.faults})


async def test_twelve_requests_are_enough_where_the_filter_works(tmp_path) -> None:
    async with https_switch(nvue, tmp_path) as switch:
        found = await readings_from(switch)
        assert as_text(found) == as_text(read_recorded(cumulus, FOLDER))
        assert len(switch.asked) == 12
        assert switch.connections <= https.CONNECTIONS
        assert {asked.method for asked in switch.asked} == {"GET"}


@pytest.mark.parametrize("old", [False, True])
async def test_without_the_filter_counters_and_watchdog_come_from_each_port(tmp_path, old) -> None:
    async with https_switch(lambda asked: nvue(asked, filtered=False, old=old), tmp_path) as switch:
        await readings_from(switch)
        switch.asked.clear()
        found = await readings_from(switch)
        assert not [asked for asked in switch.asked if "include" in asked.path]
        assert switch.most_at_once <= https.CONNECTIONS
    absent = dict.fromkeys(("pfc", "congestion_control", "lldp_neighbors", "phy_detail", "transceivers"))
    whole = read_recorded(cumulus, FOLDER, **absent)
    assert as_text(found) == as_text(whole)


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_filter_that_is_refused_is_replaced_in_the_same_visit(tmp_path, status) -> None:
    def answer(asked):
        return Says(status=status) if "include" in asked.path else nvue(asked)

    async with https_switch(answer, tmp_path) as switch:
        found = await readings_from(switch)
    assert values(found, "counters", port="swp1", queue="3")["tx-frames"] == 1000
    assert values(found, "pfc_watchdog", port="swp1", queue="3")["status"] == 1


async def test_counters_of_some_ports_only_are_a_fault(tmp_path) -> None:
    def answer(asked):
        return Says(status=500) if asked.path.endswith("swp3/counters/qos") else nvue(asked, filtered=False)

    async with https_switch(answer, tmp_path) as switch:
        found = await readings_from(switch)
    assert "swp3" in found.faults["counters"]
    assert values(found, "pfc_watchdog", port="swp1", queue="3")


async def test_a_source_that_fails_for_now_is_no_reason_to_query_each_port(tmp_path) -> None:
    def answer(asked):
        return Says(status=503) if "counters" in asked.path else nvue(asked)

    async with https_switch(answer, tmp_path) as switch:
        found = await readings_from(switch)
        assert list(found.faults) == ["counters"]
        assert not cumulus.PER_PORT


async def test_a_port_name_from_a_reply_cannot_change_a_path(tmp_path) -> None:
    def answer(asked):
        if asked.path == "/nvue_v1/interface":
            return says({"swp1": {}, "../system": {}, "swp2?rev=x": {}, "swp3\r\nX: 1": {}})
        return nvue(asked, filtered=False)

    async with https_switch(answer, tmp_path) as switch:
        await readings_from(switch)
        asked = {asked.path for asked in switch.asked if asked.path.startswith("/nvue_v1/interface/")}
    assert asked == {"/nvue_v1/interface/swp1/counters/qos", "/nvue_v1/interface/swp1/qos/pfc-watchdog"}


async def test_a_list_without_switch_ports_is_a_fault(tmp_path) -> None:
    async with https_switch(lambda asked: says({"eth0": {}}), tmp_path) as switch:
        found = await readings_from(switch)
    assert "no switch port" in found.faults["counters"]


async def test_which_switches_have_no_filter_is_remembered_for_a_limited_number(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(cumulus, "MOST_TARGETS", 2)
    async with https_switch(lambda asked: nvue(asked, filtered=False), tmp_path) as switch:
        for name in ("a", "b", "c"):
            await readings_from(switch, name=name)
    assert {"c"} == cumulus.PER_PORT
