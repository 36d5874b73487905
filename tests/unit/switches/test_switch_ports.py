"""The health of a switch's ports: values in the words of switches, a VOQ chassis, and neighbours that are missing."""

import math
from pathlib import Path
from typing import Any

import pytest
from sonic_redis import Tables, as_tables

from roce_exporter.catalog.named import SWITCH_NEIGHBOR_INFO
from roce_exporter.switches.interpretation import Interpreter, neighbor_readings
from roce_exporter.switches.readings import (
    LABEL_CHARACTERS,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    Unreadable,
    label_text,
)
from roce_exporter.switches.reply_values import (
    DIGITS_TO_7,
    STATES,
    PortScope,
    at_least_zero,
    fraction,
    is_absent,
    mac_address,
    neighbor,
    number,
    plain_mac,
    said,
    seconds,
    speed,
    switched,
    total,
    unix_time,
    watts,
    word,
)
from roce_exporter.switches.systems.openconfig import read as openconfig
from roce_exporter.switches.systems.sonic.read import read_tables

GARBAGE = Unreadable("garbage")
UNKNOWN = Unreadable("unknown_word")
OID = "oid:0x1000000000001"
PORT = "Ethernet0"


def switch(**rows: dict[str, str]) -> Tables:
    """A SONiC with one port; `rows` are more fields of PORT_TABLE, its counters, and so on."""
    return {
        "appl_db": {f"PORT_TABLE:{PORT}": rows.get("link", {}), **rows.get("lldp", {})},
        "counters_db": {
            "COUNTERS_PORT_NAME_MAP": {PORT: OID},
            f"COUNTERS:{OID}": {"SAI_PORT_STAT_PFC_3_RX_PKTS": "5", **rows.get("port", {})},
            f"RATES:{OID}": rows.get("rates", {}),
        },
        "config_db": {f"PORT_QOS_MAP|{PORT}": {"pfc_enable": "3"}, f"PORT|{PORT}": {}},
        "state_db": {
            f"PORT_OPERR_TABLE|{PORT}": rows.get("faults", {}),
            f"TRANSCEIVER_DOM_SENSOR|{PORT}": rows.get("light", {}),
        },
    }


def served(tables: Tables) -> dict[str, Any]:
    """Values by name of the metric, with the lane or queue where it has one."""
    samples = Interpreter("sonic").samples("leaf1", read_tables([as_tables(tables)], {}))
    return {
        "/".join((series.row.name.removeprefix("roce_switch_"), *series.labels[2:])): value
        for series, value in zip(samples.series, samples.values, strict=True)
    }


def test_the_state_of_a_link_is_in_base_units() -> None:
    link = {"oper_status": "down", "admin_status": "up", "speed": "400000", "mtu": "9216", "flap_count": "7"}
    times = {"last_up_time": "Sat Jan 18 00:04:42 2025", "last_down_time": "Sat Jan 18 00:08:42 2025"}
    found = served(switch(link={**link, **times}))
    assert {name: value for name, value in found.items() if name.startswith("link_")} == {
        "link_up": 0,
        "link_admin_up": 1,
        "link_speed_bytes_per_second": 50e9,
        "link_mtu_bytes": 9216,
        "link_changes_total": 7,
        "link_last_change_timestamp_seconds": 1737158922,
    }


def test_faults_and_errors_of_a_port_are_served() -> None:
    found = served(
        switch(
            link={"oper_status": "up"},
            port={
                "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES": "10",
                "SAI_PORT_STAT_IF_OUT_DISCARDS": "8",
            },
            faults={"mac_local_fault_count": "2", "fec_sync_loss_count": "1"},
            rates={"FEC_PRE_BER": "5.3e-10"},
        )
    )
    assert found["phy_fec_uncorrectable_blocks_total"] == 10
    assert found["phy_transmit_discards_total"] == 8
    assert found["phy_local_faults_total"] == 2
    assert found["phy_fec_sync_losses_total"] == 1
    assert found["phy_pre_fec_bit_error_ratio"] == 5.3e-10


def test_light_is_in_watts_per_lane_and_no_light_is_zero() -> None:
    light = {
        "rx1power": "-11.25",
        "rx2power": "-inf",
        "rx3power": "N/A",
        "rx4power": "0",
        "temperature": "61.75",
    }
    found = served(switch(light=light))
    assert math.isclose(found["transceiver_receive_power_watts/1"], 10**-1.125 / 1000)
    assert found["transceiver_receive_power_watts/2"] == 0
    assert "transceiver_receive_power_watts/3" not in found
    assert found["transceiver_receive_power_watts/4"] == 0.001
    assert found["transceiver_temperature_celsius"] == 61.75


