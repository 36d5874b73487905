"""What the tables of a SONiC mean: the traps, one case each, and inputs that are broken in every way.

Each case is a plain port with some fields changed; `golden/sonic-tables.txt` holds the series that this adds and removes.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonic_redis import as_tables, recorded, values
from switch_recordings import differences, series

from roce_exporter.introspection.debug import series_text
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.readings import SwitchReadings, Unreadable
from roce_exporter.switches.systems.sonic.keys import NAME_MAPS, names_of
from roce_exporter.switches.systems.sonic.read import read_tables
from roce_exporter.switches.systems.sonic.scope import lossless_of
from roce_exporter.switches.systems.sonic.tables import (
    CAPABILITIES,
    SOURCES,
    Fields,
    SonicGroup,
    SonicQueue,
    SonicTables,
    SonicWatermarks,
    fields_of,
    numbers_of,
    ranges_with,
    rows_of,
)

GROUP_DROPS = "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"
QUEUE_PEAK = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
GOLDEN = Path(__file__).parent / "golden/sonic-tables.txt"


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


def port(**fields: str) -> dict[str, Fields]:
    return {"Ethernet0": fields}


def queue(number: int = 3, **fields: str) -> dict[SonicQueue, Fields]:
    return {SonicQueue("Ethernet0", number): fields}


def queues(kind: str) -> dict[SonicQueue, Fields]:
    return {SonicQueue("Ethernet0", 3, kind): {"SAI_QUEUE_STAT_PACKETS": "1"}}


def configured(**rows: Fields) -> SonicTables:
    """Rows of the configuration by `TABLE__KEY`, where a key of two parts has two underlines too."""
    return switch(configuration={name.replace("__", "|"): row for name, row in rows.items()})


def without(prefix: str, **rows: Fields) -> SonicTables:
    """The plain port without the rows of a table."""
    tables = configured(**rows)
    return replace(
        tables,
        configuration={key: row for key, row in tables.configuration.items() if not key.startswith(prefix)},
    )


def not_polled(group: str) -> SonicTables:
    return switch(configuration={f"FLEX_COUNTER_TABLE|{group}": {"FLEX_COUNTER_STATUS": "disable"}})


def ecn(kind: str) -> SonicTables:
    return configured(
        WRED_PROFILE__W={"ecn": kind, "green_min_threshold": "1000", "green_drop_probability": "5"}
    )


def buffers(profile: Fields, pool: Fields) -> SonicTables:
    """The level at which pause is sent."""
    row = {"profile": "[BUFFER_PROFILE|B]"}
    return switch(
        configuration={
            "BUFFER_PG|Ethernet0|3-4": row,
            "BUFFER_PROFILE|B": profile | {"xoff": "32768"},
            "BUFFER_POOL|P": pool,
        }
    )


def neighbor(name: str = "Ethernet0", **fields: str) -> SonicTables:
    entry = {f"lldp_rem_{field}": text for field, text in fields.items()}
    return switch(lldp={f"LLDP_ENTRY_TABLE:{name}": entry})


MAPPED = {
    "PORT_QOS_MAP|Ethernet0": {"pfc_enable": "3", "pfc_to_queue_map": "M", "pfc_to_pg_map": "[X|G]"},
    "MAP_PFC_PRIORITY_TO_QUEUE|M": {"3": "5"},
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|G": {"3": "6"},
}
CHOSEN = {
    "BUFFER_PG|Ethernet0|3-4": {"profile": "NULL"},
    "BUFFER_PG_TABLE:Ethernet0:3-4": {"profile": "pg_lossless_100000_5m_profile"},
    "BUFFER_POOL|P": {"mode": "dynamic"},
}
CHOSEN_STATE = {
    "BUFFER_PROFILE_TABLE|pg_lossless_100000_5m_profile": {"xoff": "9", "dynamic_th": "0", "pool": "P"},
    "BUFFER_POOL_TABLE|P": {"size": "100"},
}
INTERNAL = ["Ethernet-BP0", "Ethernet-IB0", "Ethernet-Rec0", "PortChannel1", "eth0"]
ONE_FRAME = {"SAI_PORT_STAT_PFC_3_RX_PKTS": "1"}
POOL = SonicTables(
    watermarks={"user": SonicWatermarks({}, {}, {"lossless": {"SAI_BUFFER_POOL_STAT_WATERMARK_BYTES": "5"}})}
)
STORMS = {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": "3", "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": "2"}
LATEST = {"PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": "300", "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS_LAST": "200"}
ESTIMATE = {
    "EST_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "200000",
    "SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US": "3",
}
UNABLE = {"QUEUE_COUNTER_CAPABILITIES|WRED_ECN_QUEUE_ECN_MARKED_PKT_COUNTER": {"isSupported": "false"}}
POLLING = {"POLL_INTERVAL": "10000", "FLEX_COUNTER_STATUS": "enable"}
MARKED = queue(SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS="0")

CASES: dict[str, SonicTables | list[SonicTables]] = {
    "1: numbers are those of the database, whatever was before": switch(
        port_counters=port(SAI_PORT_STAT_PFC_3_RX_PKTS="5")
    ),
    "2: an estimate is never under the name of a measurement": switch(port_counters=port(**ESTIMATE)),
    "3: a duration of unknown unit is not exported": switch(
        port_counters=port(SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION="777")
    ),
    "4: a storm that has ended, whatever the counts say": switch(
        queue_counters=queue(PFC_WD_STATUS="operational", **STORMS)
    ),
    "4: a storm is the status": switch(
        queue_counters=queue(PFC_WD_STATUS="stormed", **dict.fromkeys(STORMS, "2"))
    ),
    "5: discards of the latest storm are not a counter": switch(queue_counters=queue(**LATEST)),
    "6: a watermark that is not polled is no zero": not_polled("QUEUE_WATERMARK"),
    "ports are no longer polled": not_polled("PORT"),
    "queues are no longer polled; the watchdog polls by itself": not_polled("QUEUE"),
    "drops are no longer polled": not_polled("PG_DROP"),
    "marks that are counted": switch(queue_counters=MARKED),
    "marks that the ASIC cannot count are no zero": replace(switch(queue_counters=MARKED), state=UNABLE),
    **{
        f"7: {text!r} is missing, not zero": switch(queue_counters=queue(SAI_QUEUE_STAT_PACKETS=text))
        for text in ("", "-", "N/A")
    },
    "8: priority 3 uses queue 5 and group 6; the watchdog takes queue 3": switch(configuration=MAPPED),
    **{
        f"10: {text[:30]} is unreadable": switch(queue_counters=queue(SAI_QUEUE_STAT_PACKETS=text))
        for text in (
            "18446744073709551616",
            "18446744073709551615",
            "-1",
            "1.5",
            "NaN",
            "0x10",
            "1e3",
            "x" * 5000,
            "\uff11\uff12",
        )
    },
    "11: microseconds in COUNTERS_DB": switch(
        queue_counters=queue(PFC_WD_DETECTION_TIME="600000", PFC_WD_STATUS="operational")
    ),
    "12: internal ports": switch(port_counters=dict.fromkeys(INTERNAL, ONE_FRAME)),
    "12: of two ASICs with one port the first has it": [
        replace(switch(), namespace="asic0"),
        replace(switch(port_counters=port(SAI_PORT_STAT_PFC_3_RX_PKTS="9")), namespace="asic1"),
    ],
    "12: an internal port by its role": configured(PORT__Ethernet0={"role": "Int"}),
    "12: pools of two ASICs are two": [replace(POOL, namespace="asic0"), replace(POOL, namespace="asic1")],
    "12: virtual output queues and multicast are no unicast": replace(
        switch(),
        queue_counters=queues("UNICAST")
        | queues("MULTICAST")
        | queues("UNICAST_VOQ")
        | queues("ALL")
        | queues("NEW TYPE"),
    ),
    "a queue of all packets where there is no other": replace(switch(), queue_counters=queues("ALL")),
    "13: a tripped watchdog and the discards that it causes": switch(
        queue_counters=queue(PFC_WD_STATUS="stormed", SAI_QUEUE_STAT_DROPPED_PACKETS="300")
    ),
    "16: the interval of each source": configured(
        FLEX_COUNTER_TABLE__QUEUE=POLLING, FLEX_COUNTER_TABLE__PG_DROP=POLLING | {"POLL_INTERVAL": "x"}
    ),
    "PFC that is off on one port, for the priorities of the others": switch(
        port_counters={"Ethernet4": ONE_FRAME}
    ),
    "an unclear list of priorities is a fault and not off": configured(
        PORT_QOS_MAP__Ethernet0={"pfc_enable": "3,4,x"}
    ),
    "a watchdog that is not configured is off": without("PFC_WD"),
    "the watchdog watches the priorities of its own list": configured(
        PORT_QOS_MAP__Ethernet0={"pfc_enable": "3,4", "pfcwd_sw_enable": "4"}
    ),
    **{
        f"the watchdog's action is {action}": configured(
            PFC_WD__Ethernet0={"action": action, "detection_time": "1"}
        )
        for action in ("drop", "forward", "alert", "explode")
    },
    "an override in the configuration": configured(PFC_WD__GLOBAL={"BIG_RED_SWITCH": "enable"}),
    "an override on a queue": switch(queue_counters=queue(BIG_RED_SWITCH_MODE="enable"), configuration=None),
    **{kind: ecn(kind) for kind in ("ecn_all", "ecn_green", "ecn_none", "ecn_yellow", "ecn_purple")},
    "a queue without a profile for ECN": configured(
        **{"QUEUE__Ethernet0__3-4": {"scheduler": "scheduler.1"}}
    ),
    "no row of a queue: ECN is unknown": without("QUEUE"),
    "a profile that does not exist is a fault": configured(
        **{"QUEUE__Ethernet0__3-4": {"wred_profile": "gone"}}
    ),
    "a fixed pause threshold": buffers({"static_th": "12121212"}, {}),
    "half of the pool": buffers({"dynamic_th": "0", "pool": "P"}, {"size": "1000"}),
    "eight ninths of the pool": buffers({"dynamic_th": "3", "pool": "[BUFFER_POOL|P]"}, {"size": "900"}),
    "a ninth of the pool": buffers({"dynamic_th": "-3", "pool": "P"}, {"size": "900"}),
    "a part of a pool without a size": buffers({"dynamic_th": "0", "pool": "P"}, {}),
    "a part that is no number": buffers({"dynamic_th": "x", "pool": "P"}, {"size": "900"}),
    "a profile that the switch has chosen by itself": switch(configuration=CHOSEN, state=CHOSEN_STATE),
    **{
        f"a neighbour's port id of subtype {subtype!r}": neighbor(
            port_id="02:00:5E:00:53:0A", port_id_subtype=subtype, sys_name="gpu-001"
        )
        for subtype in ("1", "3", "5", "7", "", "x")
    },
    "texts of neighbours become printable and short": neighbor(
        port_id="\x1b[31mred\n\x00", sys_name="a" * 300, port_desc="\u202eevil\r\nx 1", port_id_subtype="5"
    ),
    "what a neighbour does not say is left out": neighbor(
        port_id="eth0", port_id_subtype="5", port_desc=" ", sys_name=""
    ),
    "neighbours of the management port are left out": neighbor("eth0", sys_name="x"),
    "no queue was ever polled": replace(switch(), queue_counters={}),
    "queues are polled, and none was read": replace(
        configured(FLEX_COUNTER_TABLE__QUEUE={"FLEX_COUNTER_STATUS": "enable"}), queue_counters={}
    ),
    "queues were not queried": switch(queue_counters=None),
    "a table alone": SonicTables(lldp={"LLDP_LOC_CHASSIS": {"lldp_loc_sys_name": "leaf9"}}),
}
"""The numbers are those of the known traps of SONiC; `pfcstat -c`, for the first, writes a file of its user."""


def shown(*tables: SonicTables, priorities: str = "pfc", **faults: str) -> set[str]:
    """Series, sources, faults and intervals, a line each."""
    found = read(*tables, priorities=priorities, **faults)
    samples = Interpreter("sonic").samples("d", found)
    values = dict(zip(map(series_text, samples.series), samples.values, strict=True))
    return {
        *(f"{name.removeprefix('roce_switch_')} {value}" for name, value in values.items()),
        *(f"source {source} is there" for source in found.sources),
        *(f"fault of {source}: {text}" for source, text in found.faults.items()),
        *(f"{source} every {seconds} s" for source, seconds in found.renewals.items()),
    }


def test_every_case_is_as_worked_out_by_hand(golden) -> None:
    plain = shown(switch())
    parts = ["## the plain port", *sorted(plain)]
    for name, tables in CASES.items():
        found = shown(*(tables if isinstance(tables, list) else [tables]))
        parts += ["", f"## {name}", *differences(plain, found)]
    golden(GOLDEN, "\n".join(parts) + "\n")


def test_traps_12_and_15_all_priorities_and_kinds_of_queues_are_apart() -> None:
    found = values(read(switch(), priorities="all"), "roce_switch_pfc_receive_frames_total")
    assert found == {("Ethernet0", str(n)): 100 + n for n in range(8)}
    tables = CASES["12: virtual output queues and multicast are no unicast"]
    found = values(read(tables, priorities="all"), "roce_switch_queue_transmit_packets_total")
    assert {queue for _, queue in found} == {"3", "MC3", "VOQ3", "ALL3", "NEW TYPE-3"}


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


def test_each_source_can_be_missing() -> None:
    assert read(switch()).sources == (*SOURCES[:5],)
    for source in SOURCES:
        found = read(switch(**{source: None}), **{source: "away"})
        assert found.faults == {source: "away"}
        assert source in found.sources
        assert source == "configuration" or not any(reading.source == source for reading in found.readings)


# Broken in every way: any mapping of texts gives readings, and never an exception.

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["3,4", "18446744073709551616", "NaN", "stormed", "[A|B]", "NULL", "3-4", "-1", "0", "ecn_all"]
    ),
)
FIELDS = st.sampled_from(
    sorted(
        {name for rows in recorded("switch-sonic").values() for fields in rows.values() for name in fields}
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
def test_no_table_raises(tables, priorities) -> None:
    found = read(*tables, priorities=priorities)
    assert set(found.faults) <= set(SOURCES)
    for reading in found.readings:
        assert reading.source in SOURCES
        assert all(
            isinstance(value, Unreadable) or (type(value) is int and value >= 0)
            for value in reading.values.values()
        )
    assert all(
        text.isprintable() and len(text) <= 256 for fact in found.facts for text in fact.labels.values()
    )


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.floats(), st.text()), st.lists, max_leaves=4))
def test_a_hash_that_is_no_hash(value) -> None:
    assert fields_of(value) == {}
    kept = fields_of({"a": value})
    assert (kept == {}) == (value is None)
    assert all(isinstance(text, str) and len(text) <= 1024 for text in kept.values())


@pytest.mark.parametrize("table", ["counters_db", "config_db"])
def test_each_row_of_a_recording_can_be_lost(table) -> None:
    """Without any one hash, everything else is as before or absent, never another number."""
    tables = recorded("switch-sonic")
    names = names_of([tables["counters_db"].get(name, {}) for name in NAME_MAPS])
    assert len(names.queues) == 30
    whole = series(read(as_tables(tables)), "sonic")
    for key in tables[table]:
        rows = {name: fields for name, fields in tables[table].items() if name != key}
        for name, value in series(read(as_tables(tables | {table: rows})), "sonic").items():
            assert whole.get(name) == value or name.partition(" ")[0] in SETTINGS, (key, name)


SETTINGS = {"pfc_enabled", "pfc_watchdog_enabled", "config_ecn_enabled", "info", "port_info"}
"""What the absence of a row means: off, or a text less."""


def test_where_no_port_has_pfc_the_usual_priorities_are_shown_as_off() -> None:
    """A setting that is off is a value: the commonest wrong setting must not look like a healthy switch."""
    ports = {f"PORT|Ethernet{number}": {"lanes": "1"} for number in (0, 4)}
    for qos in ({}, {"PORT_QOS_MAP|Ethernet0": {"pfc_enable": ""}}):
        found = lossless_of(rows_of(ports | qos))
        assert not found.ports
        assert found.priorities == {3, 4}
        assert set(found.shown) == {"Ethernet0", "Ethernet4"}
        tables = SonicTables(
            "", configuration=ports | qos, port_counters={"Ethernet0": {"SAI_PORT_STAT_PFC_3_RX_PKTS": "7"}}
        )
        readings = read_tables((tables,), {}).readings
        off = {
            tuple(dict(one.labels).values()): one.values["pfc_enable"]
            for one in readings
            if "pfc_enable" in one.values
        }
        # A site may use any priority.
        assert off == {(port, str(priority)): 0 for port in found.shown for priority in range(8)}
        assert any(one.values.get("SAI_PORT_STAT_PFC_3_RX_PKTS") == 7 for one in readings)
    one = lossless_of(rows_of(ports | {"PORT_QOS_MAP|Ethernet4": {"pfc_enable": "5"}}))
    assert one.priorities == {5}
    assert set(one.shown) == {"Ethernet4"}


def test_what_the_switch_does_not_count_has_its_reason() -> None:
    assert read_tables([not_polled("WRED_ECN_QUEUE")], {}).missing == {("queue_counters", "disabled")}
    lacking = {key: {"isSupported": "false"} for key in CAPABILITIES.values()}
    assert read_tables([switch(state=lacking)], {}).missing == {("queue_counters", "unsupported")}
    assert read_tables([switch()], {}).missing == frozenset()
