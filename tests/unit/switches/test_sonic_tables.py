"""What the tables of a SONiC mean: the traps, one test each, and inputs that are broken in every way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonic_redis import recorded, values

from roce_exporter.catalog import CATALOG
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.sonic.facts import mac_of
from roce_exporter.switches.sonic.interpret import read_tables
from roce_exporter.switches.sonic.keys import NAME_MAPS, chosen_names, names_of
from roce_exporter.switches.sonic.lossless import lossless_of
from roce_exporter.switches.sonic.rows import numbers_of, ranges_with, reference, rows_of
from roce_exporter.switches.sonic.tables import (
    SOURCES,
    Fields,
    SonicGroup,
    SonicQueue,
    SonicTables,
    SonicWatermarks,
    fields_of,
    is_front_panel,
)

if TYPE_CHECKING:
    from roce_exporter.switches.readings import SwitchReadings

GROUP_DROPS = "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"
QUEUE_PEAK = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
CHASSIS = "roce_switch_lldp_neighbor_info"


def switch(**changes: Any) -> SonicTables:
    """A port with PFC on 3 and 4, its watchdog on, nothing special; fields of `changes` are merged into the tables."""
    plain = SonicTables(
        port_counters={"Ethernet0": {f"SAI_PORT_STAT_PFC_{n}_RX_PKTS": str(100 + n) for n in range(8)}},
        queue_counters={
            SonicQueue("Ethernet0", n): {"SAI_QUEUE_STAT_PACKETS": str(n), "PFC_WD_STATUS": "operational"}
            for n in range(8)
        },
        priority_group_counters={SonicGroup("Ethernet0", n): {GROUP_DROPS: str(n)} for n in range(8)},
        watermarks={
            "user": SonicWatermarks(
                {SonicQueue("Ethernet0", 3): {QUEUE_PEAK: "7"}}, {}, {"ingress_lossless_pool": {}}
            )
        },
        configuration={
            "PORT|Ethernet0": {"alias": "etp1"},
            "PORT_QOS_MAP|Ethernet0": {"pfc_enable": "3,4"},
            "PFC_WD|Ethernet0": {"action": "drop", "detection_time": "600", "restoration_time": "700"},
            "QUEUE|Ethernet0|3-4": {"wred_profile": "W"},
            "WRED_PROFILE|W": {"ecn": "ecn_all", "green_min_threshold": "1000"},
        },
        state={},
        lldp={},
    )
    merged = {
        name: {**(getattr(plain, name) or {}), **change} if isinstance(change, dict) else change
        for name, change in changes.items()
    }
    return replace(plain, **merged)


def read(*tables: SonicTables, priorities: str = "pfc", **faults: str) -> SwitchReadings:
    return read_tables(tables, faults, priorities)


def metric(name: str, *tables: SonicTables, **options: Any) -> dict[tuple[str, ...], Any]:
    return values(read(*tables, **options), f"roce_switch_{name}")


def port(**fields: str) -> dict[str, Fields]:
    return {"Ethernet0": fields}


def queue(number: int = 3, **fields: str) -> dict[SonicQueue, Fields]:
    return {SonicQueue("Ethernet0", number): fields}


# The traps of SONiC, in the order in which they are known.


def test_trap_1_numbers_are_those_of_the_database_and_nothing_is_subtracted() -> None:
    """`pfcstat -c` writes a file of its user, and a reload makes the CLI's differences negative."""
    first = metric("pfc_receive_frames_total", switch())
    less = metric("pfc_receive_frames_total", switch(port_counters=port(SAI_PORT_STAT_PFC_3_RX_PKTS="5")))
    assert (first["Ethernet0", "3"], less["Ethernet0", "3"]) == (103, 5)


def test_trap_2_an_estimate_is_never_under_the_name_of_a_measurement() -> None:
    both = {
        "EST_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "200000",
        "SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US": "3",
    }
    tables = switch(port_counters=port(**both))
    assert metric("pfc_receive_pause_estimated_seconds_total", tables) == {("Ethernet0", "3"): 0.2}
    assert metric("pfc_receive_pause_seconds_total", tables) == {("Ethernet0", "4"): 3e-6}


