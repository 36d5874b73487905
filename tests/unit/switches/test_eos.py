"""What EOS's replies mean, apart from the recorded ones: golden/switch-eos.*.txt has the series of those."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from switch_recordings import assert_sound, read_recorded, recorded, series

from roce_exporter.switches.doors.gnmi_faults import AbsentError
from roce_exporter.switches.doors.gnmi_paths import Leaf, path_of
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.modules import eos
from roce_exporter.switches.modules.eos import COMMANDS, PATHS, is_reading, request_of, result_of
from roce_exporter.switches.readings import SourceError, SwitchReadings

DOCUMENTS = recorded("switch-eos")


def without(source: str, part: str) -> dict[str, Any]:
    return {path: value for path, value in DOCUMENTS[source].items() if part not in path}


def readings(priorities: str = "pfc", **changed: Any) -> SwitchReadings:
    """A source that is None is left out."""
    kept = {source: ... if document is None else document for source, document in changed.items()}
    return read_recorded(eos, "switch-eos", priorities, **kept)


def shown(found: SwitchReadings) -> dict[str, float | None]:
    return series(found, "eos")


def starting(name: str, found: dict[str, float | None]) -> dict[str, float | None]:
    return {key.partition(" ")[2]: value for key, value in found.items() if key.partition(" ")[0] == name}


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


def test_no_watchdog_counter_is_0_only_while_the_watchdog_is_on() -> None:
    """EOS lists a queue with its first event."""
    trips = "pfc_watchdog_trips_total"
    assert starting(trips, shown(readings())) == {"Ethernet1/1 3": 2, "Ethernet3/1 3": 0, "Ethernet3/1 4": 0}
    off = {**DOCUMENTS["configuration"], "qos/pfc/watchdog/config/default-timeout": "0.00"}
    found = shown(readings(configuration=off))
    assert starting(trips, found) == {"Ethernet1/1 3": 2}
    assert starting("pfc_watchdog_enabled", found) == {
        "Ethernet1/1 3": 0,
        "Ethernet3/1 3": 0,
        "Ethernet3/1 4": 0,
    }
    assert not starting("pfc_watchdog_detection_seconds", found)
    for unknown in (without("configuration", "default-timeout"), None):
        found = shown(readings(configuration=unknown))
        assert starting(trips, found) == {"Ethernet1/1 3": 2}
        assert not starting("pfc_watchdog_enabled", found)


def test_without_pfc_from_gnmi_the_watchdog_counters_of_eapi_are_used() -> None:
    found = shown(readings(pfc=None, configuration=without("configuration", "timeout")))
    assert starting("pfc_watchdog_trips_total", found) == {"Ethernet1/1 3": 2}
    assert starting("pfc_watchdog_restores_total", found) == {"Ethernet1/1 3": 1}


@pytest.mark.parametrize(
    ("action", "acts"), [("DROP", 1), ("ERROR_DISABLE", 1), ("NOTIFY_ONLY", 0), ("INVALID", None)]
)
def test_the_action_of_the_watchdog(action: str, acts: int | None) -> None:
    found = shown(
        readings(configuration={**DOCUMENTS["configuration"], "qos/pfc/watchdog/config/action": action})
    )
    assert starting("pfc_watchdog_acts", found).get("Ethernet1/1 3") == acts


def test_without_configuration_priorities_with_frames_or_storms_count_as_such() -> None:
    frames = starting("pfc_receive_frames_total", shown(readings(configuration=None)))
    assert frames == {"Ethernet1/1 3": 4711, "Ethernet3/1 3": 20}


def test_marks_and_drops_are_one_row_from_two_doors_chosen_once() -> None:
    both, eapi = readings(), readings(queues=without("queues", "ecn-marked"))
    marks = "queue_ecn_marked_packets_total"
    assert starting(marks, shown(both)) == {"Ethernet1/1 3": 41, "Ethernet3/1 3": 41, "Ethernet3/1 4": 0}
    # "-" is no count
    assert starting(marks, shown(eapi)) == {"Ethernet1/1 3": 40, "Ethernet3/1 4": 2}
    kept = Interpreter("eos")
    series(both, "eos", kept)
    assert not starting(marks, series(eapi, "eos", kept)), (
        "another source for a series would be a counter reset"
    )
    drops = starting("queue_discards_total", shown(readings(queues=None)))
    assert drops == {"Ethernet1/1 3": 7, "Ethernet3/1 3": 0, "Ethernet3/1 4": 1}


def test_a_class_without_drop_precedences_has_no_drops() -> None:
    drops = copy.deepcopy(DOCUMENTS["queue_drops"])
    classes = drops["egressQueueCounters"]["interfaces"]["Ethernet1/1"]["ucastQueues"]["trafficClasses"]
    classes["TC3"] = {"dropPrecedences": {}}
    assert "Ethernet1/1 3" not in starting(
        "queue_discards_total", shown(readings(queues=None, queue_drops=drops))
    )
    classes["TC3"] = {"dropPrecedences": {"DP0": {"droppedPackets": 1}, "DP1": {"droppedPackets": -1}}}
    found = starting("queue_discards_total", shown(readings(queues=None, queue_drops=drops)))
    assert found["Ethernet1/1 3"] is None


@pytest.mark.parametrize("bad", [2**64, -1, "NaN", "1e3", "12x", 0.5, [], {}, "\u0663"])
def test_a_value_that_is_no_number_is_unreadable_and_not_absent(bad: Any) -> None:
    path = "interfaces/interface[name=Ethernet1/1]/ethernet/pfc/priorities/priority[index=3]/state/in-frames"
    found = shown(readings(pfc={**DOCUMENTS["pfc"], path: bad}))
    if bad == {}:  # a document without leaves
        assert "pfc_receive_frames_total Ethernet1/1 3" not in found
    else:
        assert found["pfc_receive_frames_total Ethernet1/1 3"] is None
    assert found["pfc_transmit_frames_total Ethernet1/1 3"] == 12


@pytest.mark.parametrize("bitmap", ["", "zz", "123", None, [], "-1"])
def test_a_bitmap_that_is_none(bitmap: Any) -> None:
    path = "qos/interfaces/interface[interface-id=Ethernet1/1]/output/pfc/config/priorities-no-drop"
    found = shown(readings(configuration={**DOCUMENTS["configuration"], path: bitmap}))
    assert set(starting("pfc_enabled", found).values()) <= {None, 1}
    assert starting("pfc_enabled", found)["Ethernet3/1 4"] == 1


def test_lldp_comes_from_gnmi_where_eapi_does_not_answer() -> None:
    with_eapi = starting("lldp_neighbor_info", shown(readings()))
    assert starting("lldp_neighbor_info", shown(readings(lldp=None))) == with_eapi
    found = readings(lldp={"other": {}})
    assert found.faults == {"lldp": "the reply has no lldpNeighbors: the switch's version is not supported"}
    assert starting("lldp_neighbor_info", shown(found)) == with_eapi


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
    assert "pfc_receive_frames_total Ethernet1/1 3" in shown(found)


def test_sources_are_those_that_answered_or_failed() -> None:
    others = dict.fromkeys(DOCUMENTS) | {"version": DOCUMENTS["version"], "pfc": SourceError("no answer")}
    found = readings(**others)
    assert found.sources == ("version", "pfc")
    assert shown(found) == {"info eos 4.36.1F DCS-7060X6-64PE-F": 1}


@pytest.mark.parametrize("source", PATHS)
def test_names_that_no_port_or_priority_has_are_harmless(source: str) -> None:
    odd = {
        path.replace("Ethernet1/1", "Ethernet\x00\n").replace("index=3", "index=x"): 1
        for path in DOCUMENTS[source]
    }
    assert_sound(readings("all", **{source: odd}), "eos")


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
