"""Rules about pause (IEEE 802.1Qbb, 802.3 annex 31B): which direction blocks, and who is slow."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.finding import Side
from roce_exporter.checks.health.causes import MEDIUM, SHORT, Symptom, risen, rose, texts
from roce_exporter.checks.health.device_rules import sees_stalls, stalled
from roce_exporter.words import duration, number, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.causes import Rule
    from roce_exporter.view.host_view import PortView, SeriesTrack

RECEIVE, TRANSMIT = "receive", "transmit"
STORM_WINDOW = 600.0
"""Seconds for which a storm that has ended is reported."""
BLOCKED = 10.0
"""Seconds without a packet that are a storm: a receiver that is slow lets some pass."""
ESTIMATED_RATIO = 0.1
"""For NICs that count frames only: an upper bound of this much is ten times the limit for measured time."""
FRAME_BYTES = 65_535 * 64
"""A pause frame stops the sender for at most 65,535 quanta of 64 bytes."""


ALL = ""
"""In place of a priority: global pause (IEEE 802.3 annex 31B), or a NIC that counts the pause of all priorities together."""


class Paused(NamedTuple):
    """One priority that was paused."""

    priority: str
    ratio: float
    seconds: float
    estimated: bool = False


SLOWED = 100.0
"""CNPs per second with which congestion control is at work: hundreds where a path is congested, and less than one per dead peer."""
FLOOD = 1000.0
"""XOFF frames per second of a receiver that stops its switch again and again: one in three packet times of a jumbo at 100 Gbit/s would be 4,000."""

STORMS = {TRANSMIT: "pause_storm_transmitted", RECEIVE: "pause_storm_received"}
PROGRESS = {
    # the traffic that the pause of this direction stops
    TRANSMIT: ("roce_priority_receive_packets_total", "roce_priority_receive_bytes_total"),
    RECEIVE: ("roce_priority_transmit_packets_total", "roce_priority_transmit_bytes_total"),
}
OF_PORT = {
    TRANSMIT: "roce_port_receive_packets_total",
    RECEIVE: "roce_port_transmit_packets_total",
}
"""The same where a driver does not count by priority."""


def _storms(port: PortView) -> Iterator[Symptom]:
    for direction, cause in STORMS.items():
        found = [*_detected(port, direction), *_blocked(port, direction), *_proven(port, direction)]
        if not found:
            continue
        hints = {
            track.labels["hint"] for track, _ in port.current("roce_pfc_storm_hint", direction=direction)
        }
        hint = hints and f"hint of the detector: {', '.join(sorted(hints))}"
        last = max(time for _, time in found)
        # 0 while it lasts: a sign in the newest interval of the history, which has two ends.
        lasts = len(port.host.history) < 3 or last >= port.host.history[-2].time  # noqa: PLR2004
        yield Symptom(cause, texts(*(said for said, _ in found), hint), until=0.0 if lasts else last)


def _detected(port: PortView, direction: str) -> Iterator[tuple[str, float]]:
    """What the fast loop saw, each with the time of its last sign: a storm that returns within two minutes lasts."""
    for track, value in port.current("roce_pfc_storm_active", direction=direction):
        if value:
            yield f"a storm is in progress on priority {track.labels['priority']}", port.host.end
    name = "roce_pfc_storms_total"
    count = port.rose(name, STORM_WINDOW, direction=direction)
    if count >= 1:
        begins = [
            end for _, end, some in port.stretches(name, 0.0, STORM_WINDOW, direction=direction) if some
        ]
        returned = port.rose(name, SHORT, direction=direction) > 1 or (
            len(begins) > 1 and begins[-1] - begins[-2] <= SHORT and port.host.end - begins[-1] <= SHORT
        )
        last = port.host.end if returned else begins[-1]
        yield f"{number(count)} storms began within {duration(STORM_WINDOW)}", last


def _blocked(port: PortView, direction: str) -> Iterator[tuple[str, float]]:
    """Paused for more than half of the time, with no packet in the direction that the pause stops."""
    for name in _times(port, direction):
        for track in port.tracks(name):
            paused = port.rise_of(name, track, STORM_WINDOW)
            least = _least(port) * port.limit("pause_saturated_transmit", "ratio")
            if paused is None or paused.amount < least:
                continue
            stretches = [*_blocked_stretches(port, direction, name, track)]
            if not stretches:
                continue
            ratio, begin, end = max(stretches)
            ago = port.host.end - end
            when = f", which ended {duration(ago)} ago" if ago else ""
            said = f"{_of(track.labels.get('priority', ALL))} paused for {share(ratio)} of {duration(end - begin)}{when}"
            yield f"{said}, and no packet of it passed", max(end for _, _, end in stretches)


def _least(port: PortView) -> float:
    """`BLOCKED`, or all that there is."""
    return min(BLOCKED, port.host.end - port.host.begin)


def _blocked_stretches(
    port: PortView, direction: str, name: str, track: SeriesTrack
) -> Iterator[tuple[float, float, float]]:
    """Share, begin and end of each: one that has ended is no middling share of a longer time."""
    match = {label: track.labels[label] for label in ("netdev", "priority") if label in track.labels}
    # The set lean has only the bytes.
    progress = [(one, match) for one in PROGRESS[direction] if port.rise(one, STORM_WINDOW, **match)]
    if not progress and port.rise(OF_PORT[direction], STORM_WINDOW):
        progress = [(OF_PORT[direction], {})]
    for seconds in (BLOCKED, SHORT):
        for begin, end, amount in port.stretches(name, seconds, STORM_WINDOW, **match):
            ratio = min(amount / (end - begin), 1.0)
            if ratio <= port.limit("pause_saturated_transmit", "ratio") or end - begin < _least(port):
                continue
            if progress and not any(port.between(one, begin, end, **labels) for one, labels in progress):
                yield ratio, begin, end


def _proven(port: PortView, direction: str) -> Iterator[tuple[str, float]]:
    """D seconds of received pause in N pauses: one of them lasted at least D/(N+1), for any interval between samples.

    What this host transmits is not judged so: a slow receiver makes long pauses, too.
    """
    if direction == TRANSMIT:
        return
    paused = {_priority(track): track for track in port.tracks("roce_pfc_receive_pause_seconds_total")}
    turns = {_priority(track): track for track in port.tracks("roce_pfc_receive_transitions_total")}
    for key in paused.keys() & turns.keys():
        longest, end = _longest(port, paused[key], turns[key])
        if longest > port.limit("pause_long", "seconds"):
            yield f"one pause of priority {key[1]} lasted at least {longest:.1f} s", end


def _priority(track: SeriesTrack) -> tuple[str, str]:
    return track.labels["netdev"], track.labels["priority"]


def _longest(port: PortView, paused: SeriesTrack, turns: SeriesTrack) -> tuple[float, float]:
    counts = dict(turns.points)
    longest = 0.0, 0.0
    for (before, seconds), (after, more) in pairwise(paused.points):
        if before < port.host.end - STORM_WINDOW or before not in counts or after not in counts:
            continue
        pauses = counts[after] - counts[before]
        if more >= seconds and pauses >= 0:
            longest = max(longest, ((more - seconds) / (pauses + 1), after))
    return longest


def paused_priorities(port: PortView, direction: str) -> list[Paused]:
    """The priorities paused for longer than the limit, from counted time, or as an upper bound from frames."""
    return [
        one
        for one in (*_counted(port, direction), *_estimated(port, direction))
        if one.ratio > (ESTIMATED_RATIO if one.estimated else port.limit("pause_high", "ratio"))
    ]


def _times(port: PortView, direction: str) -> Iterator[str]:
    yield f"roce_pfc_{direction}_pause_seconds_total"
    if not port.highest("roce_pfc_enabled"):
        yield f"roce_global_pause_{direction}_seconds_total"


def _counted(port: PortView, direction: str) -> Iterator[Paused]:
    for name in _times(port, direction):
        for track in port.tracks(name):
            rise = port.rise_of(name, track, MEDIUM)
            if rise:
                yield Paused(track.labels.get("priority", ALL), min(rise.rate, 1.0), rise.seconds)


def _estimated(port: PortView, direction: str) -> Iterator[Paused]:
    """The longest that the frames can have paused; meaningless where they are soon followed by frames that resume."""
    own = "roce_pfc_" if port.highest("roce_pfc_enabled") else "roce_global_pause_"
    # A driver can list what its firmware does not count: a time, or a priority, that is always 0.
    times = (f"roce_pfc_{direction}_pause_seconds_total", f"{own}{direction}_seconds_total")
    if any(port.highest(name) for name in times):
        return
    frames = [f"roce_pfc_{direction}_{kind}frames_total" for kind in ("xoff_", "", "all_")]
    counted = [name for name in frames if port.rose(name, SHORT)][:1]
    if own != "roce_pfc_":
        counted += [f"{own}{direction}_{kind}frames_total" for kind in ("xoff_", "")]
    for name in counted:
        for track in port.tracks(name):
            rise = port.rise_of(name, track, SHORT)
            match = {label: track.labels[label] for label in ("netdev", "priority") if label in track.labels}
            resumed = port.rose(name.replace("xoff_", "xon_"), SHORT, **match) if "xoff_" in name else 0.0
            speed = port.highest("roce_link_speed_bytes_per_second", netdev=track.labels["netdev"])
            if rise and rise.amount and speed and resumed <= rise.amount / 2:
                ratio = min(rise.rate * FRAME_BYTES / speed, 1.0)
                yield Paused(track.labels.get("priority", ALL), ratio, rise.seconds, True)


def _of(priority: str) -> str:
    return "all traffic was" if priority == ALL else f"priority {priority} was"


def _evidence(paused: list[Paused]) -> tuple[str, ...]:
    return tuple(
        f"{_of(one.priority)} paused for {'at most ' if one.estimated else ''}{share(one.ratio)} of {duration(one.seconds)}"
        for one in paused
    )


def _against(paused: list[Paused]) -> str:
    only = all(one.estimated for one in paused)
    return "an upper bound: this NIC counts pause frames, not paused time" if only else ""


def _slow_receiver(port: PortView) -> Iterator[Symptom]:
    paused = paused_priorities(port, TRANSMIT)
    if not paused:
        yield from _flood(port)
        return
    signs = stalled(port)
    calm = sees_stalls(port) and not signs
    drops = (
        ("roce_out_of_buffer_total", "packets without a receive request"),
        ("roce_buffer_threshold_passed_total", "times the port's buffer was nearly full"),
    )
    yield Symptom(
        "slow_receiver",
        (*_evidence(paused), *signs, *(said for _, said in risen(port, drops, MEDIUM))),
        texts(
            _against(paused), calm and "PCIe is not stalled: rather the NIC's caches or the receiving program"
        ),
        weight=max(one.ratio for one in paused),
    )


def _flood(port: PortView) -> Iterator[Symptom]:
    """Where a NIC counts XOFF and XON frames and no time: many of both, and drops at the port meanwhile."""
    stops = port.rise("roce_pfc_transmit_xoff_frames_total", SHORT)
    drops = port.rise("roce_phy_receive_discards_total", SHORT)
    if stops and drops and drops.amount and stops.rate > FLOOD:
        said = rose(stops, "times it stopped its switch")
        dropped = rose(drops, "packets dropped at the port all the same")
        yield Symptom("slow_receiver", (said, dropped), weight=1.0)


def _received(port: PortView) -> Iterator[Symptom]:
    paused = paused_priorities(port, RECEIVE)
    if not paused:
        return
    own = paused_priorities(port, TRANSMIT) and "this port transmits pause, too"
    worst = max(one.ratio for one in paused)
    slowed = port.rise("roce_cnp_handled_total", MEDIUM)
    made_here = port.rose("roce_transport_slow_restart_cnps_total", MEDIUM)
    answers = slowed is not None and slowed.amount - made_here > SLOWED * slowed.seconds
    yield Symptom(
        "pause_received",
        texts(*_evidence(paused), slowed and answers and rose(slowed, "CNPs slowed this host's senders")),
        texts(_against(paused), own),
        weight=worst,
        # Congestion that the peers' CNPs answer is load, unless it blocks the port.
        note=answers and worst < port.limit("pause_saturated_transmit", "ratio"),
    )


def _global(port: PortView) -> Iterator[Symptom]:
    if not port.highest("roce_pfc_enabled"):
        return
    window = port.limit("global_pause", "window")
    for direction, side in ((RECEIVE, Side.FABRIC), (TRANSMIT, Side.HOST)):
        names = (f"roce_global_pause_{direction}_{kind}frames_total" for kind in ("", "xoff_"))
        if frames := max(port.rose(name, window) for name in names):
            said = f"{number(frames)} frames of global pause were {direction[:-1]}ed"
            yield Symptom("global_pause", (said,), side=side)


def _unexpected(port: PortView) -> Iterator[Symptom]:
    window = port.limit("pfc_on_lossy_priority", "window")
    for track, enabled in port.current("roce_pfc_enabled"):
        match = {label: track.labels[label] for label in ("netdev", "priority")}
        # Intel counts by traffic class: frames of a lossless priority also count for the others of its class.
        if enabled or port.tracks("roce_pfc_receive_xoff_frames_total", **match):
            continue
        count = port.rose("roce_pfc_receive_frames_total", window, **match)
        if count:
            said = f"{number(count)} pause frames for priority {match['priority']}, which has no PFC here"
            yield Symptom("pfc_mismatch", (said,))


PAUSE_RULES: tuple[Rule, ...] = (_storms, _slow_receiver, _received, _global, _unexpected)
"""Rules of one port."""