def test_trap_3_a_duration_of_unknown_unit_is_not_exported() -> None:
    name = "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION"
    found = read(switch(port_counters=port(**{name: "777"})), priorities="all")
    assert 777 not in {value for reading in found.readings for value in reading.values.values()}
    assert not any(name in spelling.raw for row in CATALOG for spelling in row.spellings)


def test_trap_4_a_storm_is_the_status_and_not_the_difference_of_counts() -> None:
    counts = {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": "3", "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": "2"}
    over = switch(queue_counters=queue(PFC_WD_STATUS="operational", **counts))
    on = switch(queue_counters=queue(PFC_WD_STATUS="stormed", **(counts | dict.fromkeys(counts, "2"))))
    assert metric("pfc_watchdog_tripped", over)["Ethernet0", "3"] == 0
    assert metric("pfc_watchdog_tripped", on)["Ethernet0", "3"] == 1


def test_trap_5_discards_of_the_latest_storm_are_not_a_counter() -> None:
    fields = {
        "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": "300",
        "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS_LAST": "200",
    }
    found = metric("pfc_watchdog_transmit_discards_total", switch(queue_counters=queue(**fields)))
    assert found == {("Ethernet0", "3"): 300}
    assert metric("pfc_watchdog_transmit_discards_total", switch()) == {}, "absent until the first storm"


def test_trap_6_a_watermark_that_is_not_polled_is_no_zero() -> None:
    assert metric("queue_watermark_bytes", switch()) == {("Ethernet0", "3", "user"): 7}
    off = {"FLEX_COUNTER_TABLE|QUEUE_WATERMARK": {"FLEX_COUNTER_STATUS": "disable"}}
    assert metric("queue_watermark_bytes", switch(configuration=off)) == {}


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("PORT", "pfc_receive_frames_total"),
        ("QUEUE", "queue_transmit_packets_total"),
        ("PG_DROP", "buffer_discards_total"),
    ],
)
def test_counters_that_are_no_longer_polled_are_left_out(group: str, name: str) -> None:
    assert metric(name, switch())
    off = {f"FLEX_COUNTER_TABLE|{group}": {"FLEX_COUNTER_STATUS": "disable"}}
    assert metric(name, switch(configuration=off)) == {}
    assert metric("pfc_watchdog_tripped", switch(configuration=off)), "the watchdog polls by itself"


def test_marks_that_the_asic_cannot_count_are_no_zero() -> None:
    counted = switch(queue_counters=queue(SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS="0"))
    assert metric("queue_ecn_marked_packets_total", counted) == {("Ethernet0", "3"): 0}
    key = "QUEUE_COUNTER_CAPABILITIES|WRED_ECN_QUEUE_ECN_MARKED_PKT_COUNTER"
    unable = replace(counted, state={key: {"isSupported": "false"}})
    assert metric("queue_ecn_marked_packets_total", unable) == {}


@pytest.mark.parametrize("text", ["", "-", "N/A"])
def test_trap_7_missing_is_not_zero(text: str) -> None:
    assert metric(
        "queue_transmit_packets_total", switch(queue_counters=queue(SAI_QUEUE_STAT_PACKETS=text))
    ) == {("Ethernet0", "4"): 4}


def test_trap_8_a_queue_is_not_a_priority() -> None:
    """Priority 3 uses queue 5 and group 6 here; the watchdog takes queue 3 all the same."""
    changed = switch(
        configuration={
            "PORT_QOS_MAP|Ethernet0": {"pfc_enable": "3", "pfc_to_queue_map": "M", "pfc_to_pg_map": "[X|G]"},
            "MAP_PFC_PRIORITY_TO_QUEUE|M": {"3": "5"},
            "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|G": {"3": "6"},
        }
    )
    assert metric("queue_info", changed) == {("Ethernet0", "3", "5", "6"): 1}
    assert metric("queue_transmit_packets_total", changed) == {("Ethernet0", "5"): 5}
    assert metric("buffer_discards_total", changed) == {("Ethernet0", "6"): 6}
    assert metric("pfc_watchdog_enabled", changed) == {("Ethernet0", "3"): 1}
    assert set(metric("pfc_watchdog_tripped", changed)) == {("Ethernet0", "3"), ("Ethernet0", "5")}


