"""Rules about driver and firmware: devices that vanish, interfaces that fail, errors that the device itself reports; queue pairs in error and objects used up."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from roce_exporter.catalog.kernel_events import EVENTS
from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.causes import NAMED
from roce_exporter.checks.health.symptom import MEDIUM, Symptom, texts
from roce_exporter.words import counted, duration, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.checks.health.symptom import Rule
    from roce_exporter.view.host_view import PortView, SeriesTrack

WINDOW = 900.0
"""Seconds for which an event of driver or device counts as recent, and in which queue pairs must be in error all the time: longer than a
job takes to end."""
OWNED = "roce_owner_queue_pairs"
KINDS = (("qp", "queue pairs"), ("cq", "completion queues"), ("mr", "memory regions"))


def _in_error(device: PortView) -> Iterator[Symptom]:
    for track, now in device.current(OWNED):
        if track.labels["state"] != "ERR":
            continue
        recent = [(time, value) for time, value in track.points if time >= device.host.end - WINDOW]
        if min(value for _, value in recent) < device.limit("queue_pairs_in_error", "queue_pairs"):
            continue
        lasting = duration(device.host.end - recent[0][0])
        evidence = f"{now:.0f} queue pairs of {track.labels['owner']} are in error, for at least {lasting}"
        silent = device.rose("roce_transport_retries_exceeded_total", WINDOW) or device.rose(
            "roce_transport_ack_timeouts_total", WINDOW
        )
        yield Symptom("queue_pairs_in_error", (evidence,), side=Side.PEER if silent else None)


def _exhausted(device: PortView) -> Iterator[Symptom]:
    for kind, what in KINDS:
        used, most = device.highest(f"roce_resource_{kind}"), device.highest(f"roce_resource_{kind}_limit")
        if used is not None and most and used / most > device.limit("resources_used", "ratio"):
            yield Symptom(
                "resources_exhausted",
                (f"{used:,.0f} of {most:,.0f} {what} are in use",),
                weight=used / most,
            )


OWNER_RULES: tuple[Rule, ...] = (_in_error, _exhausted)
"""Rules of a whole device."""


DEVICE_EVENTS: Mapping[str, str] = {
    **dict.fromkeys(
        ("firmware_fatal", "health_syndrome", "memory_error", "recovery_failed", "power_cycle_required"),
        "device_error",
    ),
    **dict.fromkeys(("command_timeout", "tx_timeout", "pcie_unreachable"), "driver_not_responding"),
    **dict.fromkeys(("health_warning", "firmware_reset", "device_reset", "driver_error"), "device_warning"),
    **dict.fromkeys(
        ("slot_power_fault", "slot_power_insufficient", "module_power_insufficient"),
        "power_insufficient",
    ),
    **dict.fromkeys(("module_unplugged", "module_error"), "module_fault"),
    **dict.fromkeys(("module_high_temperature", "device_high_temperature"), "too_hot"),
    "device_removed": "device_vanished",
    "pcie_contained": "pcie_fatal",
    "pcie_aer_uncorrectable": "pcie_errors",
    "pause_storm": "slow_receiver",
    "unknown_error": "unknown_message",
}
"""By name of the event. Left out: corrected PCIe errors, which are judged by their number, and what is part of normal operation."""


LASTING = frozenset({"recovery_failed", "power_cycle_required", "device_removed", "pcie_contained"})
"""Events that no message of a recovered device in the same round takes back."""
MEANINGS = {event.name: event.meaning for event in EVENTS}
VIRTUAL = "vf"
SOURCE_UP = "roce_exporter_source_up"
LOG = "roce_kernel_log_events_total"
REPORTER = "roce_devlink_health_state"
REPORTER_ERRORS = "roce_devlink_health_errors_total"


def _vanished(device: PortView) -> Iterator[Symptom]:
    """A device that is gone, or that was gone meanwhile. A virtual function was most likely given to a container or a guest."""
    seen = {point[0] for track in device.tracks("roce_device_info") for point in track.points}
    times = [moment.time for moment in device.host.history if moment.values]
    if not seen or not times:
        return
    gone = [time for time in times if time not in seen and time > min(seen)]
    if times[-1] not in seen:
        said = f"last seen {duration(device.host.end - max(seen))} ago; other series are still reported"
        is_virtual = device.label("roce_device_info", "function") == VIRTUAL
        device.host.moved.append((max(seen), device.host.end))
        yield Symptom("taken_away" if is_virtual else "device_vanished", (said,))
    elif gone and device.host.end - gone[-1] < WINDOW:
        back = min(time for time in seen if time > gone[-1])
        device.host.moved.append((gone[0], back))
        yield Symptom(
            "restarted",
            (f"it was gone for up to {duration(back - max(time for time in seen if time < gone[-1]))}",),
        )


def _sources(device: PortView) -> Iterator[Symptom]:
    states = device.current(SOURCE_UP)
    down = [track for track, value in states if value == 0]
    stuck = [
        track.labels["netdev"] for track, value in device.current("roce_exporter_sampler_stuck") if value
    ]
    if stuck:
        yield Symptom(
            "driver_not_responding",
            (f"a read of {', '.join(sorted(set(stuck)))} does not return (roce_exporter_sampler_stuck)",),
        )
    if not down:
        return
    names = sorted({track.labels["source"] for track in down})
    evidence = (
        f"{len(down)} of {len(states)} interfaces fail: {', '.join(names)} (roce_exporter_source_up is 0)"
    )
    worked = any(value for track in down for _, value in track.points)
    if len(down) == len(states) and len(states) > 1 and worked:
        yield Symptom("driver_not_responding", (evidence, "all of them worked before"))
    else:
        yield Symptom("source_broken", (evidence,))


def _unreadable(device: PortView) -> Iterator[Symptom]:
    """Values that cannot be read although their interface works: once is a device that was just removed or reset.

    Values that the device does not have ("not available") are unreadable, too, but count no error.
    """
    errors = {_source(track): value for track, value in device.current("roce_exporter_read_errors_total")}
    for track, count in device.current("roce_exporter_unreadable_values"):
        seen = len(track.points) > 1 or len(device.host.history) == 1
        lasting = seen and min(value for _, value in track.points[-2:]) > 0
        if count and lasting and errors.get(_source(track)) != 0:
            said = f"{counted(int(count), 'value')} of the source {track.labels['source']} cannot be read"
            yield Symptom("source_broken", (said,))


def _source(track: SeriesTrack) -> tuple[str, str]:
    return track.labels["source"], track.labels["netdev"]


def _newest(device: PortView, event: str) -> float:
    """When the newest message of this event was seen; 0 if none was while the device is watched."""
    return max(
        (
            time
            for track in device.tracks(LOG, event=event)
            for before, (time, value) in pairwise([(device.host.begin, 0.0), *track.points])
            if value > before[1] and time > device.host.begin
        ),
        default=0.0,
    )


def _log(device: PortView) -> Iterator[Symptom]:
    recovered = _newest(device, "device_recovered")
    # A driver that does not respond says so again with every command of the exporter, and its interfaces fail.
    responds = all(value for _, value in device.current(SOURCE_UP))
    for event, cause in DEVICE_EVENTS.items():
        count = device.events(LOG, WINDOW, event=event)
        if not count:
            continue
        newest = _newest(device, event)
        said = f"{number(count)} messages of the kernel log within {duration(WINDOW)}: {MEANINGS[event]} ({event})"
        if NAMED[cause].health is Status.FAILED and event not in LASTING and recovered >= newest > 0:
            yield Symptom("device_warning", (said, "the driver has recovered the device since"))
        elif cause == "driver_not_responding" and responds and 0 < newest < device.host.end - MEDIUM:
            yield Symptom(cause, (said, "all its interfaces respond since"), until=newest)
        else:
            yield Symptom(cause, (said,))


def _devlink(device: PortView) -> Iterator[Symptom]:
    broken = {track.labels["reporter"] for track, value in device.current(REPORTER) if value}
    for track in device.tracks(REPORTER_ERRORS):
        rise = device.rise_of(REPORTER_ERRORS, track, WINDOW)
        reporter = track.labels["reporter"]
        if reporter not in broken and not (rise and rise.amount):
            continue
        said = texts(
            [
                f"devlink's reporter {reporter} is in error" if reporter in broken else None,
                f"devlink's reporter {reporter} counted {number(rise.amount)} errors"
                if rise and rise.amount
                else None,
            ]
        )
        if reporter in broken:
            yield Symptom("device_error", said)
        else:
            yield Symptom("device_warning", said, (f"reporter {reporter} recovered",))
        broken.discard(reporter)
    for reporter in sorted(broken):
        yield Symptom("device_error", (f"devlink's reporter {reporter} is in error",))


DEVICE_DRIVER_RULES: tuple[Rule, ...] = (_vanished, _sources, _unreadable, _log, _devlink)
"""Rules of a whole device."""