def test_the_ports_of_a_breakout_have_their_own_lanes_of_the_module_that_they_share() -> None:
    tables = openconfig.tables_of(())
    for port, channels in (("Ethernet1/1", [0, 1]), ("Ethernet1/2", [2, 3])):
        tables[openconfig.INTERFACE][port,] = {"transceiver": "module", "physical-channel": channels}
    tables[openconfig.MODULE]["module",] = {"form-factor": "QSFP_DD"}
    for channel in range(4):
        tables[openconfig.LIGHT]["module", str(channel)] = {"instant": f"-{channel}.5"}
    found = [one for one in openconfig.port_readings(tables, bool) if one.source == "optics"]
    assert [[*one.values] for one in found] == [
        ["input-power-1", "input-power-2"],
        ["input-power-3", "input-power-4"],
    ]


def in_words(text: object) -> object:
    return word(text, STATES)


WORDS = {
    number: "0| 42 |18446744073709551614|1,234,567|18446744073709551615|18446744073709551616|-1|1.5|NaN|1e3|1,23|٣||12 Bytes|1,234B",
    switched: "Enabled|[Disabled]|Not Enabled|YES|No|perhaps",
    in_words: " [Up]\r\n|\tdown|?",
    fraction: " -61.75 |1e15|-1e15|999999999999999||0x10|1,5|nan|--3|1e999x",
    at_least_zero: "0|-0.1|x",
    watts: "-3| -Inf |60|60.1||nan|x",
    speed: "400G|SPEED_100MB| openconfig-if-ethernet:SPEED_1Tbps |1000|1,5|x",
    seconds: "2025-01-18T00:08:42Z|7|7.5|-7.5|x",
    unix_time: "2025-01-18T00:08:42Z| 2025-01-18T00:08:42 |2025-01-18T00:08:42.9-04:00|Sat Jan 18 00:08:42 2025",
    plain_mac: "0x001E.49ff-24 f7|02-00-5e-00-53-0a|001e49ff24f|eth0",
    mac_address: "001E.49ff.24f7|001e49ff24f7",
    said: " Not Advertised |x",
    is_absent: "|-|N/A| None |0|x",
}
NO_WORDS = {
    number: (7, True, 2**64, -1, 1.5, "1" * 5000, [], {}, None),
    switched: (True, 1, {"enabled": {}}, {"enabled": {}, "x": {}}),
    in_words: (1,),
    fraction: (True,),
    said: (7, 7.5),
    is_absent: (None, 0),
    total: ([2, "3", 4], [2, GARBAGE, UNKNOWN], [2**64 - 1, 1]),
    unix_time: ("Sat anF 18 00:08:42 2025", "Sat Jan 18 00:08:42 0000", "2025-13-18T00:08:42Z"),
}


def test_values_in_the_words_of_switches(golden) -> None:
    asked = [(read, words.split("|")) for read, words in WORDS.items()] + [*NO_WORDS.items()]
    lines = [
        f"{read.__name__}: {', '.join(f'{value!r:.60} = {read(value)!r}' for value in values)}\n"
        for read, values in asked
    ]
    golden(Path(__file__).parent / "golden/values.txt", "".join(lines))
    assert not any((GARBAGE, UNKNOWN)), "what cannot be read is false, like what is not there"


MAC, BOX = "00:1e:49:ff:24:f7", "00:1e:49:ff:24:00"