def test_trap_9_ports_have_sonic_s_names_and_the_alias_apart() -> None:
    assert metric("port_info", switch()) == {("Ethernet0", "etp1", ""): 1}


@pytest.mark.parametrize(
    "text",
    [
        "18446744073709551616",
        "18446744073709551615",
        "-1",
        "1.5",
        "NaN",
        "0x10",
        "1e3",
        "x" * 5000,
        "\uff11\uff12",
    ],
)
def test_trap_10_absurd_numbers_are_unreadable(text: str) -> None:
    tables = switch(queue_counters=queue(SAI_QUEUE_STAT_PACKETS=text))
    assert metric("queue_transmit_packets_total", tables)["Ethernet0", "3"] is None


def test_trap_11_times_are_microseconds_in_one_database_and_milliseconds_in_the_other() -> None:
    tables = switch(queue_counters=queue(PFC_WD_DETECTION_TIME="600000", PFC_WD_STATUS="operational"))
    assert metric("pfc_watchdog_detection_seconds", tables) == {
        ("Ethernet0", "3"): 0.6,
        ("Ethernet0", "4"): 0.6,
    }
    assert metric("pfc_watchdog_restoration_seconds", tables)["Ethernet0", "4"] == 0.7


def test_trap_12_internal_ports_and_names_that_two_asics_share() -> None:
    internal = ["Ethernet-BP0", "Ethernet-IB0", "Ethernet-Rec0", "PortChannel1", "eth0"]
    assert not any(map(is_front_panel, internal))
    first = switch(port_counters={name: {"SAI_PORT_STAT_PFC_3_RX_PKTS": "1"} for name in internal})
    second = replace(switch(port_counters=port(SAI_PORT_STAT_PFC_3_RX_PKTS="9")), namespace="asic1")
    found = metric("pfc_receive_frames_total", replace(first, namespace="asic0"), second)
    assert found == {("Ethernet0", "3"): 103, ("Ethernet0", "4"): 104}, "the first one has the port"
    inner = {"PORT|Ethernet0": {"role": "Int"}}
    assert metric("pfc_receive_frames_total", switch(configuration=inner)) == {}


def test_trap_12_pools_of_two_asics_are_two() -> None:
    pool = {"ingress_lossless_pool": {"SAI_BUFFER_POOL_STAT_WATERMARK_BYTES": "5"}}
    part = SonicTables(watermarks={"user": SonicWatermarks({}, {}, pool)})
    found = metric("pool_watermark_bytes", replace(part, namespace="asic0"), replace(part, namespace="asic1"))
    assert found == {(f"asic{n}/ingress_lossless_pool", "user"): 5 for n in range(2)}


def test_trap_12_virtual_output_queues_and_multicast_do_not_collide_with_unicast() -> None:
    kinds = ("UNICAST", "MULTICAST", "UNICAST_VOQ", "ALL", "NEW TYPE")
    queues = {SonicQueue("Ethernet0", 3, kind): {"SAI_QUEUE_STAT_PACKETS": "1"} for kind in kinds}
    labels = set(
        metric("queue_transmit_packets_total", replace(switch(), queue_counters=queues), priorities="all")
    )
    assert labels == {("Ethernet0", label) for label in ("3", "MC3", "VOQ3", "ALL3", "NEW TYPE-3")}
    assert set(metric("queue_transmit_packets_total", replace(switch(), queue_counters=queues))) == {
        ("Ethernet0", "3")
    }


def test_a_queue_of_all_packets_is_the_lossless_one_where_there_is_no_other() -> None:
    queues = {SonicQueue("Ethernet0", 3, "ALL"): {"SAI_QUEUE_STAT_PACKETS": "1"}}
    assert metric("queue_transmit_packets_total", replace(switch(), queue_counters=queues)) == {
        ("Ethernet0", "3"): 1
    }


