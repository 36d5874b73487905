"""Rules about a whole device: is it there, do its interfaces respond, what errors do it and its slot report, are its objects used up.

PCIe: errors (AER, PCIe Base Specification 6.2), width, speed, and whether the slot keeps up with the link.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from roce_exporter.catalog.kernel_events import EVENTS
from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.causes import CAUSES, MEDIUM, NAMED, Rule, Symptom, risen, rose, texts
from roce_exporter.checks.health.link_rules import is_unused
from roce_exporter.view.host_view import PortView, SeriesTrack
from roce_exporter.words import counted, duration, number, share, some

WINDOW = 900.0
"""Seconds for which an event of driver or device counts as recent, and in which queue pairs must be in error all the time: longer than a
job takes to end."""
OWNED = "roce_owner_queue_pairs"
CONNECTED = "connected"
"""In place of a direction: queue pairs that were connected, so that their addresses were resolved."""
BUSY = 1000.0
"""Packets per second of a port that carries a job's traffic."""
KINDS = (("qp", "queue pairs"), ("cq", "completion queues"), ("mr", "memory regions"))


def _in_error(device: PortView) -> Iterator[Symptom]:
    for track, now in device.current(OWNED):
        if track.labels["state"] != "ERR":
            continue
        recent = [(time, value) for time, value in track.points if time >= device.host.end - WINDOW]
        least = device.limit("queue_pairs_in_error", "queue_pairs")
        if min(value for _, value in recent) < least:
            continue
        before = ((device.host.begin, 0.0),) if track.points[0][0] > device.host.begin else ()
        device.changed(track._replace(points=(*before, *track.points)), least.__le__)
        seconds = device.host.end - recent[0][0]
        evidence = some(now, f"queue pairs of {track.labels['owner']} are in error")
        evidence += f", for at least {duration(seconds)}" if seconds else ""
        names = (f"roce_transport_{kind}_total" for kind in ("retries_exceeded", "ack_timeouts"))
        silent = any(device.rose(name, WINDOW) for name in names)
        working = device.tracks(OWNED, owner=track.labels["owner"], state="RTS")
        worked = any(one.points[0][1] > (one.now or 0.0) for one in working)
        side, way = Side.PEER if silent else None, CONNECTED if worked else ""
        yield Symptom("queue_pairs_in_error", (evidence,), side=side, direction=way)


def _exhausted(device: PortView) -> Iterator[Symptom]:
    for kind, what in KINDS:
        used, most = device.highest(f"roce_resource_{kind}"), device.highest(f"roce_resource_{kind}_limit")
        if used is not None and most and used / most > device.limit("resources_used", "ratio"):
            said = f"{used:,.0f} of {most:,.0f} {what} are in use"
            yield Symptom("resources_exhausted", (said,), weight=used / most)


DEVICE_EVENTS = {event: cause.name for cause in CAUSES for event in cause.events}
"""By name of the event. Left out: corrected PCIe errors, which are judged by their number, and what is part of normal operation."""

LASTING = frozenset({"recovery_failed", "power_cycle_required", "device_removed", "pcie_contained"})
"""Events that no message of a recovered device in the same round takes back."""
OF_DRIVERS = ("device_error", "driver_not_responding", "device_warning", "unknown_message")
"""What a driver says of a function that does not answer: of one that is taken away as of one that fails."""
WEAK = ("driver_warning", "host_stalled", "packet_damaged")
"""Events that make no port unfit by themselves."""
TITLES = {"lag_unanswered": "The other end of the LAG does not answer LACP: one link carries all traffic"}
PROOFS = ("health_syndrome", "memory_error", "power_cycle_required")
"""Events of a fault of the device itself."""
LEAVING = 60.0
"""Seconds from them until the function is gone."""
VIRTUAL = "vf"
MEANINGS = {event.name: event.meaning for event in EVENTS}
SOURCE_UP = "roce_exporter_source_up"
LOG = "roce_kernel_log_events_total"
REPORTER = "roce_devlink_health_state"
REPORTER_ERRORS = "roce_devlink_health_errors_total"


