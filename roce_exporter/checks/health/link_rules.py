"""Rules about the link (IEEE 802.3 clauses 46, 73, 91, 119): is it up, does it stay up, is it as fast and as clean as it was; and its optics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from roce_exporter.checks.health.causes import CAUSES, NAMED, Rule, Symptom, rose, texts
from roce_exporter.host.kernel.ethtool_netlink import link_reason
from roce_exporter.view.host_view import PortView, Rise, SeriesTrack, moduli, rise_between
from roce_exporter.words import counted, duration, some


class ModuleLimit(NamedTuple):
    """A value of a module or of one of its lanes, which the module itself compares with an alarm limit."""

    name: str
    unit: str
    end: str
    """`low` or `high`."""
    cause: str
    scale: float
    shown: str
    """The unit in texts."""

    @property
    def value(self) -> str:
        """The row of the value."""
        return f"roce_transceiver_{self.name}_{self.unit}"

    @property
    def alarm(self) -> str:
        """The row of the limit."""
        return f"roce_transceiver_{self.name}_{self.end}_alarm_{self.unit}"


MODULE_LIMITS = (
    ModuleLimit("receive_power", "watts", "low", "optics_receive_power_low", 1e3, "mW"),
    ModuleLimit("receive_power", "watts", "high", "optics_receive_power_high", 1e3, "mW"),
    ModuleLimit("transmit_power", "watts", "low", "optics_transmit_power_low", 1e3, "mW"),
    ModuleLimit("transmit_power", "watts", "high", "module_fault", 1e3, "mW"),
    ModuleLimit("bias", "amperes", "low", "optics_transmit_power_low", 1e3, "mA"),
    ModuleLimit("bias", "amperes", "high", "optics_bias_high", 1e3, "mA"),
    ModuleLimit("voltage", "volts", "low", "module_fault", 1.0, "V"),
    ModuleLimit("voltage", "volts", "high", "module_fault", 1.0, "V"),
    ModuleLimit("temperature", "celsius", "high", "too_hot", 1.0, "°C"),
)


def _beyond(port: PortView) -> Iterator[Symptom]:
    """Each value beyond the module's own limit. A limit of 0 means no limit; a dark port has no link, which others report."""
    for one in MODULE_LIMITS:
        limits = {track.labels["netdev"]: value for track, value in port.current(one.alarm) if value > 0}
        for track, value in port.current(one.value):
            netdev = track.labels["netdev"]
            most = limits.get(netdev)
            is_hot = one.cause == "too_hot" and value == most  # a module goes dark at its limit
            if most is None or not (value < most if one.end == "low" else value > most or is_hot):
                continue
            if one.end == "low" and port.highest("roce_link_up", netdev=netdev) != 1:
                continue
            port.changed(track, most.__gt__ if one.end == "low" else most.__le__)
            lane = f" on lane {track.labels['lane']}" if track.labels.get("lane") else ""
            said = f"{value * one.scale:.3g} {one.shown}{lane} of {netdev}"
            yield Symptom(
                one.cause, (f"{said}, the module's alarm limit is {most * one.scale:.3g} {one.shown}",)
            )


UP, SET_UP = "roce_port_up", "roce_port_set_up"
DOWN_COUNTERS = (
    "roce_netdev_carrier_down_total",
    "roce_link_down_events_total",
    "roce_port_link_downed_total",
)
"""Each counts the same losses of the link, so the largest is the number of losses."""
QUICK = 600.0
"""Seconds in which two losses of the link are flapping, too."""
QUICK_EVENTS = 2
FEC_RATIO = 5e-5
"""Bit errors per bit before correction: a fifth of what RS(544,514) corrects (2.4e-4, IEEE 802.3 clause 119)."""
TREND_FACTOR = 10.0
TREND_SECONDS = 240.0
"""A trend compares quarters of the history; a shorter one shows none."""
TREND_FLOOR = 100.0
"""Corrected errors per second below which a rise is noise."""
LOST_BLOCKS = "roce_phy_fec_uncorrectable_blocks_total"
CORRECTED = ("roce_phy_corrected_errors_total", "roce_phy_fec_corrected_blocks_total")