def test_trap_13_a_tripped_watchdog_is_shown_with_the_discards_that_it_causes() -> None:
    tables = switch(queue_counters=queue(PFC_WD_STATUS="stormed", SAI_QUEUE_STAT_DROPPED_PACKETS="300"))
    found = read(tables)
    assert values(found, "roce_switch_pfc_watchdog_tripped")["Ethernet0", "3"] == 1
    assert values(found, "roce_switch_queue_discards_total")["Ethernet0", "3"] == 300


def test_trap_14_no_label_is_an_object_identifier() -> None:
    maps = recorded("switch-sonic")["counters_db"]
    names = names_of([maps[name] for name in NAME_MAPS])
    assert set(names.ports.values()) == {"Ethernet0", "Ethernet8", "Ethernet16"}
    assert all(oid.startswith("oid:") for oid in names.queues)
    assert SonicQueue("Ethernet0", 1, "MULTICAST") in names.queues.values(), "Ethernet0:9 of the name map"


def test_trap_15_priorities_are_apart_and_never_added_up() -> None:
    found = metric("pfc_receive_frames_total", switch(), priorities="all")
    assert found == {("Ethernet0", str(n)): 100 + n for n in range(8)}


def test_trap_16_the_interval_of_each_source_is_reported() -> None:
    table = {"POLL_INTERVAL": "10000", "FLEX_COUNTER_STATUS": "enable"}
    rows = {"FLEX_COUNTER_TABLE|QUEUE": table, "FLEX_COUNTER_TABLE|PG_DROP": table | {"POLL_INTERVAL": "x"}}
    assert read(switch(configuration=rows)).renewals == {"queue_counters": 10.0}


# Settings.


def test_pfc_that_is_off_on_one_port_is_reported_for_the_priorities_of_the_others() -> None:
    more = switch(port_counters={"Ethernet4": {"SAI_PORT_STAT_PFC_3_RX_PKTS": "9"}})
    found = metric("pfc_enabled", more)
    assert found == {(name, n): int(name == "Ethernet0") for name in ("Ethernet0", "Ethernet4") for n in "34"}
    assert metric("pfc_receive_frames_total", more)["Ethernet4", "3"] == 9


def test_an_unclear_list_of_priorities_is_a_fault_and_not_off() -> None:
    tables = switch(configuration={"PORT_QOS_MAP|Ethernet0": {"pfc_enable": "3,4,x"}})
    found = read(tables)
    assert "PORT_QOS_MAP|Ethernet0" in found.faults["configuration"]
    assert not values(found, "roce_switch_pfc_enabled")


def test_a_watchdog_that_is_not_configured_is_off() -> None:
    tables = switch()
    rows = {key: row for key, row in (tables.configuration or {}).items() if not key.startswith("PFC_WD")}
    off = replace(tables, configuration=rows)
    assert metric("pfc_watchdog_enabled", off) == {("Ethernet0", "3"): 0, ("Ethernet0", "4"): 0}
    assert metric("pfc_watchdog_detection_seconds", off) == {}


def test_the_watchdog_watches_only_the_priorities_of_its_own_list() -> None:
    rows = {"PORT_QOS_MAP|Ethernet0": {"pfc_enable": "3,4", "pfcwd_sw_enable": "4"}}
    assert metric("pfc_watchdog_enabled", switch(configuration=rows)) == {
        ("Ethernet0", "3"): 0,
        ("Ethernet0", "4"): 1,
    }


@pytest.mark.parametrize(("action", "acts"), [("drop", 1), ("forward", 1), ("alert", 0), ("explode", None)])
def test_what_the_watchdog_does(action: str, acts: int | None) -> None:
    tables = switch(configuration={"PFC_WD|Ethernet0": {"action": action, "detection_time": "1"}})
    assert metric("pfc_watchdog_acts", tables)["Ethernet0", "3"] == acts