def _absence(device: PortView) -> tuple[str, float, float] | None:
    """What the newest absence of the device means, when it was last seen before, and when again, or now; None if it was there for a while.

    A virtual function was most likely given to a container or a guest.
    """
    seen = {point[0] for track in device.tracks("roce_device_info") for point in track.points}
    times = [moment.time for moment in device.host.history if moment.values]
    gone = [time for time in times if seen and time not in seen and time > min(seen)]
    if not gone or device.host.end - gone[-1] >= WINDOW:
        return None
    left = max(time for time in seen if time < gone[-1])
    if back := [time for time in seen if time > gone[-1]]:
        return "restarted", left, min(back)
    is_virtual = device.label("roce_device_info", "function") == VIRTUAL
    return "taken_away" if is_virtual else "device_vanished", left, device.host.end


def _vanished(device: PortView) -> Iterator[Symptom]:
    """A device that is gone, or that was gone meanwhile."""
    if found := _absence(device):
        cause, left, back = found
        device.host.moved.append((left, back))
        gone = f"it was gone for up to {duration(back - left)}"
        lost = f"last seen {duration(back - left)} ago; other series are still reported"
        yield Symptom(cause, (gone if cause == "restarted" else lost,))


TRAFFIC = ("receive_packets", "transmit_packets", "transmit_bytes")
"""Counters of a port that begin at 0 together only with their device."""


def _began_again(device: PortView) -> Iterator[Symptom]:
    """All counters of the traffic began at 0 between two moments in which the device was there: it was reset or loaded meanwhile."""
    tracks = [track for name in TRAFFIC for track in device.tracks(f"roce_port_{name}_total")]
    if len(tracks) < len(TRAFFIC) or _absence(device):
        return
    falls = [
        {
            (begin, end)
            for (begin, before), (end, after) in pairwise(track.points)
            if after < before / 2 and begin >= device.host.end - WINDOW
        }
        for track in tracks
    ]
    if spans := set.intersection(*falls):
        begin, end = max(spans)
        device.host.moved.append((begin, end))
        said = f"all its counters began at 0 within {duration(end - begin)}; it was there before and after"
        yield Symptom("restarted", (said,))


def _leaves(device: PortView, newest: float) -> str:
    """The cause of which a message of this time is the last word: a virtual function that goes in the same seconds, without a proof of a fault.

    mlx5's sensors 1 to 3 say that the function does not answer any more, which is what its PF does to it; 5 is followed by the syndrome.
    """
    cause, left, back = _absence(device) or ("", 0.0, 0.0)
    is_virtual = device.label("roce_device_info", "function") == VIRTUAL
    proven = any(device.events(LOG, WINDOW, event=one) for one in PROOFS)
    return cause if is_virtual and not proven and left - LEAVING <= newest <= back else ""