def _down(port: PortView) -> Iterator[Symptom]:
    up = port.highest(UP)
    if up and (times := [time for one in port.tracks(SET_UP) for time, value in one.points if not value]):
        port.host.moved.append((times[0], times[-1]))
        seen = f"its network device was set down in {some(len(times), 'samples')}, and is up again"
        yield Symptom("set_down", (seen,), until=times[-1], title="The port was set down, and is up again")
    if up is None or up > 0 or is_unused(port):
        return
    evidence = texts(
        "the port is not active (roce_port_up is 0)", was_up(port) and "it was up at the beginning"
    )
    against = texts(port.highest("roce_link_up") and "the network device has a link (roce_link_up is 1)")
    said = tuple(f"{SAYS}{reason}" for _, reason in _reasons(port))
    # A port that has lost its network device, which an RDMA device outlives in shared namespaces (rdma-system(8)).
    if port.tracks("roce_port_netdev_info") and not port.current("roce_port_netdev_info"):
        yield Symptom("taken_away", ("the RDMA device is there, its network device is not",))
        return
    if is_set_down(port):
        yield Symptom("set_down", ("its network device is set down (IFF_UP is missing)", *evidence[1:]))
        return
    yield from _ends_link(port)
    if was_up(port):
        yield Symptom("link_down", (*evidence, *said), against)
    # Without a reason it may have been set down.
    elif lost := max(port.highest(name) or 0.0 for name in DOWN_COUNTERS):
        ever = f"the link was lost {some(lost, 'times')} since the counters began"
        yield Symptom("link_lost", (*evidence, ever, *said), against, note=not said)


STATE, SUBSTATE = "roce_link_extended_state", "roce_link_extended_substate"
NO_CABLE = 4.0
SAYS = "the driver says: "
ENDS_LINK = {reason: cause.name for cause in CAUSES for reason in cause.states}
"""Reasons of which the loss of the link is the consequence: a state, or one with its substate."""


def _reasons(port: PortView) -> Iterator[tuple[str, str]]:
    """Each network device without a link, and why it has none, as far as its driver says."""
    for track, state in port.current(STATE):
        netdev = track.labels["netdev"]
        more = port.highest(SUBSTATE, netdev=netdev)
        yield netdev, link_reason(int(state), None if more is None else int(more))


def _ends_link(port: PortView) -> Iterator[Symptom]:
    for netdev, reason in _reasons(port):
        if cause := ENDS_LINK.get(reason) or ENDS_LINK.get(reason.partition(", ")[0]):
            member = f" of {netdev}" if netdev in _members(port) else ""
            yield Symptom(cause, (f"{SAYS}{reason}{member}",))


def is_set_down(port: PortView) -> bool:
    """Whether an operator or a program set the network device down: no fault, and the kernel reports no reason."""
    members = [value for _, value in port.current("roce_netdev_set_up")]
    return port.highest(SET_UP) == 0 or (bool(members) and not any(members))


def is_unused(port: PortView) -> bool:
    """Whether the port never had a link, or has no cable and was not up while it was watched.

    Drivers set the carrier off when they open the device, which the kernel counts as a loss: only a link that came up was ever used.
    """
    never = port.highest("roce_netdev_carrier_up_total") == 0 or port.highest(STATE) == NO_CABLE
    return never and not was_up(port)


def was_up(port: PortView) -> bool:
    """Whether the port was up at any moment."""
    return any(value > 0 for track in port.tracks(UP) for _, value in track.points)


def losses(port: PortView, window: float) -> Rise | None:
    """How often the link was lost in the last `window` seconds; of a LAG, that of the member that lost it most often."""
    return max((rise for rise, _ in _losses(port, window)), default=None)


def _losses(port: PortView, window: float) -> Iterator[tuple[Rise, str]]:
    """Losses of each network device, without those when it was set down. A counter that begins again is that of a driver that was loaded again."""
    set_down = {
        (track.labels.get("netdev", ""), time)
        for name in (SET_UP, "roce_netdev_set_up")
        for track in port.tracks(name)
        for time, value in track.points
        if value == 0
    }
    for name in DOWN_COUNTERS:
        for track in port.tracks(name):
            netdev = track.labels.get("netdev", "")
            rise = port.rise_of(name, track, window)
            if rise:
                lost = sum(
                    max(after - before, 0)
                    for (begin, before), (end, after) in pairwise(track.points)
                    if begin >= port.host.end - window
                    and set_down.isdisjoint((one, time) for one in ("", netdev) for time in (begin, end))
                )
                yield Rise(lost, rise.seconds), netdev