def test_an_override_is_seen_in_the_configuration_and_on_a_queue() -> None:
    assert metric("pfc_watchdog_overridden", switch()) == {(): 0}
    rows = {"PFC_WD|GLOBAL": {"BIG_RED_SWITCH": "enable"}}
    assert metric("pfc_watchdog_overridden", switch(configuration=rows)) == {(): 1}
    field = switch(queue_counters=queue(BIG_RED_SWITCH_MODE="enable"), configuration=None)
    assert metric("pfc_watchdog_overridden", field) == {(): 1}
    assert metric("pfc_watchdog_overridden", switch(configuration=None)) == {}


@pytest.mark.parametrize(
    ("ecn", "marks"),
    [("ecn_all", 1), ("ecn_green", 1), ("ecn_none", 0), ("ecn_yellow", 0), ("ecn_purple", None)],
)
def test_ecn(ecn: str, marks: int | None) -> None:
    rows = {"WRED_PROFILE|W": {"ecn": ecn, "green_min_threshold": "1000", "green_drop_probability": "5"}}
    tables = switch(configuration=rows)
    assert metric("config_ecn_enabled", tables) == {("Ethernet0", queue): marks for queue in "34"}
    assert bool(metric("config_ecn_minimum_bytes", tables)) == bool(marks), (
        "thresholds of what is off mean nothing"
    )
    if marks:
        assert metric("config_ecn_probability_ratio", tables)["Ethernet0", "3"] == 0.05


def test_ecn_without_a_profile_is_off_and_without_any_row_unknown() -> None:
    off = switch(configuration={"QUEUE|Ethernet0|3-4": {"scheduler": "scheduler.1"}})
    assert set(metric("config_ecn_enabled", off).values()) == {0}
    rows = {key: row for key, row in (off.configuration or {}).items() if not key.startswith("QUEUE")}
    assert metric("config_ecn_enabled", replace(off, configuration=rows)) == {}


def test_a_profile_that_does_not_exist_is_a_fault() -> None:
    found = read(switch(configuration={"QUEUE|Ethernet0|3-4": {"wred_profile": "gone"}}))
    assert found.faults["configuration"] == "WRED_PROFILE|gone does not exist, and is in use"
    assert not values(found, "roce_switch_config_ecn_enabled")


@pytest.mark.parametrize(
    ("profile", "pool", "threshold"),
    [
        ({"static_th": "12121212"}, {}, 12121212),
        ({"dynamic_th": "0", "pool": "P"}, {"size": "1000"}, 500),
        ({"dynamic_th": "3", "pool": "[BUFFER_POOL|P]"}, {"size": "900"}, 800),
        ({"dynamic_th": "-3", "pool": "P"}, {"size": "900"}, 100),
        ({"dynamic_th": "0", "pool": "P"}, {}, None),
        ({"dynamic_th": "x", "pool": "P"}, {"size": "900"}, None),
    ],
)
def test_the_level_at_which_pause_is_sent(
    profile: dict[str, str], pool: dict[str, str], threshold: int | None
) -> None:
    rows = {
        "BUFFER_PG|Ethernet0|3-4": {"profile": "[BUFFER_PROFILE|B]"},
        "BUFFER_PROFILE|B": profile | {"xoff": "32768"},
        "BUFFER_POOL|P": pool,
    }
    tables = switch(configuration=rows)
    found = metric("buffer_pause_threshold_bytes", tables)
    assert found == ({} if threshold is None else {("Ethernet0", group): threshold for group in "34"})
    assert metric("buffer_headroom_bytes", tables) == {("Ethernet0", group): 32768 for group in "34"}


def test_a_profile_that_the_switch_has_chosen_by_itself() -> None:
    rows = {
        "BUFFER_PG|Ethernet0|3-4": {"profile": "NULL"},
        "BUFFER_PG_TABLE:Ethernet0:3-4": {"profile": "pg_lossless_100000_5m_profile"},
        "BUFFER_POOL|P": {"mode": "dynamic"},
    }
    state = {
        "BUFFER_PROFILE_TABLE|pg_lossless_100000_5m_profile": {"xoff": "9", "dynamic_th": "0", "pool": "P"},
        "BUFFER_POOL_TABLE|P": {"size": "100"},
    }
    tables = switch(configuration=rows, state=state)
    assert metric("buffer_headroom_bytes", tables)["Ethernet0", "3"] == 9
    assert metric("buffer_pause_threshold_bytes", tables)["Ethernet0", "3"] == 50
    assert not read(tables).faults