def _sources(device: PortView) -> Iterator[Symptom]:
    states = device.current(SOURCE_UP)
    down = [track for track, value in states if value == 0]
    for track in down:
        device.changed(track)
    reads = device.current("roce_exporter_sampler_stuck")
    if stuck := sorted({track.labels["netdev"] for track, value in reads if value}):
        said = f"a read of {', '.join(stuck)} does not return (roce_exporter_sampler_stuck)"
        yield Symptom("driver_not_responding", (said,))
    if not down:
        return
    names = sorted({track.labels["source"] for track in down})
    said = f"{len(down)} of {len(states)} interfaces fail: {', '.join(names)} (roce_exporter_source_up is 0)"
    worked = any(value for track in down for _, value in track.points)
    if len(down) == len(states) and len(states) > 1 and worked:
        yield Symptom("driver_not_responding", (said, "all of them worked before"))
    else:
        yield Symptom("source_broken", (said,))


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
    up = any(track.now for track in device.tracks("roce_port_up"))
    for event, usual in DEVICE_EVENTS.items():
        count = device.events(LOG, WINDOW, event=event)
        if not count or (event == "module_unplugged" and is_unused(device)):
            continue
        cause = "pause_received" if event == "pause_storm" and _is_victim(device) else usual
        newest = _newest(device, event)
        said = f"{some(count, 'messages')} of the kernel log within {duration(WINDOW)}: {MEANINGS[event]} ({event})"
        if cause in OF_DRIVERS and (left := _leaves(device, newest)):
            yield Symptom(left, (said,))
        elif NAMED[cause].health is Status.FAILED and event not in LASTING and recovered >= newest > 0:
            yield Symptom("device_warning", (said, "the driver has recovered the device since"))
        elif cause == "driver_not_responding" and responds and 0 < newest < device.host.end - MEDIUM:
            yield Symptom(cause, (said, "all its interfaces respond since"), until=newest)
        elif event.startswith(("module_", "link_")) and not up:
            yield Symptom(cause, (said,), until=0.0)  # of a link that is down it goes on
        else:
            # The slot offers less than the card asks for at its start, and the card works all the same.
            works = event == "slot_power_insufficient" and _works(device)
            note = works or event in WEAK
            evidence = texts(said, works and "its links are up and carry packets")
            yield Symptom(cause, evidence, note=note, title=TITLES.get(event, ""))


def _is_victim(device: PortView) -> bool:
    """Whether the device is paused more often than it pauses: ice says of both that its queues hang."""
    received, sent = (
        max(
            device.rose(f"roce_{kind}_{way}_{which}frames_total", WINDOW)
            for kind in ("pfc", "global_pause")
            for which in ("", "xoff_", "all_")
        )
        for way in ("receive", "transmit")
    )
    return received > sent


def _works(device: PortView) -> bool:
    """Whether all ports of the device are up and carry packets."""
    packets = "roce_port_receive_packets_total"
    mine = [port for port in device.host.ports() if port.device == device.device]
    ports = [(port.highest("roce_port_up"), port.rise(packets, MEDIUM)) for port in mine]
    return all(up and rise and rise.rate > BUSY for up, rise in ports)


def _devlink(device: PortView) -> Iterator[Symptom]:
    broken = {track.labels["reporter"] for track, value in device.current(REPORTER) if value}
    rises = {
        track.labels["reporter"]: rise.amount
        for track in device.tracks(REPORTER_ERRORS)
        if (rise := device.rise_of(REPORTER_ERRORS, track, WINDOW)) and rise.amount
    }
    for name in dict.fromkeys([*rises, *sorted(broken)]):
        error = name in broken and f"devlink's reporter {name} is in error"
        more = name in rises and f"devlink's reporter {name} counted {some(rises[name], 'errors')}"
        against = () if error else (f"reporter {name} recovered",)
        yield Symptom("device_error" if error else "device_warning", texts(error, more), against)


CORRECTED_EVENTS = 100.0
"""Corrected errors within the window of the alert: single ones are normal, this many wear the link out. No document gives a rate."""

CONGESTIONS = 3.0
"""Reports within `MEDIUM` that count: one is a burst."""

STALLS = (
    ("roce_pcie_write_stalled_seconds_total", "writes to memory"),
    ("roce_pcie_read_stalled_seconds_total", "reads from memory"),
)
WIDTH, WIDTH_MAX = "roce_pcie_link_width_lanes", "roce_pcie_link_width_max_lanes"
SPEED, SPEED_MAX = (
    "roce_pcie_link_speed_transfers_per_second",
    "roce_pcie_link_speed_max_transfers_per_second",
)


def _errors(device: PortView) -> Iterator[Symptom]:
    window = device.limit("pcie_errors", "window")
    corrected = device.rise("roce_pcie_correctable_errors_total", window)
    logged = device.events("roce_kernel_log_events_total", window, event="pcie_aer_correctable")
    many = max(corrected.amount if corrected else 0.0, logged)
    if many >= CORRECTED_EVENTS:
        yield Symptom("pcie_errors", (f"{number(many)} corrected errors within {duration(window)}",))


