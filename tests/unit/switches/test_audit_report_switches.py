"""The audit of switches as a table and as JSON."""

from __future__ import annotations

import json

from fabric_views import MadeSwitch, views
from test_audit_switches import NVIDIA, leaf, set_right

from roce_exporter.checks.switches.audit_report import is_clean_switch, switches_json, switches_table
from roce_exporter.checks.switches.audit_switches import audit_switches


def table(switch: MadeSwitch) -> str:
    return switches_table(audit_switches(views(switch), NVIDIA), NVIDIA, colour=False)


def test_ports_with_equal_results_are_one_table() -> None:
    text = table(leaf())
    assert [line for line in text.splitlines() if line and not line.startswith(" ")] == [
        "leaf1",
        "leaf1 ports Ethernet0, Ethernet4",
        "profile nvidia-lossless: 19 ok, 0 wrong, 1 unreadable",
    ]
    assert "each its own" in next(line for line in text.splitlines() if "LLDP neighbour" in line)


def test_a_port_that_differs_has_a_table_with_reason_and_fix() -> None:
    lines = table(leaf().set("config_ecn_enabled", "Ethernet4", "3", value=0)).splitlines()
    start = lines.index("leaf1 port Ethernet4")
    (row,) = (line for line in lines[start:] if line.startswith("  WRONG"))
    assert row.split() == ["WRONG", "ECN", "on", "off"]
    assert "    fix: ecnconfig -q 3 on" in lines[start:]
    assert "leaf1 port Ethernet0" in lines


def test_many_ports_are_counted_and_not_all_named() -> None:
    switch = leaf()
    for number in range(8, 80, 4):
        switch.port(f"Ethernet{number}")
        set_right(switch, f"Ethernet{number}")
        switch.neighbor(f"Ethernet{number}", f"gpu-1{number}", "eth0")
        switch.set("buffer_headroom_bytes", f"Ethernet{number}", "3", value=0)
    text = table(switch)
    assert "Ethernet32, Ethernet36 and 10 more" in text
    assert (
        "config interface buffer priority-group lossless add Ethernet8 3 (likewise on the other ports)"
        in text
    )


def test_json_has_all_ports_and_the_commands_of_all_systems() -> None:
    verdicts = audit_switches(views(leaf().set("config_ecn_enabled", "Ethernet4", "3", value=0)), NVIDIA)
    document = json.loads(switches_json(verdicts, NVIDIA))
    assert document["ok"] is False
    assert document["summary"] == {"ok": 16, "wrong": 1, "unreadable": 1}
    (wrong,) = (one for one in document["checks"] if one["status"] == "wrong")
    assert wrong == {
        "device": "leaf1",
        "port": "Ethernet4",
        "check": "switch_ecn",
        "status": "wrong",
        "expected": "on",
        "found": "off",
        "why": wrong["why"],
        "mend": wrong["mend"],
    }
    assert set(wrong["mend"]) == {"generic", "sonic", "nxos", "eos", "cumulus"}
    assert {one["port"] for one in document["checks"]} == {"", "Ethernet0", "Ethernet4"}


def test_unreadable_is_clean_and_wrong_is_not() -> None:
    assert is_clean_switch(audit_switches(views(leaf().drop("config_ecn_enabled")), NVIDIA))
    wrong = leaf().set("config_ecn_enabled", "Ethernet4", "3", value=0)
    assert not is_clean_switch(audit_switches(views(wrong), NVIDIA))


def test_no_answer_is_said() -> None:
    assert switches_table((), NVIDIA, colour=False) == "profile nvidia-lossless: no switch answered\n"
