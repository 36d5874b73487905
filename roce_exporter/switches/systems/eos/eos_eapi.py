"""Readings of EOS from the results of eAPI commands. Their shapes are those in the tests of Arista's own tool, anta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.net import NetError
from roce_exporter.switches.numbers import is_absent, number
from roce_exporter.switches.readings import SwitchReading
from roce_exporter.switches.systems.eos.eos_gnmi import labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.switches.readings import RawNumber
    from roce_exporter.switches.systems.eos.eos_gnmi import EosView

CASTS = {"ucastQueues": "", "mcastQueues": "mc"}
STUCK = ("stuckCount", "recoveryCount")


def member(result: Any, name: str) -> dict[str, Any]:
    """An object of a result.

    Raises:
        NetError: the result does not have it: another version, or another command.
    """
    found = result.get(name) if isinstance(result, dict) else None
    if not isinstance(found, dict):
        raise NetError(f"the reply has no {name}: the switch's version is not supported")
    return found


def objects(parent: Any, name: str = "") -> dict[str, dict[str, Any]]:
    """The members of an object, or of one of its members, that are objects themselves; what is no object has none."""
    found = parent.get(name) if name and isinstance(parent, dict) else parent
    return (
        {key: value for key, value in found.items() if isinstance(value, dict)}
        if isinstance(found, dict)
        else {}
    )


def ecn_readings(result: Any, view: EosView) -> Iterator[SwitchReading]:
    """`show qos interfaces ecn counters queue`: marked packets per queue. A queue with "-" is not counted."""
    for port, interface in objects(member(result, "intfQueueCounters")).items():
        counters = interface.get("queueCounters")
        for queue, value in counters.items() if isinstance(counters, dict) else ():
            if view.wants(port, queue) and not is_absent(value):
                yield SwitchReading(
                    "ecn_counters", labels(port, "queue", queue), {"queueCounter": number(value)}
                )


def drop_readings(result: Any, view: EosView) -> Iterator[SwitchReading]:
    """`show interfaces counters queue drops`: drops per traffic class, whose queue has the same number by default."""
    for port, interface in objects(member(result, "egressQueueCounters"), "interfaces").items():
        for cast, prefix in CASTS.items():
            for name, traffic_class in objects(interface.get(cast), "trafficClasses").items():
                label = prefix + name.removeprefix("TC")
                precedences = objects(traffic_class, "dropPrecedences")
                if precedences and view.wants(port, label):
                    dropped = {"droppedPackets": _total(precedences)}
                    yield SwitchReading("queue_drops", labels(port, "queue", label), dropped)


def _total(precedences: dict[str, dict[str, Any]]) -> RawNumber:
    """The drops of all drop precedences; None if one of them is not a valid number."""
    total = 0
    for precedence in precedences.values():
        dropped = number(precedence.get("droppedPackets"))
        if dropped is None:
            return None
        total += int(dropped)
    return number(total)


def stuck_readings(result: Any, view: EosView) -> Iterator[SwitchReading]:
    """`show priority-flow-control counters watchdog`: an interface is listed with its first event only."""
    for port, interface in objects(member(result, "interfaces")).items():
        for queue, row in objects(interface, "txQueues").items():
            if view._replace(every=True).wants(port, queue):
                values = {name: number(row[name]) for name in STUCK if not is_absent(row.get(name))}
                yield SwitchReading("watchdog_counters", labels(port, "queue", queue), values)