def test_a_key_of_several_ports_and_a_range() -> None:
    rows = rows_of({"QUEUE|Ethernet0,Ethernet4|2-4": {"wred_profile": "W"}, "PFC_WD|GLOBAL": {"x": "y"}})
    assert set(rows.queues) == {(port, n) for port in ("Ethernet0", "Ethernet4") for n in (2, 3, 4)}
    assert rows.watchdogs == {}
    assert [*numbers_of("3-4"), *numbers_of("7"), *numbers_of("x"), *numbers_of("4-3")] == [3, 4, 7]
    assert [*numbers_of("9" * 400)] == []


def test_every_range_that_can_hold_a_queue() -> None:
    found = list(ranges_with(frozenset({3, 4})))
    assert len(found) == len(set(found)) == 24
    assert {"3", "4", "3-4", "0-7", "2-3"} <= set(found)
    assert not {"0", "5-7", "2"} & set(found)


@pytest.mark.parametrize(
    ("text", "name"),
    [("W", "W"), ("[WRED_PROFILE|W]", "W"), ("[T:W]", "W"), ("NULL", ""), (None, ""), ("[NULL]", "")],
)
def test_references(text: str | None, name: str) -> None:
    assert reference(text) == name


# Neighbours.


def neighbor(**fields: str) -> dict[str, str]:
    entry = {f"lldp_rem_{name}": text for name, text in fields.items()}
    found = read(switch(lldp={"LLDP_ENTRY_TABLE:Ethernet0": entry}))
    (labels,) = [fact.labels for fact in found.facts if fact.row.name == CHASSIS]
    return dict(labels)


@pytest.mark.parametrize(
    ("subtype", "kind"),
    [("1", "name"), ("3", "mac"), ("5", "name"), ("7", "other"), ("", "other"), ("x", "other")],
)
def test_the_subtype_decides_what_a_port_id_is(subtype: str, kind: str) -> None:
    found = neighbor(port_id="02:00:5E:00:53:0A", port_id_subtype=subtype, sys_name="gpu-001")
    assert found["port_id_kind"] == kind
    assert found.get("neighbor_mac") == ("02:00:5e:00:53:0a" if kind == "mac" else None)
    assert found["neighbor_port"] == "02:00:5E:00:53:0A"


@pytest.mark.parametrize(
    ("text", "mac"),
    [
        ("02:00:5E:00:53:0A", "02:00:5e:00:53:0a"),
        ("02-00-5e-00-53-0a", "02:00:5e:00:53:0a"),
        ("0200.5e00.530a", "02:00:5e:00:53:0a"),
        ("0x02005e00530a", "02:00:5e:00:53:0a"),
        ("02:00:5e:00:53", ""),
        ("eth0", ""),
    ],
)
def test_mac_addresses(text: str, mac: str) -> None:
    assert mac_of(text) == mac


def test_texts_of_neighbours_become_printable_and_short() -> None:
    found = neighbor(
        port_id="\x1b[31mred\n\x00", sys_name="a" * 5000, port_desc="\u202eevil\r\nx 1", port_id_subtype="5"
    )
    assert found["neighbor_port"] == "[31mred"
    assert len(found["neighbor"]) == 256
    assert all(text.isprintable() for text in found.values())


def test_what_a_neighbour_does_not_say_is_left_out() -> None:
    assert neighbor(port_id="eth0", port_id_subtype="5", port_desc=" ", sys_name="") == {
        "port": "Ethernet0",
        "neighbor_port": "eth0",
        "port_id_kind": "name",
        "source": "lldp",
    }


def test_neighbours_of_the_management_port_are_left_out() -> None:
    tables = switch(lldp={"LLDP_ENTRY_TABLE:eth0": {"lldp_rem_sys_name": "x"}})
    assert [fact for fact in read(tables).facts if fact.row.name == CHASSIS] == []


# Sources and faults.