@pytest.mark.parametrize(
    ("port_id", "chassis", "more", "expected"),
    [
        ("001e.49ff.24f7", "001e.49ff.2400", {}, (BOX, MAC, MAC, "mac")),
        ("001e49ff24f7", "box", {"kind": "mac"}, ("box", MAC, MAC, "mac")),
        ("eth0", "box", {"kind": "mac"}, ("box", "eth0", "", "other")),
        ("eth0", "box", {}, ("box", "eth0", "", "name")),
        (MAC, "box", {"kind": "name"}, ("box", MAC, "", "name")),
        ("eth0", "box", {"kind": "other"}, ("box", "eth0", "", "other")),
        (None, None, {}, ("", "", "", "other")),
        (
            "001e.49ff.24f7",
            "001e.49ff.2400",
            {"as_said": True},
            ("001e.49ff.2400", "001e.49ff.24f7", MAC, "mac"),
        ),
    ],
)
def test_a_neighbour_as_it_announces_itself(port_id, chassis, more, expected) -> None:
    found = neighbor("p1", name="gpu-001", chassis=chassis, port_id=port_id, description="-", **more)
    names = ("neighbor_chassis", "neighbor_port", "neighbor_mac", "port_id_kind")
    assert (found.row, dict(found.labels)) == (
        SWITCH_NEIGHBOR_INFO,
        {"port": "p1", "neighbor": "gpu-001", "neighbor_description": "", "source": "lldp"}
        | dict(zip(names, expected, strict=True)),
    )


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (PortScope(True, frozenset(), frozenset()), ("01234567", "01234567")),
        (PortScope(False, frozenset("5"), frozenset("6")), ("5", "6")),
        (PortScope(False, frozenset("5"), frozenset("6"), off=True), ("34", "34")),
    ],
)
def test_which_priorities_and_queues_are_covered(scope, covered) -> None:
    found = (filter(scope.has_priority, DIGITS_TO_7), filter(scope.has_queue, DIGITS_TO_7))
    assert tuple(map("".join, found)) == covered


def test_a_chassis_reads_the_rows_of_its_own_line_card_and_the_drops_of_its_virtual_queues() -> None:
    tables = switch(link={"oper_status": "up"})
    metadata = {"switch_type": "voq", "hostname": "lc1", "asic_name": "asic0"}
    tables["config_db"] |= {
        "DEVICE_METADATA|localhost": metadata,
        f"QUEUE|lc1|asic0|{PORT}|3-4": {"wred_profile": "W"},
        f"QUEUE|lc2|asic0|{PORT}|3-4": {},
        "WRED_PROFILE|W": {"ecn": "ecn_all"},
    }
    counters = tables["counters_db"]
    counters["COUNTERS_VOQ_NAME_MAP"] = {f"lc2|asic0|{PORT}:{queue}": f"oid:0x15{queue}" for queue in (3, 5)}
    counters["COUNTERS_QUEUE_NAME_MAP"] = {f"{PORT}:3": "oid:0x99"}
    counters |= {f"COUNTERS:oid:0x15{queue}": {"SAI_QUEUE_STAT_DROPPED_PACKETS": "66"} for queue in (3, 5)}
    found = served(tables)
    assert found["config_ecn_enabled/3"] == 1
    # asic and port of this card's queue: labels after `asic`
    assert {name: value for name, value in found.items() if "voq" in name} == {
        f"voq_discards_total/lc2/{PORT}/3": 66
    }


def ports(*states: int, known: int = 0, **faults: str) -> SwitchReadings:
    """Ports with these states; the first `known` of them have a neighbour."""
    found = [
        SwitchReading("links", (("port", f"p{number}"),), {"oper_status": state})
        for number, state in enumerate(states)
    ]
    facts = tuple(SwitchFact(SWITCH_NEIGHBOR_INFO, {"port": f"p{number}"}) for number in range(known))
    return SwitchReadings(readings=tuple(found), facts=facts, faults=faults)


@pytest.mark.parametrize(("states", "known", "missing"), [((1, 1), 2, 0), ((1, 1), 0, 2), ((1, 0, 1), 1, 1)])
def test_ports_that_are_up_and_have_no_neighbour_are_counted(states, known, missing) -> None:
    *each, whole = neighbor_readings(ports(*states, known=known))
    assert whole.values == {"ports_without_neighbor": missing}
    assert [one.values["neighbor_known"] for one in each].count(0) == missing
    assert len(each) == sum(states)


def test_neighbours_that_could_not_be_read_are_unknown_and_not_missing() -> None:
    assert not list(neighbor_readings(ports(1, 1, lldp="no reply")))
    assert not list(neighbor_readings(SwitchReadings()))


# Numbers and words in the replies of switches: values, or the reason why they are none


def test_a_label_is_one_printable_line_of_limited_length() -> None:
    assert label_text("gpu\x1b[31m-001\n\tx\x00") == "gpu [31m-001 x"
    assert label_text("x" * 10**6) == "x" * LABEL_CHARACTERS
    assert label_text(7) == "7"
