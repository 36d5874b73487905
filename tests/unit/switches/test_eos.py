"""What EOS's replies mean: every series of the recorded switch, worked out by hand."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from recorded import files
from switch_recordings import assert_sound, damaged

from roce_exporter.switches.doors.gnmi_faults import AbsentError
from roce_exporter.switches.doors.gnmi_paths import Leaf, path_of
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.modules.eos import COMMANDS, MODULE, PATHS, is_reading, request_of, result_of
from roce_exporter.switches.readings import Replies, SourceError, SwitchReadings
from roce_exporter.switches.targets import SwitchTarget

DOCUMENTS = {source: json.loads(files("switch-eos")[f"{source}.json"]) for source in (*PATHS, *COMMANDS)}
RATES = "roce_switch_"


def target(priorities: str = "pfc") -> SwitchTarget:
    return SwitchTarget("spine1", "eos", "grpc", "192.0.2.1", {}, priorities=priorities)


def replies(**changed: Any) -> dict[str, Any]:
    """The recorded replies; a source that is None is left out."""
    documents = {**copy.deepcopy(DOCUMENTS), **changed}
    return {
        source: tuple(Leaf(path_of(path), value) for path, value in document.items())
        if source in PATHS
        else document
        for source, document in documents.items()
        if document is not None
    }


def without(source: str, part: str) -> dict[str, Any]:
    return {path: value for path, value in DOCUMENTS[source].items() if part not in path}


def readings(priorities: str = "pfc", **changed: Any) -> SwitchReadings:
    return MODULE.read(Replies(replies(**changed)), target(priorities))


def series(found: SwitchReadings, interpreter: Interpreter | None = None) -> dict[str, float | None]:
    """The series by name and labels, without the prefix of their names and without `device`."""
    samples = (interpreter or Interpreter(MODULE.dialect)).samples("leaf2", found)
    return {
        " ".join((one.row.name.removeprefix(RATES), *filter(None, one.labels[1:]))): value
        for one, value in zip(samples.series, samples.values, strict=True)
    }


def starting(name: str, found: dict[str, float | None]) -> dict[str, float | None]:
    return {key.partition(" ")[2]: value for key, value in found.items() if key.partition(" ")[0] == name}


def test_every_series_of_the_recorded_switch() -> None:
    found = readings()
    assert (found.name, dict(found.faults)) == ("leaf2", {})
    assert series(found) == {
        "info eos 4.36.1F DCS-7060X6-64PE-F": 1,
        "queue_info Ethernet1/1 3 3 3": 1,
        "queue_info Ethernet3/1 3 3 3": 1,
        "queue_info Ethernet3/1 4 4 4": 1,
        "port_info Ethernet1/1 gpu-001 eth0": 1,
        "port_info Ethernet2/1": 1,
        "port_info Ethernet3/1": 1,
        "lldp_neighbor_info Ethernet1/1 gpu-001 02:00:00:00:00:01 02:00:00:00:00:11 Interface 4 as eth0 "
        "02:00:00:00:00:11 mac lldp": 1,
        "lldp_neighbor_info Ethernet3/1 DC1-SPINE1.local.com 00:1c:73:a0:fc:18 Ethernet1 "
        "P2P_LINK_TO_DC1-LEAF1A_Ethernet1 name lldp": 1,
        "pfc_enabled Ethernet1/1 3": 1,
        "pfc_enabled Ethernet3/1 3": 1,
        "pfc_enabled Ethernet3/1 4": 1,
        "pfc_receive_frames_total Ethernet1/1 3": 4711,
        "pfc_transmit_frames_total Ethernet1/1 3": 12,
        "pfc_receive_pause_seconds_total Ethernet1/1 3": 1.5,
        "pfc_longest_pause_seconds Ethernet1/1 3": 0.25,
        "pfc_receive_transitions_total Ethernet1/1 3": 9,
        "buffer_discards_total Ethernet1/1 3": 5,
        "pfc_receive_frames_total Ethernet3/1 3": 20,
        "pfc_transmit_frames_total Ethernet3/1 3": 30,
        "pfc_receive_pause_seconds_total Ethernet3/1 3": 0.04,
        "pfc_longest_pause_seconds Ethernet3/1 3": 0.002,
        "pfc_receive_transitions_total Ethernet3/1 3": 20,
        "buffer_discards_total Ethernet3/1 3": 0,
        "pfc_receive_frames_total Ethernet3/1 4": 0,
        "pfc_transmit_frames_total Ethernet3/1 4": 0,
        "pfc_receive_pause_seconds_total Ethernet3/1 4": 0,
        "pfc_longest_pause_seconds Ethernet3/1 4": 0,
        "pfc_receive_transitions_total Ethernet3/1 4": 0,
        "buffer_discards_total Ethernet3/1 4": 0,
        "pfc_watchdog_trips_total Ethernet1/1 3": 2,
        "pfc_watchdog_restores_total Ethernet1/1 3": 1,
        **{
            f"pfc_watchdog_{name}_total Ethernet3/1 {queue}": 0
            for name in ("trips", "restores")
            for queue in (3, 4)
        },
        **{
            f"pfc_watchdog_{name} {queue}": value
            for queue in ("Ethernet1/1 3", "Ethernet3/1 3", "Ethernet3/1 4")
            for name, value in {
                "enabled": 1,
                "acts": 1,
                "detection_seconds": 0.2,
                "restoration_seconds": 1.0,
            }.items()
        },
        **{
            f"queue_{name}_total {queue}": value
            for queue in ("Ethernet1/1 3", "Ethernet3/1 3")
            for name, value in {
                "transmit_packets": 900,
                "transmit_bytes": 979200,
                "discards": 7,
                "wred_discards": 2,
                "ecn_marked_packets": 41,
            }.items()
        },
        **{
            f"queue_{name}_total Ethernet3/1 4": 0
            for name in (
                "transmit_packets",
                "transmit_bytes",
                "discards",
                "wred_discards",
                "ecn_marked_packets",
            )
        },
        **{
            f"config_ecn_{name} {queue}": value
            for queue in ("Ethernet1/1 3", "Ethernet3/1 3")
            for name, value in {
                "enabled": 1,
                "minimum_bytes": 512000,
                "maximum_bytes": 1500000,
                "probability_ratio": 0.2,
            }.items()
        },
    }


def test_all_priorities_and_queues() -> None:
    found = series(readings("all"))
    assert starting("pfc_enabled", found)["Ethernet1/1 4"] == 0
    assert starting("pfc_enabled", found)["Ethernet2/1 3"] == 0
    assert starting("pfc_receive_frames_total", found)["Ethernet2/1 3"] == 0
    assert starting("queue_transmit_packets_total", found)["Ethernet2/1 6"] == 50
    assert starting("queue_transmit_packets_total", found)["Ethernet2/1 mc1"] == 3
    assert starting("queue_discards_total", found)["Ethernet1/1 mc1"] == 0
    assert len(starting("pfc_enabled", found)) == 24


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
    whole = replies() | {source: (Leaf((), document(source)),) for source in PATHS}
    assert series(MODULE.read(Replies(whole), target())) == series(readings())


def test_no_watchdog_counter_is_0_only_while_the_watchdog_is_on() -> None:
    """EOS lists a queue with its first event."""
    trips = "pfc_watchdog_trips_total"
    assert starting(trips, series(readings())) == {"Ethernet1/1 3": 2, "Ethernet3/1 3": 0, "Ethernet3/1 4": 0}
    off = {**DOCUMENTS["configuration"], "qos/pfc/watchdog/config/default-timeout": "0.00"}
    found = series(readings(configuration=off))
    assert starting(trips, found) == {"Ethernet1/1 3": 2}
    assert starting("pfc_watchdog_enabled", found) == {
        "Ethernet1/1 3": 0,
        "Ethernet3/1 3": 0,
        "Ethernet3/1 4": 0,
    }
    assert not starting("pfc_watchdog_detection_seconds", found)
    for unknown in (without("configuration", "default-timeout"), None):
        found = series(readings(configuration=unknown))
        assert starting(trips, found) == {"Ethernet1/1 3": 2}
        assert not starting("pfc_watchdog_enabled", found)


def test_without_pfc_from_gnmi_the_watchdog_counters_of_eapi_are_used() -> None:
    found = series(readings(pfc=None, configuration=without("configuration", "timeout")))
    assert starting("pfc_watchdog_trips_total", found) == {"Ethernet1/1 3": 2}
    assert starting("pfc_watchdog_restores_total", found) == {"Ethernet1/1 3": 1}


@pytest.mark.parametrize(
    ("action", "acts"), [("DROP", 1), ("ERROR_DISABLE", 1), ("NOTIFY_ONLY", 0), ("INVALID", None)]
)
def test_the_action_of_the_watchdog(action: str, acts: int | None) -> None:
    found = series(
        readings(configuration={**DOCUMENTS["configuration"], "qos/pfc/watchdog/config/action": action})
    )
    assert starting("pfc_watchdog_acts", found).get("Ethernet1/1 3") == acts


def test_without_configuration_priorities_with_frames_or_storms_count_as_such() -> None:
    frames = starting("pfc_receive_frames_total", series(readings(configuration=None)))
    assert frames == {"Ethernet1/1 3": 4711, "Ethernet3/1 3": 20}


def test_marks_and_drops_are_one_row_from_two_doors_chosen_once() -> None:
    both, eapi = readings(), readings(queues=without("queues", "ecn-marked"))
    marks = "queue_ecn_marked_packets_total"
    assert starting(marks, series(both)) == {"Ethernet1/1 3": 41, "Ethernet3/1 3": 41, "Ethernet3/1 4": 0}
    # "-" is no count
    assert starting(marks, series(eapi)) == {"Ethernet1/1 3": 40, "Ethernet3/1 4": 2}
    kept = Interpreter(MODULE.dialect)
    series(both, kept)
    assert not starting(marks, series(eapi, kept)), "another source for a series would be a counter reset"
    drops = starting("queue_discards_total", series(readings(queues=None)))
    assert drops == {"Ethernet1/1 3": 7, "Ethernet3/1 3": 0, "Ethernet3/1 4": 1}


def test_a_class_without_drop_precedences_has_no_drops() -> None:
    drops = copy.deepcopy(DOCUMENTS["queue_drops"])
    classes = drops["egressQueueCounters"]["interfaces"]["Ethernet1/1"]["ucastQueues"]["trafficClasses"]
    classes["TC3"] = {"dropPrecedences": {}}
    assert "Ethernet1/1 3" not in starting(
        "queue_discards_total", series(readings(queues=None, queue_drops=drops))
    )
    classes["TC3"] = {"dropPrecedences": {"DP0": {"droppedPackets": 1}, "DP1": {"droppedPackets": -1}}}
    found = starting("queue_discards_total", series(readings(queues=None, queue_drops=drops)))
    assert found["Ethernet1/1 3"] is None


@pytest.mark.parametrize("bad", [2**64, -1, "NaN", "1e3", "12x", 0.5, [], {}, "\u0663"])
def test_a_value_that_is_no_number_is_unreadable_and_not_absent(bad: Any) -> None:
    path = "interfaces/interface[name=Ethernet1/1]/ethernet/pfc/priorities/priority[index=3]/state/in-frames"
    found = series(readings(pfc={**DOCUMENTS["pfc"], path: bad}))
    if bad == {}:  # a document without leaves
        assert "pfc_receive_frames_total Ethernet1/1 3" not in found
    else:
        assert found["pfc_receive_frames_total Ethernet1/1 3"] is None
    assert found["pfc_transmit_frames_total Ethernet1/1 3"] == 12


@pytest.mark.parametrize("bitmap", ["", "zz", "123", None, [], "-1"])
def test_a_bitmap_that_is_none(bitmap: Any) -> None:
    path = "qos/interfaces/interface[interface-id=Ethernet1/1]/output/pfc/config/priorities-no-drop"
    found = series(readings(configuration={**DOCUMENTS["configuration"], path: bitmap}))
    assert set(starting("pfc_enabled", found).values()) <= {None, 1}
    assert starting("pfc_enabled", found)["Ethernet3/1 4"] == 1


def test_lldp_comes_from_gnmi_where_eapi_does_not_answer() -> None:
    with_eapi = starting("lldp_neighbor_info", series(readings()))
    assert starting("lldp_neighbor_info", series(readings(lldp=None))) == with_eapi
    found = readings(lldp={"other": {}})
    assert found.faults == {"lldp": "the reply has no lldpNeighbors: the switch's version is not supported"}
    assert starting("lldp_neighbor_info", series(found)) == with_eapi


def test_names_that_a_host_announces_are_made_printable() -> None:
    lldp = copy.deepcopy(DOCUMENTS["lldp"])
    one = lldp["lldpNeighbors"]["Ethernet1/1"]["lldpNeighborInfo"][0]
    one["systemName"] = 'gpu\n\x1b[31m"\\\u202e' + "x" * 999
    one["neighborInterfaceInfo"] = {"interfaceIdType": "macAddress", "interfaceId_v2": "not a MAC"}
    fact = next(
        fact.labels
        for fact in readings(lldp=lldp).facts
        if fact.labels.get("port") == "Ethernet1/1" and "neighbor" in fact.labels
    )
    assert fact["neighbor"].startswith('gpu [31m"\\ xxx')
    assert len(fact["neighbor"]) == 256
    assert (fact["neighbor_port"], fact["neighbor_mac"], fact["port_id_kind"]) == ("not a MAC", "", "other")


def test_the_host_name_comes_from_either_door() -> None:
    assert readings(system=None).name == readings(hostname=None).name == "leaf2"
    assert readings(system=None, hostname=None).name == ""
    assert readings(system={"system/state/hostname": ["x"]}, hostname=None).name == ""


@pytest.mark.parametrize("source", ["ecn_counters", "queue_drops", "watchdog_counters"])
@pytest.mark.parametrize("result", [{}, {"errors": []}, {"interfaces": 7}])
def test_a_result_of_another_command_is_a_fault_and_the_others_go_on(source: str, result: Any) -> None:
    found = readings(**{source: result})
    assert list(found.faults) == [source]
    assert "pfc_receive_frames_total Ethernet1/1 3" in series(found)


def test_sources_are_those_that_answered_or_failed() -> None:
    found = MODULE.read(Replies({"version": DOCUMENTS["version"]}, {"pfc": "no answer"}), target())
    assert found.sources == ("version", "pfc")
    assert series(found) == {"info eos 4.36.1F DCS-7060X6-64PE-F": 1}


@pytest.mark.parametrize("source", [*PATHS, *COMMANDS])
def test_no_damage_raises_or_costs_another_source(source: str) -> None:
    kept = (source, "pfc", "lldp", "configuration")
    rest = {other: None for other in DOCUMENTS if other not in kept}
    document = DOCUMENTS[source]
    odd = {
        path.replace("Ethernet1/1", "Ethernet\x00\n").replace("index=3", "index=x"): 1 for path in document
    }
    for reply in (*damaged(document), *([odd] if source in PATHS else [])):
        found = readings("all", **{**rest, source: reply})
        assert_sound(found, MODULE.dialect)
        shown = series(found)
        assert source == "pfc" or shown["pfc_receive_frames_total Ethernet1/1 3"] == 4711
        assert source == "lldp" or len(starting("lldp_neighbor_info", shown)) == 2


@pytest.mark.parametrize("source", COMMANDS)
def test_commands_read_and_only_listed_ones_are_allowed(source: str) -> None:
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
        ({"error": {"code": 1005, "message": "authorization denied for hunter2"}}, SourceError),
        ({"error": {"code": "x"}}, SourceError),
        ({"result": []}, SourceError),
        ({"result": [{}, {}]}, SourceError),
        ({"result": ["text"]}, SourceError),
        ({}, SourceError),
        ([], SourceError),
    ],
)
def test_replies_of_eapi_without_a_result(reply: Any, kind: type[SourceError]) -> None:
    with pytest.raises(SourceError) as fault:
        result_of(reply)
    assert type(fault.value) is kind
    assert "hunter2" not in str(fault.value)