def test_each_source_can_be_missing() -> None:
    assert read(switch()).sources == (*SOURCES[:5],)
    for source in SOURCES:
        found = read(switch(**{source: None}), **{source: "away"})
        assert found.faults == {source: "away"}
        assert source in found.sources
        assert source == "configuration" or not any(reading.source == source for reading in found.readings)


def test_a_table_that_was_not_queried_is_no_source() -> None:
    found = read(SonicTables(lldp={"LLDP_LOC_CHASSIS": {"lldp_loc_sys_name": "leaf9"}}))
    assert (found.name, found.sources, dict(found.faults)) == ("leaf9", ("lldp",), {})


def test_queues_whose_polling_was_never_enabled_are_no_fault() -> None:
    assert "queue_counters" not in read(switch(queue_counters=None)).sources
    found = read(replace(switch(), queue_counters={}))
    assert "queue_counters" not in (*found.faults, *found.sources)
    on = {"FLEX_COUNTER_TABLE|QUEUE": {"FLEX_COUNTER_STATUS": "enable"}}
    assert "queue_counters" in read(replace(switch(configuration=on), queue_counters={})).faults


def test_faults_of_doors_are_kept_and_lead() -> None:
    found = read(switch(port_counters=None), replace(switch(), port_counters={}), port_counters="asic0: away")
    assert found.faults["port_counters"] == "asic0: away"


def test_no_series_twice_and_no_label_empty() -> None:
    for priorities in ("pfc", "all"):
        found = read(switch(), replace(switch(), namespace="asic1"), priorities=priorities)
        plan = Interpreter("sonic").samples("d", found)
        assert len(plan.series) == len(set(plan.series))
        kept = sum(len(reading.values) for reading in found.readings) + len(found.facts)
        assert kept == len(plan.series), "every value has a row of the catalogue"


def test_only_lossless_queues_are_chosen_unless_all_are_wanted() -> None:
    tables = recorded("switch-sonic")
    names = names_of([tables["counters_db"][name] for name in NAME_MAPS])
    plan = lossless_of(rows_of(tables["config_db"]))
    lossless = chosen_names(names, plan, everything=False)
    assert len(lossless.queues) == len(lossless.groups) == 4
    assert chosen_names(names, plan, everything=True) is names
    assert len(chosen_names(names, None, everything=False).queues) == 3 * 8, "unicast, all priorities"


# Broken in every way: any mapping of texts gives readings, and never an exception.

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["3,4", "18446744073709551616", "NaN", "stormed", "[A|B]", "NULL", "3-4", "-1", "0", "ecn_all"]
    ),
)
FIELDS = st.sampled_from(
    sorted(
        {
            name
            for row in CATALOG
            for spelling in row.spellings
            if spelling.dialect == "sonic"
            for name in spelling.raw
        }
        | {
            "pfc_enable",
            "profile",
            "pool",
            "size",
            "dynamic_th",
            "static_th",
            "wred_profile",
            "lldp_rem_port_id",
        }
    )
)
HASHES = st.dictionaries(st.one_of(FIELDS, st.text(max_size=4)), TEXTS, max_size=6)
PORTS = st.one_of(st.sampled_from(["Ethernet0", "Ethernet4"]), st.text(max_size=5))
NUMBERS = st.integers(0, 300)
TABLES = st.sampled_from(
    ["PORT", "PFC_WD", "PORT_QOS_MAP", "QUEUE", "BUFFER_PG", "BUFFER_PROFILE", "WRED_PROFILE"]
)
KEYS = st.one_of(
    st.builds("{}|{}".format, TABLES, PORTS),
    st.builds("{}|{}|{}".format, TABLES, PORTS, TEXTS),
    st.builds("LLDP_ENTRY_TABLE:{}".format, PORTS),
    st.text(max_size=8),
)
QUEUES = st.builds(SonicQueue, PORTS, NUMBERS, st.sampled_from(["UNICAST", "MULTICAST", "ALL", "x"]))
GROUPS = st.builds(SonicGroup, PORTS, NUMBERS)
ROWS = st.one_of(st.none(), st.dictionaries(KEYS, HASHES, max_size=5))
BROKEN = st.builds(
    SonicTables,
    namespace=st.sampled_from(["", "asic0"]),
    port_counters=st.one_of(st.none(), st.dictionaries(PORTS, HASHES, max_size=3)),
    queue_counters=st.one_of(st.none(), st.dictionaries(QUEUES, HASHES, max_size=3)),
    priority_group_counters=st.one_of(st.none(), st.dictionaries(GROUPS, HASHES, max_size=3)),
    watermarks=st.one_of(
        st.none(),
        st.dictionaries(
            st.sampled_from(["user", "periodic"]),
            st.builds(
                SonicWatermarks,
                st.dictionaries(QUEUES, HASHES, max_size=2),
                st.dictionaries(GROUPS, HASHES, max_size=2),
                st.dictionaries(st.text(max_size=4), HASHES, max_size=2),
            ),
        ),
    ),
    configuration=ROWS,
    state=ROWS,
    lldp=ROWS,
)


