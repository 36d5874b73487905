"""Rules about the objects of programs: queue pairs in error, and a device that runs out of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Side
from roce_exporter.checks.health import traffic_causes
from roce_exporter.checks.health.sign import Sign
from roce_exporter.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.sign import Rule
    from roce_exporter.view.host_view import PortView

WINDOW = 900.0
"""Seconds, or all of a shorter history, in which queue pairs must be in error all the time: longer than a job takes to end."""
IN_ERROR = "roce_owner_queue_pairs_in_error"
KINDS = (("qp", "queue pairs"), ("cq", "completion queues"), ("mr", "memory regions"))


def _in_error(device: PortView) -> Iterator[Sign]:
    for track, now in device.current(IN_ERROR):
        recent = [(time, value) for time, value in track.points if time >= device.host.end - WINDOW]
        if min(value for _, value in recent) < device.limit("RoceOwnerQueuePairsInError", "queue_pairs"):
            continue
        lasting = duration(device.host.end - recent[0][0])
        evidence = f"{now:.0f} queue pairs of {track.labels['owner']} are in error, for at least {lasting}"
        silent = device.rose("roce_transport_retries_exceeded_total", WINDOW) or device.rose(
            "roce_transport_ack_timeouts_total", WINDOW
        )
        yield Sign(traffic_causes.QUEUE_PAIRS_IN_ERROR, (evidence,), side=Side.PEER if silent else None)


def _exhausted(device: PortView) -> Iterator[Sign]:
    for kind, what in KINDS:
        used, most = device.highest(f"roce_resource_{kind}"), device.highest(f"roce_resource_{kind}_limit")
        if used is not None and most and used / most > device.limit("RoceResourcesNearlyExhausted", "ratio"):
            yield Sign(
                traffic_causes.RESOURCES_EXHAUSTED,
                (f"{used:,.0f} of {most:,.0f} {what} are in use",),
                weight=used / most,
            )


OWNER_RULES: tuple[Rule, ...] = (_in_error, _exhausted)
"""Rules of a whole device."""