def _unsteady(port: PortView) -> Iterator[Symptom]:
    window = port.limit("link_flaps", "window")
    rise, netdev = max(_losses(port, window), default=(None, ""))
    if rise is None or rise.amount < 1:
        return
    recent = losses(port, QUICK)
    quick = recent is not None and recent.amount >= QUICK_EVENTS
    member = f" of {netdev}" if netdev and netdev in _members(port) else ""
    evidence = (rose(rise, f"losses of the link{member}"),)
    if rise.amount >= port.limit("link_flaps", "events") or quick:
        yield Symptom("link_flapping", evidence, weight=min(1.0, rise.amount / 100))
    elif any(track.now for track in port.tracks(UP)) and not (
        member and port.highest("roce_link_up", netdev=netdev) == 0
    ):
        yield Symptom("link_interrupted", evidence)


def _slow(port: PortView) -> Iterator[Symptom]:
    # A port that is down reports the lowest speed of its type.
    if any(not now for _, now in port.current(UP)):
        return
    for name, what, scale in (
        ("roce_link_speed_bytes_per_second", "Gbit/s", 8e-9),
        ("roce_link_lanes", "lanes", 1.0),
        ("roce_port_speed_bytes_per_second", "Gbit/s", 8e-9),
    ):
        for track, now in port.current(name):
            before = max(value for _, value in track.points)
            if 0 < now < before:
                evidence = f"{now * scale:g} {what} now, {before * scale:g} {what} before ({name})"
                yield Symptom("link_slow", (evidence,))
                return


def _legs(port: PortView) -> Iterator[Symptom]:
    """A LAG is up as long as one leg is: each leg is compared with the others."""
    legs = _members(port)
    if len(legs) < 2 or not port.highest(UP):  # noqa: PLR2004 - a port without a LAG has one
        return
    speeds = {leg: port.highest("roce_link_speed_bytes_per_second", netdev=leg) or 0.0 for leg in legs}
    set_down = [leg for leg in legs if port.highest("roce_netdev_set_up", netdev=leg) == 0]
    dead = [leg for leg in legs if port.highest("roce_link_up", netdev=leg) == 0 and leg not in set_down]
    best = max(speeds.values())
    slow = [leg for leg in legs if leg not in (*dead, *set_down) and 0 < speeds[leg] < best]
    left = sum(speed for leg, speed in speeds.items() if leg not in (*dead, *set_down))
    rest = f"; {left * 8e-9:g} of {best * len(legs) * 8e-9:g} Gbit/s are left" if best else ""
    if dead:
        said = f"{len(dead)} of {len(legs)} members have no link: {', '.join(dead)}{rest}"
        why = (f"{SAYS}{reason} of {leg}" for leg, reason in _reasons(port) if leg in dead)
        yield Symptom("leg_down", (said, *why))
        yield from _ends_link(port)
    if set_down:
        said = f"member {', '.join(set_down)} of the LAG is set down (IFF_UP is missing){rest}"
        yield Symptom("set_down", (said,))
    if slow:
        said = f"member {', '.join(slow)} runs at {speeds[slow[0]] * 8e-9:g} Gbit/s, the fastest at {best * 8e-9:g}{rest}"
        yield Symptom("link_slow", (said,))


def _members(port: PortView) -> list[str]:
    """The network devices below a LAG; empty for other ports."""
    tracks = (track.labels for track, _ in port.current("roce_port_netdev_info"))
    return [labels["netdev"] for labels in tracks if labels["role"] == "member"]


SIBLINGS = 3
"""Ports of one model that have one speed, so that another one is the odd one out; fewer are no majority."""