@given(st.lists(BROKEN, max_size=2), st.sampled_from(["pfc", "all"]))
def test_no_table_raises(tables: list[SonicTables], priorities: str) -> None:
    found = read(*tables, priorities=priorities)
    assert set(found.faults) <= set(SOURCES)
    for reading in found.readings:
        assert reading.source in SOURCES
        assert all(value is None or (type(value) is int and value >= 0) for value in reading.values.values())
    assert all(
        text.isprintable() and len(text) <= 256 for fact in found.facts for text in fact.labels.values()
    )


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.floats(), st.text()), st.lists, max_leaves=4))
def test_a_hash_that_is_no_hash(value: object) -> None:
    assert fields_of(value) == {}
    kept = fields_of({"a": value})
    assert (kept == {}) == (value is None)
    assert all(isinstance(text, str) and len(text) <= 1024 for text in kept.values())


@pytest.mark.parametrize("table", ["counters_db", "config_db"])
def test_each_row_of_a_recording_can_be_lost(table: str) -> None:
    """Without any one hash, everything else is as before or absent, never another number."""
    tables = recorded("switch-sonic")
    names = names_of([tables["counters_db"][name] for name in NAME_MAPS])
    assert len(names.queues) == 30
    whole = numbers(tables)
    for key in tables[table]:
        rows = {name: fields for name, fields in tables[table].items() if name != key}
        for series, value in numbers(tables | {table: rows}).items():
            assert whole.get(series) == value or series[0] in SETTINGS, (key, series)


SETTINGS = {
    "roce_switch_pfc_enabled",
    "roce_switch_pfc_watchdog_enabled",
    "roce_switch_config_ecn_enabled",
    "roce_switch_info",
    "roce_switch_port_info",
}
"""What the absence of a row means: off, or a text less."""


def numbers(databases: dict[str, dict[str, Fields]]) -> dict[tuple[Any, ...], Any]:
    """The samples of tables as the Redis door builds them, without Redis."""
    counters = databases["counters_db"]
    names = names_of([counters.get(name, {}) for name in NAME_MAPS])

    def hashes(table: str, objects: dict[str, Any]) -> dict[Any, Fields]:
        return {name: counters.get(f"{table}:{oid}", {}) for oid, name in objects.items()}

    tables = SonicTables(
        port_counters=hashes("COUNTERS", dict(names.ports)),
        queue_counters=hashes("COUNTERS", dict(names.queues)),
        priority_group_counters=hashes("COUNTERS", dict(names.groups)),
        configuration=databases["config_db"],
        state=databases["state_db"],
        lldp=databases["appl_db"],
    )
    samples = Interpreter("sonic").samples("d", read(tables))
    return {
        (series.row.name, *series.labels): value
        for series, value in zip(samples.series, samples.values, strict=True)
    }


def test_the_recordings_are_texts_by_texts() -> None:
    for name in ("switch-sonic", "switch-sonic-asics/asic1", "switch-sonic-breakout/1"):
        for rows in recorded(name).values():
            assert all(isinstance(text, str) for fields in rows.values() for text in fields.values())
            assert json.loads(json.dumps(rows)) == rows