def _width(device: PortView) -> Iterator[Symptom]:
    now, most = device.highest(WIDTH), device.highest(WIDTH_MAX)
    if now is not None and most is not None and now < most:
        yield Symptom("pcie_narrow", (f"{now:.0f} of {most:.0f} lanes are in use",), weight=1 - now / most)


def _speed(device: PortView) -> Iterator[Symptom]:
    """A slower slot is permanent on a card that is newer than its board: a note, unless it fell or the slot limits the traffic."""
    now, most = device.highest(SPEED), device.highest(SPEED_MAX)
    if now is None or most is None or now >= most:
        return
    before = max(value for track in device.tracks(SPEED) for _, value in track.points)
    limits = stalled(device)
    said = f"{now / 1e9:g} GT/s per lane, the card supports {most / 1e9:g}"
    fell = before > now and f"it was {before / 1e9:g} GT/s before"
    yield Symptom("pcie_slow", texts(said, fell, *limits), note=not fell and not limits)


def stalled(port: PortView) -> list[str]:
    """A sentence per kind of access that waits for PCIe, or for each sign that PCIe is full; empty if none is seen."""
    found = []
    for name, what in STALLS:
        for track in port.tracks(name):
            rise = port.rise_of(name, track, MEDIUM)
            if rise and rise.rate > port.limit("pcie_stalls", "ratio"):
                part = share(min(rise.rate, 1.0))
                found.append(f"{what} were stalled in {part} of the seconds ({duration(rise.seconds)})")
    overflows = ("roce_pcie_buffer_overflows_total", "packets dropped because PCIe did not drain the NIC")
    found += [said for _, said in risen(port, (overflows,), port.limit("pcie_overflows", "window"))]
    for way in ("inbound", "outbound"):
        times = port.rise(f"roce_pcie_{way}_congestions_total", MEDIUM)
        if times and times.amount >= CONGESTIONS:
            found.append(rose(times, f"times the NIC reported {way} PCIe traffic as congested"))
    full = [way for way in ("inbound", "outbound") if port.highest(f"roce_pcie_{way}_congested")]
    return [*found, *(f"the NIC reports that {way} PCIe traffic is congested now" for way in full)]


def sees_stalls(port: PortView) -> bool:
    """Whether the driver reports PCIe stalls at all."""
    return any(port.current(name) for name, _ in STALLS) or bool(port.current("roce_pcie_inbound_congested"))


def _congestion(port: PortView) -> Iterator[Symptom]:
    evidence = stalled(port)
    if not evidence:
        return
    whole = port.current(WIDTH) and port.highest(WIDTH) == port.highest(WIDTH_MAX)
    against = whole and port.highest(SPEED) == port.highest(SPEED_MAX)
    rather = "width and speed of the slot are full: rather IOMMU, NUMA placement or memory"
    yield Symptom("pcie_congestion", tuple(evidence), texts(against and rather))


def _nic_heat(device: PortView) -> Iterator[Symptom]:
    limits = {
        track.labels["sensor"]: value
        for track, value in device.current("roce_temperature_critical_celsius")
        if value > 0
    }
    for track, value in device.current("roce_temperature_celsius"):
        sensor = track.labels["sensor"]
        if sensor in limits and value >= limits[sensor]:
            device.changed(track, limits[sensor].__le__)
            said = f"sensor {sensor} has {value:.0f} °C, {limits[sensor]:.0f} is critical"
            yield Symptom("too_hot", (said,))


PCIE_RULES: tuple[Rule, ...] = (_congestion,)
DEVICE_RULES: tuple[Rule, ...] = (
    *(_vanished, _began_again, _sources, _unreadable, _log, _devlink),
    *(_nic_heat, _errors, _width, _speed, _in_error, _exhausted),
)
"""Rules of a whole device."""