def _slower_than_siblings(port: PortView) -> Iterator[Symptom]:
    """A port that was slow when watching began is told by those of its card model; by fewer than `SIBLINGS`, or by those of its driver, as a note."""
    speed, kind = speed_and_model(port)
    if not 0 < speed < max((value for name in SPEEDS for _, value in port.host.current(name)), default=0.0):
        return  # as almost always, without a comparison of all ports with all
    own = (port.device, port.port)
    others = [speed_and_model(one) for one in port.host.ports() if (one.device, one.port) != own]
    is_known = any(kind[1:])
    same = slice(None) if is_known else slice(1)
    alike = [its for its, known in others if any(kind) and known[same] == kind[same]]
    usual = max(set(alike), key=lambda its: (alike.count(its), its), default=0.0)
    if speed < usual:
        number = alike.count(usual)
        kin = "model" if is_known else "driver"
        said = (
            f"{speed * 8e-9:g} Gbit/s, not {usual * 8e-9:g} as {counted(number, 'other port')} of this {kin}"
        )
        yield Symptom("link_slow", (said,), note=not is_known or number < SIBLINGS)


SPEEDS = ("roce_link_speed_bytes_per_second", "roce_port_speed_bytes_per_second")


def speed_and_model(port: PortView) -> tuple[float, tuple[str, ...]]:
    """Speed of the link in bytes per second, 0 without one; driver, board and model, as far as they are known, and nothing for a virtual function."""
    names = SPEEDS[: 1 + bool(port.highest(UP))]  # of one that is down the lowest of its type
    speeds = next(filter(None, ([value for _, value in port.current(name)] for name in names)), [])
    kind = tuple(port.label("roce_device_info", name) for name in ("driver", "board", "model"))
    return max(speeds, default=0.0), () if port.label("roce_device_info", "function") == "vf" else kind


def _uncorrected(port: PortView) -> Iterator[Symptom]:
    window = port.limit("link_errors", "window")
    counters: tuple[tuple[str, str], ...] = (
        ("roce_phy_symbol_errors_total", "symbol errors that could not be corrected"),
        ("roce_phy_symbol_error_packets_total", "packets with a symbol error"),
        ("roce_mac_symbol_errors_total", "frames with a symbol error"),
        (LOST_BLOCKS, "blocks that could not be corrected"),
    )
    # On Ethernet these files have no meaning; on InfiniBand they are the PHY's, which may err in 1e-12 of the bits.
    is_infiniband = port.label("roce_port_info", "link_layer") == "InfiniBand"
    if is_infiniband:
        counters += (
            ("roce_port_symbol_errors_total", "symbol errors"),
            ("roce_port_receive_errors_total", "packets received with an error"),
            ("roce_port_local_link_integrity_errors_total", "local errors beyond their limit"),
        )
    yield from _errors(port, "link_errors", window, counters, 10.0 if is_infiniband else 1.0)


DAMAGED = "Packets arrive damaged, and not by this link: a cut-through switch passes them on"
CHANGES = "roce_netdev_carrier_changes_total"
SETTLING = 100.0
"""Packets with a wrong checksum for each change of the link that are part of it."""
CHECKSUMS = {
    "roce_phy_receive_crc_errors_total": "packets with a wrong checksum",
    "roce_mac_frame_check_sequence_errors_total": "frames with a wrong checksum",
}


def _crc(port: PortView) -> Iterator[Symptom]:
    window = port.limit("crc_errors", "window")
    upstream = port.rose("roce_phy_receive_stomped_crc_errors_total", window)
    own = any(not one.note for one in _uncorrected(port))
    # What comes damaged over a link whose error correction works and is seen to leave nothing was so before (cut-through switches).
    left = ("fec_uncorrectable_blocks", "symbol_errors", "symbol_error_packets")
    corrects = port.rose("roce_phy_fec_corrected_blocks_total", window) and port.tracks(LOST_BLOCKS)
    clean = corrects and not any(port.rose(f"roce_phy_{name}_total", window) for name in left)
    for found in _errors(port, "crc_errors", window, tuple(CHECKSUMS.items())):
        if upstream or clean:
            most = clean or upstream >= max(port.rose(name, window) for name in CHECKSUMS) / 2
            where = "the bad link is upstream" if most else "the others were damaged here"
            said = upstream and f"{upstream:.0f} of them were marked as corrupt by a switch: {where}"
            intact = clean and "this link's error correction left no block damaged: they came so"
            cause, title = ("corruption", DAMAGED) if most else (found.cause, "")
            yield found._replace(cause=cause, title=title, evidence=texts(*found.evidence, said, intact))
        else:
            # Blocks that this link could not correct explain them.
            yield found._replace(direction="receive" if own else "")


