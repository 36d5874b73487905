"""Rules about a fabric that is full: pause, congestion control, lossless priorities, and what packets on the wire show of them.

Pause: IEEE 802.1Qbb, 802.3 annex 31B; which direction blocks, and who is slow. DCQCN: IEEE 802.1Qau, RoCEv2 annex A17.9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from math import inf
from typing import NamedTuple

from roce_exporter.catalog.drivers import dialect_of
from roce_exporter.checks.finding import Side
from roce_exporter.checks.health.causes import MEDIUM, NAMED, SHORT, Rule, Symptom, risen, rose, texts
from roce_exporter.checks.health.device_rules import sees_stalls, stalled
from roce_exporter.checks.health.link_rules import steady
from roce_exporter.view.host_view import PortView, Rise, SeriesTrack
from roce_exporter.words import duration, number, share, some

RECEIVE, TRANSMIT = "receive", "transmit"
STORM_WINDOW = 600.0
"""Seconds for which a storm that has ended is reported."""
BLOCKED = 10.0
"""Seconds without a packet that are a storm: a receiver that is slow lets some pass."""
NEARLY = 0.9
"""Share of the time in which a port is paused by its switch as good as always: what passes in between is no progress of a job."""
TRICKLE, JUMBO = 4e6, 4096
"""Bytes per second that are next to nothing on any link, and those of a packet."""
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
OF_PORT = {TRANSMIT: "roce_port_receive_packets_total", RECEIVE: "roce_port_transmit_packets_total"}
"""The same where a driver does not count by priority."""


def _storms(port: PortView) -> Iterator[Symptom]:
    for direction, cause in STORMS.items():
        found = [
            *_detected(port, direction),
            *_blocked(port, direction),
            *_proven(port, direction),
            *_said(port, direction),
        ]
        if not found:
            continue
        hints = {
            track.labels["hint"] for track, _ in port.current("roce_pfc_storm_hint", direction=direction)
        }
        hint = hints and f"hint of the detector: {', '.join(sorted(hints))}"
        last = max(time for _, time in found)
        until = 0.0 if port.host.lasts(last) else last
        yield Symptom(cause, texts(*(said for said, _ in found), hint), until=until)


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
        yield f"{some(count, 'storms')} began within {duration(STORM_WINDOW)}", last


def _blocked(port: PortView, direction: str) -> Iterator[tuple[str, float]]:
    """Paused for more than half of the time, with no packet in the direction that the pause stops."""
    times = [*_times(port, direction)]
    # Frames say at most how long: with no packet meanwhile, that the switch was stopped.
    counts_time = any(port.highest(name) for name in times)
    for name in times if counts_time or direction == RECEIVE else _frames(port, direction):
        for track in port.tracks(name):
            speed = port.highest("roce_link_speed_bytes_per_second", netdev=track.labels["netdev"])
            unit = 1.0 if name in times else FRAME_BYTES / (speed or inf)
            paused = port.rise_of(name, track, STORM_WINDOW)
            enough = min(BLOCKED, port.host.end - port.host.begin) * port.limit(
                "pause_saturated_transmit", "ratio"
            )
            if paused is None or paused.amount * unit < enough:
                continue
            stretches = [*_blocked_stretches(port, direction, name, track, unit)]
            if not stretches:
                continue
            ratio, begin, end, some = max(stretches, key=lambda one: (round(one[0], 2), one[2]))
            ago = port.host.end - end
            when = f", which ended {duration(ago)} ago" if ago else ""
            most = "" if name in times else "at most "
            said = f"{_of(track.labels.get('priority', ALL))} paused for {most}{share(ratio)} of {duration(end - begin)}{when}"
            passed = "next to no" if some else "no"
            yield f"{said}, and {passed} packet of it passed", max(end for _, _, end, _ in stretches)


def _blocked_stretches(
    port: PortView, direction: str, name: str, track: SeriesTrack, unit: float
) -> Iterator[tuple[float, float, float, bool]]:
    """Share, begin and end of each, and whether some packets passed: one that has ended is no middling share of a longer time."""
    least = min(BLOCKED, port.host.end - port.host.begin)
    match = {label: track.labels[label] for label in ("netdev", "priority") if label in track.labels}
    # Frames are no storm where others resume them, nor those of global pause where other traffic than RDMA's may be stopped.
    resumed = "xoff_" in name and port.rose(name.replace("xoff_", "xon_"), STORM_WINDOW, **match)
    is_rdma = name.startswith("roce_pfc_") or port.rose(OF_PORT[direction], STORM_WINDOW)
    if unit != 1.0 and (not is_rdma or resumed > port.rose(name, STORM_WINDOW, **match) / 2):
        return
    # The set lean has only the bytes.
    progress = [(one, match) for one in PROGRESS[direction] if port.rise(one, STORM_WINDOW, **match)]
    if (not progress or "priority" not in match) and port.rise(OF_PORT[direction], STORM_WINDOW):
        progress.append((OF_PORT[direction], {}))
    for seconds in (BLOCKED, SHORT):
        for begin, end, amount in port.stretches(name, seconds, STORM_WINDOW, **match):
            ratio = min(amount * unit / (end - begin), 1.0)
            if ratio <= port.limit("pause_saturated_transmit", "ratio") or end - begin < least:
                continue
            passed = [
                port.between(one, begin, end, **labels) * (1 if "_bytes_" in one else JUMBO)
                for one, labels in progress
            ]
            allowed = TRICKLE * (end - begin) if direction == RECEIVE and ratio > NEARLY else 0.0
            if passed and max(passed) <= allowed:
                yield ratio, begin, end, any(passed)


def _proven(port: PortView, direction: str) -> Iterator[tuple[str, float]]:
    """D seconds of received pause in N pauses: one of them lasted at least D/(N+1), for any interval between samples.

    What this host transmits is not judged so: a slow receiver makes long pauses, too.
    """
    if direction == TRANSMIT:
        return
    turns = {
        (track.labels["netdev"], track.labels["priority"]): dict(track.points)
        for track in port.tracks("roce_pfc_receive_transitions_total")
    }
    for track in port.tracks("roce_pfc_receive_pause_seconds_total"):
        priority = track.labels["priority"]
        counts = turns.get((track.labels["netdev"], priority), {})
        longest = max(
            (
                ((more - seconds) / (pauses + 1), after)
                for (before, seconds), (after, more) in pairwise(track.points)
                if before >= port.host.end - STORM_WINDOW and before in counts and after in counts
                if more >= seconds and (pauses := counts[after] - counts[before]) >= 0
            ),
            default=(0.0, 0.0),
        )
        if longest[0] > port.limit("pause_long", "seconds"):
            yield f"one pause of priority {priority} lasted at least {longest[0]:.1f} s", longest[1]


def _said(port: PortView, direction: str) -> Iterator[tuple[str, float]]:
    """What the driver calls a storm, on a port that pauses its switch and receives nothing meanwhile: a slow receiver lets packets pass.

    Not where the time of pause is counted, which `_blocked` judges, nor where the port is paused more often than it pauses: ice says the same
    of what it cannot send.
    """
    passed = port.rise(OF_PORT[TRANSMIT], MEDIUM)
    told = port.events("roce_kernel_log_events_total", STORM_WINDOW, event="pause_storm")
    if direction != TRANSMIT or not told or not passed or passed.amount:
        return
    sent, received = (
        sum(port.rose(name, MEDIUM) for name in _frames(port, way)) for way in (TRANSMIT, RECEIVE)
    )
    if sent > received and not any(port.rose(name, MEDIUM) for name in _times(port, TRANSMIT)):
        yield "the driver reported a pause storm, and no packet arrives", port.host.end


def _frames(port: PortView, direction: str) -> list[str]:
    """Counters of pause frames: that of PFC which rises, and those of global pause where PFC is off."""
    frames = [f"roce_pfc_{direction}_{kind}frames_total" for kind in ("xoff_", "", "all_")]
    counted = [name for name in frames if port.rose(name, SHORT)][:1]
    if not port.highest("roce_pfc_enabled"):
        counted += [f"roce_global_pause_{direction}_{kind}frames_total" for kind in ("xoff_", "")]
    return counted


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


def _is_stopped(port: PortView, track: SeriesTrack) -> bool:
    """Whether pause of this priority stops RDMA: not where it has no PFC here and another one has (IEEE 802.1Qbb)."""
    enabled = port.highest("roce_pfc_enabled", priority=track.labels.get("priority", ALL))
    return enabled != 0 or not port.highest("roce_pfc_enabled")


def _counted(port: PortView, direction: str) -> Iterator[Paused]:
    for name in _times(port, direction):
        for track in filter(partial(_is_stopped, port), port.tracks(name)):
            if rise := port.rise_of(name, track, MEDIUM):
                yield Paused(track.labels.get("priority", ALL), min(rise.rate, 1.0), rise.seconds)


def _estimated(port: PortView, direction: str) -> Iterator[Paused]:
    """The longest that the frames can have paused; meaningless where they are soon followed by frames that resume."""
    for name in _frames(port, direction):
        # A driver can list what its firmware does not count: a time, or a priority, that is always 0.
        kind = "pause_seconds" if name.startswith("roce_pfc_") else "seconds"
        if port.highest(f"{name.partition(direction)[0]}{direction}_{kind}_total"):
            continue
        for track in filter(partial(_is_stopped, port), port.tracks(name)):
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
    bound = "an upper bound: this NIC counts pause frames, not paused time"
    return bound if all(one.estimated for one in paused) else ""


def _slow_receiver(port: PortView) -> Iterator[Symptom]:
    paused = paused_priorities(port, TRANSMIT)
    if not paused:
        yield from _flood(port, TRANSMIT)
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


def _flood(port: PortView, direction: str) -> Iterator[Symptom]:
    """Where a NIC counts XOFF and XON frames and no time: many of both are a note, unless the port drops meanwhile what it receives."""
    name = f"roce_pfc_{direction}_xoff_frames_total"
    rises = [port.rise_of(name, one, SHORT) for one in port.tracks(name) if _is_stopped(port, one)]
    stops = max((rise for rise in rises if rise), default=None)  # of one class they rise together
    if not stops or stops.rate <= FLOOD:
        return
    if direction == RECEIVE:
        yield Symptom("pause_received", (rose(stops, "times its switch stopped it"),), note=True)
    else:
        drops = ("roce_phy_receive_discards_total", "packets dropped at the port all the same")
        dropped = [said for _, said in risen(port, (drops,), SHORT)]
        said = (rose(stops, "times it stopped its switch"), *dropped)
        yield Symptom("slow_receiver", said, weight=float(bool(dropped)), note=not dropped)


def _received(port: PortView) -> Iterator[Symptom]:
    paused = paused_priorities(port, RECEIVE)
    if not paused:
        yield from _flood(port, RECEIVE)
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
    for direction, side, done in (RECEIVE, Side.FABRIC, "received"), (TRANSMIT, Side.HOST, "transmitted"):
        names = (f"roce_global_pause_{direction}_{kind}frames_total" for kind in ("", "xoff_"))
        if frames := max(port.rose(name, window) for name in names):
            said = f"{some(frames, 'frames of global pause were')} {done}"
            yield Symptom("global_pause", (said,), side=side)


def _unexpected(port: PortView) -> Iterator[Symptom]:
    window, xoff = port.limit("pfc_on_lossy_priority", "window"), "roce_pfc_receive_xoff_frames_total"
    names = ("netdev", "priority")
    places = [
        ({name: one.labels[name] for name in names}, on) for one, on in port.current("roce_pfc_enabled")
    ]
    # Intel counts by traffic class: frames of a lossless priority also count for the others of its class, as many.
    shared = max((port.rose(xoff, window, **match) for match, on in places if on), default=0.0)
    for match, on in places:
        own = port.rose(xoff, window, **match)
        count = port.rose("roce_pfc_receive_frames_total", window, **match) + own * (own > shared)
        if count and not on:
            said = f"{some(count, 'pause frames')} for priority {match['priority']}, which has no PFC here"
            yield Symptom("pfc_mismatch", (said,))


MARKS, SENT = "roce_ecn_marked_packets_total", "roce_cnp_sent_total"
HANDLED, IGNORED = "roce_cnp_handled_total", "roce_cnp_ignored_total"
UNKEPT = frozenset({"irdma"})
"""Drivers whose firmware sends CNPs and may not count them: `cnpSent` of an E810 stays 0 (Lumina, SIGCOMM 2023)."""
UNSEEN = "Marked packets arrive, and no CNP is counted: the notification point is off, or the firmware does not count them"
CUT = 300e-6
"""Seconds for which a CNP slows its sender at least: until the first step of the recovery (DCQCN, SIGCOMM 2015; mlx5's default)."""
SLOWED_HERE = "Peers slow this host's senders at any time: a path from it is congested"
PAUSED_RATIO = 0.01
"""Share of marked packets that means congestion where the switch pauses this host, too."""
DROPS = (
    ("roce_buffer_discards_total", "packets of priority {} dropped because the port's buffer was full"),
    (
        "roce_host_buffer_discards_total",
        "packets of priority {} dropped because this host's share of the buffer was full",
    ),
)


def _cnps_sent(port: PortView) -> Rise | None:
    """CNPs that this port sent; None if they are not counted, or if a counter that was never seen to move proves nothing."""
    driver = dialect_of(port.label("roce_device_info", "driver"))
    kept = driver not in UNKEPT or port.rose(SENT, port.host.end - port.host.begin)
    return port.rise(SENT, MEDIUM) if kept else None


def _unanswered(port: PortView) -> Iterator[Symptom]:
    marks, sent = port.rise(MARKS, MEDIUM), port.rise(SENT, MEDIUM)
    points = port.current("roce_config_notification_point_enabled")
    off = ", ".join(track.labels["priority"] for track, value in points if value == 0)
    if marks is None or (sent.amount if sent else not off):
        return
    title = "" if off or _cnps_sent(port) else UNSEEN
    if marks.rate > port.limit("marks_without_cnps", "marks_per_second"):
        setting = off and f"the notification point is off for priority {off}"
        evidence = texts(rose(marks, "marked packets, and no CNP was counted"), setting)
        yield Symptom("marks_without_cnps", evidence, note=bool(title), title=title)


def _ignored(port: PortView) -> Iterator[Symptom]:
    ignored, handled = port.rise(IGNORED, MEDIUM), port.rise(HANDLED, MEDIUM)
    if ignored is None or handled is None or ignored.rate <= port.limit("cnps_ignored", "per_second"):
        return
    ratio = ignored.amount / (ignored.amount + handled.amount)
    if ratio > port.limit("cnps_ignored", "ratio"):
        said = f"{rose(ignored, 'CNPs ignored')}, {share(ratio)} of all"
        yield Symptom("cnps_ignored", (said,), weight=ratio)


def _incast(port: PortView) -> Iterator[Symptom]:
    marks, sent = port.rise(MARKS, MEDIUM), _cnps_sent(port)
    # RDMA packets received, or at least those over UDP, which Intel counts apart.
    packets = port.rise("roce_port_receive_packets_total", MEDIUM) or port.rise(
        "roce_port_receive_udp_packets_total", MEDIUM
    )
    busy = marks and packets and packets.rate > port.limit("marked_packets", "packets_per_second")
    ratio = marks.amount / packets.amount if marks and packets and busy else 0.0
    # Where the fabric pauses, too, fewer marks are sufficient to name the kind of its congestion.
    paused = paused_priorities(port, RECEIVE)
    most = PAUSED_RATIO if paused else port.limit("marked_packets", "ratio")
    # On a fast port a small share is enough to keep a sender slow at any time; one CNP answers some marks.
    slowed = CUT * sent.rate if sent else 0.0
    if (ratio > most and (sent is None or sent.amount > 0)) or (slowed >= 1 and not paused):
        said = marks and f"{share(ratio)} of what it received was marked within {duration(marks.seconds)}"
        yield Symptom("incast", texts(said, sent and rose(sent, "CNPs sent")), weight=ratio)
    # The same at the sending end. NICs also make CNPs of their own for what they send again.
    handled, own = port.rise(HANDLED, MEDIUM), port.rose("roce_transport_slow_restart_cnps_total", MEDIUM)
    if handled and CUT * (handled.amount - own) >= handled.seconds and not paused:
        yield Symptom("incast", (rose(handled, "CNPs slowed this host's senders"),), title=SLOWED_HERE)


def _lossless_drops(port: PortView) -> Iterator[Symptom]:
    window = port.limit("lossless_drops", "window")
    # Where a port drops and seldom pauses, pause has no effect; one that pauses for long is overrun.
    overrun = any(one.ratio > ESTIMATED_RATIO for one in paused_priorities(port, TRANSMIT))
    sees_pfc = bool(port.current("roce_pfc_enabled"))
    for name, what in DROPS:
        for track in port.tracks(name):
            match = {label: track.labels[label] for label in ("netdev", "priority")}
            rise = port.rise_of(name, track, window)
            # Packets that a lost link left behind are discarded.
            rise = rise and Rise(steady(port, track, window), rise.seconds)
            if not rise or rise.amount <= port.limit("lossless_drops", "packets"):
                continue
            said = rose(rise, what.format(match["priority"]))
            cause = "lossless_drops" if port.highest("roce_pfc_enabled", **match) else "port_drops"
            if cause == "lossless_drops" or not sees_pfc:
                few = NAMED[cause].begins.is_few(rise.amount, 0.0)
                way = RECEIVE if overrun or cause == "port_drops" else ""
                yield Symptom(cause, (said,), note=few, direction=way)


def _sum(port: PortView, name: str) -> dict[str, float]:
    """By the destination of each pair, the rate of this counter where this port is the source."""
    mine = {track.labels["address"] for track in port.tracks("roce_gid_info")}
    rates: defaultdict[str, float] = defaultdict(float)
    for track in port.host.tracks(name):
        rise = port.rise_of(name, track, MEDIUM)
        if rise and track.labels["source"] in mine:
            rates[track.labels["destination"]] += rise.rate
    return rates


def _retransmitted(port: PortView) -> Iterator[Symptom]:
    packets = _sum(port, "roce_wire_packets_total")
    for peer, rate in _sum(port, "roce_wire_retransmitted_packets_total").items():
        many = packets[peer] > port.limit("wire_retransmissions", "packets_per_second")
        if many and rate / packets[peer] > port.limit("wire_retransmissions", "ratio"):
            said = f"a capture saw {share(rate / packets[peer])} of the packets to {peer} again"
            yield Symptom("packet_loss", (said,))


def _wire_incast(port: PortView) -> Iterator[Symptom]:
    cnps = _sum(port, "roce_wire_cnps_total")
    slowed = [peer for peer, rate in cnps.items() if rate > port.limit("wire_cnps", "cnps_per_second")]
    if len(slowed) >= port.limit("wire_cnps", "senders"):
        yield Symptom("incast", (f"a capture saw CNPs of this port to {number(len(slowed))} senders",))


def _corrupted(port: PortView) -> Iterator[Symptom]:
    for peer, rate in _sum(port, "roce_wire_bad_icrc_packets_total").items():
        if rate:
            said = f"a capture saw corrupted packets of this port to {peer}"
            yield Symptom("corruption", (said,), side=Side.UNKNOWN)


def _wire_outside(port: PortView) -> Iterator[Symptom]:
    name, limit = "roce_wire_outside_lossless_packets_total", "wire_outside_lossless"
    outside, packets = _sum(port, name), _sum(port, "roce_wire_packets_total")
    total, beyond = sum(packets.values()), sum(outside.values())
    if total > port.limit(limit, "packets_per_second") and beyond / total > port.limit(limit, "ratio"):
        said = f"a capture saw {share(beyond / total)} of this port's packets outside the lossless priority"
        yield Symptom("outside_lossless_priority", (said,))


CONGESTION_RULES: tuple[Rule, ...] = (
    *(_storms, _slow_receiver, _received, _global, _unexpected),
    *(_unanswered, _ignored, _incast, _lossless_drops),
)
WIRE_RULES: tuple[Rule, ...] = (_retransmitted, _wire_incast, _corrupted, _wire_outside)
"""Rules of one port."""