def _errors(
    port: PortView, cause: str, window: float, counters: tuple[tuple[str, str], ...], allowed: float = 1.0
) -> Iterator[Symptom]:
    """`allowed`: how many times the errors that the cause's own limit allows are few."""
    rises = [(rise, what) for name, what in counters if (rise := _beside_changes(port, name, window))]
    if not rises:
        return
    worst, _ = max(rises, key=lambda one: one[0].amount)
    speeds = (port.highest(f"roce_{name}_speed_bytes_per_second") for name in ("link", "port"))
    bits = (next(filter(None, speeds), 0.0)) * 8 * worst.seconds
    yield Symptom(
        cause,
        tuple(rose(rise, what) for rise, what in rises),
        weight=min(1.0, worst.rate / 1000),
        note=NAMED[cause].begins.is_few(worst.amount, bits * allowed),
    )


def steady(port: PortView, track: SeriesTrack, window: float) -> float:
    """How much one series rose in the intervals in which the link of its network device did not change."""
    netdev = {"netdev": track.labels["netdev"]} if "netdev" in track.labels else {}
    changed = [
        (one.points, moduli(name))
        for name in (CHANGES, DOWN_COUNTERS[0])
        for one in port.tracks(name, **netdev)
        if any(value != one.points[0][1] for _, value in one.points)
    ]
    return sum(
        after - before
        for (begin, before), (end, after) in pairwise(track.points)
        if begin >= port.host.end - window
        and after > before
        and not any(
            (rise := rise_between(points, begin, end, wraps)) and rise.amount for points, wraps in changed
        )
    )


def _beside_changes(port: PortView, name: str, window: float) -> Rise | None:
    """How much this counter of errors rose, without what the link produces by itself when it comes up.

    Wrong checksums count then, too, beyond `SETTLING` for each change: packets are only sent over a link that is up.
    """
    found = []
    for track in port.tracks(name):
        rise = port.rise_of(name, track, window)
        netdev = {"netdev": track.labels["netdev"]} if "netdev" in track.labels else {}
        changes = port.rose(CHANGES, window, **netdev)
        if rise and rise.amount and changes:
            many = rise.amount - SETTLING * changes if name in CHECKSUMS else 0.0
            rise = Rise(max(steady(port, track, window), many), rise.seconds)
        if rise and rise.amount:
            found.append(rise)
    return Rise(sum(one.amount for one in found), found[0].seconds) if found else None


def _bit_errors(port: PortView) -> Iterator[Symptom]:
    errors = port.rise("roce_phy_corrected_errors_total", QUICK)
    line = port.rise("roce_phy_line_bytes_total", QUICK)
    if errors:
        # Bytes that the line carried, idle symbols included.
        speed = port.highest("roce_link_speed_bytes_per_second") or 0.0
        carried = line.amount if line else speed * errors.seconds
        ratio = errors.amount / (carried * 8) if carried else 0.0
        if ratio > FEC_RATIO:
            said = f"{ratio:.1e} bit errors per bit before correction; RS(544,514) corrects up to 2.4e-4"
            yield Symptom("bit_errors_rising", (said,), weight=min(1.0, ratio / 2.4e-4))
            return
    yield from _trend(port)


def _trend(port: PortView) -> Iterator[Symptom]:
    """The newest quarter of the history against the calmest of the others."""
    begin, end = port.host.begin, port.host.end
    if end - begin < TREND_SECONDS or port.rose(CHANGES, end - begin):
        return
    part = (end - begin) / 4
    for name in CORRECTED:
        for track in port.tracks(name):
            parts = [rise_between(track.points, end - (n + 1) * part, end - n * part, ()) for n in range(4)]
            newest, before = parts[0], [one.rate for one in parts[1:] if one is not None]
            if newest and before and newest.rate > max(TREND_FLOOR, TREND_FACTOR * min(before)):
                said = (
                    f"{newest.rate:,.0f} corrected errors per second in the last {duration(newest.seconds)}, "
                    f"{min(before):,.0f} at the calmest of the {duration(end - begin)} before"
                )
                yield Symptom("bit_errors_rising", (said,))
                return


LINK_RULES: tuple[Rule, ...] = (
    *(_down, _unsteady, _slow, _legs, _slower_than_siblings),
    *(_uncorrected, _crc, _bit_errors, _beyond),
)
"""Rules of one port."""
