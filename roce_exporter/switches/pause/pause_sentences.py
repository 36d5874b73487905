"""The sentences of the pause tree, in plain English for a terminal at night."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.switches.pause.fabric_links import AWAY, NOT_CONFIGURED, PORT_UNKNOWN
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.switches.pause.fabric_links import FabricLink
    from roce_exporter.switches.pause.pause_tree import PauseChoice
    from roce_exporter.switches.pause.port_pause import PausePlace, PortPause

KILO, MEGA = 1000, 1_000_000

TRIPPED = " The PFC watchdog of this queue is tripped: the pause is not obeyed, and packets are discarded."


def share_text(share: float, *, estimated: bool) -> str:
    """A part of the time: `84 % of the time`."""
    text = "less than 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")  # noqa: PLR2004 - one per cent
    return f"about {text} of the time (estimated by the switch)" if estimated else f"{text} of the time"


def bytes_text(number: float) -> str:
    """Bytes with a decimal prefix: `1.2 MB`."""
    if number >= MEGA:
        return f"{number / MEGA:.1f} MB"
    return f"{number / KILO:.0f} kB" if number >= KILO else f"{number:.0f} bytes"


def _received(pause: PortPause) -> str:
    """How much pause a queue receives."""
    if pause.receive_share is not None:
        return f"for {share_text(pause.receive_share, estimated=pause.estimated)}"
    if pause.receive_frames:
        return f"with {pause.receive_frames:.3g} pause frames per second"
    return "at the time of the answer"


def _watchdog(pause: PortPause) -> str:
    return TRIPPED if pause.tripped else ""


def victim(place: PausePlace, link: FabricLink, pause: PortPause) -> str:
    """About a port on which a switch pauses what is behind it."""
    if pause.transmits is None:
        return (
            f"whether {place} pauses {link} on priority {place.priority} is not known: "
            "that needs two answers with its count of pause frames."
        )
    if not pause.transmits:
        return f"{place} does not pause {link} on priority {place.priority} now."
    return f"{place} pauses {link} on priority {place.priority} with {pause.transmit_frames:.3g} pause frames per second."


def receiver(place: PausePlace, link: FabricLink, pause: PortPause) -> str:
    """About a host that pauses its switch."""
    start = f"{link} sends pause on priority {place.priority} to {place} {_received(pause)}"
    if pause.transmits is None:
        end = (
            "; whether it receives any is not known: the pause starts there unless the host is paused itself."
        )
    elif pause.transmits:
        end = " and receives pause as well: it is slow to receive, or waits for packets that it cannot send."
    else:
        end = " and receives none: it is where the pause starts."
    return start + end + _watchdog(pause)


def incast(place: PausePlace, link: FabricLink, pause: PortPause) -> str:
    """About a full queue that is not paused."""
    state = "is not paused" if pause.is_paused is False else "is not known to be paused"
    return (
        f"{place} to {link}: its queue of priority {place.priority} {_filled(pause)} and {state}: "
        "more packets arrive for it than its link carries (incast, or an oversubscribed port)."
    )


def _filled(pause: PortPause) -> str:
    fill = pause.fill
    if fill.held is not None and fill.full_at is not None and fill.held >= fill.full_at:
        span = "held up to" if fill.recent else "holds"
        return f"{span} {bytes_text(fill.held)}, more than {fill.limit} ({bytes_text(fill.full_at)}),"
    return f"marks {fill.marks or 0:.3g} packets per second with ECN"


def paused(place: PausePlace, link: FabricLink, pause: PortPause, answering: bool) -> str:
    """About a queue that another switch pauses."""
    denied = (
        ""
        if answering
        else f" {link} counts no pause frames sent: one of the two counters is wrong, or not current."
    )
    return f"{link} pauses {place} on priority {place.priority} {_received(pause)}.{denied}{_watchdog(pause)}"


def leaves(place: PausePlace, link: FabricLink, pause: PortPause) -> str:
    """About a paused queue from which the walk cannot go on."""
    reason = {
        AWAY: f"{link.neighbor} has not answered",
        PORT_UNKNOWN: f"the neighbour is {link.neighbor}, but which port of it is not known",
        NOT_CONFIGURED: f"{link} is a switch that is not in the configuration",
    }.get(link.kind, "no neighbour is known for this port (LLDP, or `links` of the target)")
    return (
        f"the pause leaves what is known at {place}: it is paused on priority {place.priority} "
        f"{_received(pause)}, and {reason}.{_watchdog(pause)}"
    )


def loop(members: Sequence[PausePlace], pauses: Sequence[PortPause]) -> str:
    """About queues that pause each other in a circle."""
    way = " -> ".join(map(str, (*members, members[0])))
    shares = [pause.receive_share for pause in pauses if pause.receive_share is not None]
    least = (
        f" The least paused of them is paused for {share_text(min(shares), estimated=False)}."
        if shares
        else ""
    )
    held = " The PFC watchdog of a queue in it is tripped." if any(pause.tripped for pause in pauses) else ""
    return (
        f"the pause of priority {members[0].priority} forms a loop: {way}. "
        f"It is a deadlock if packets take this way, which counters do not show.{least}{held}"
    )


def unexplained(ingress: PausePlace, fullest: tuple[PausePlace, PortPause] | None) -> str:
    """About a switch that sends pause without a known reason."""
    start = f"{ingress.switch} sends pause on {ingress.port}, and no other queue of priority {ingress.priority} on it"
    if fullest is None:
        return f"{start} is paused; how full its queues are was not read, so a full queue is possible."
    place, pause = fullest
    held = f"the fullest is that of {place.port} with {bytes_text(pause.fill.held or 0)}"
    if pause.fill.full_at is None:
        return f"{start} is paused; {held}, but neither pause nor ECN thresholds were read."
    return (
        f"{start} is paused or full now ({held}): the reason was short, "
        f"or the pause threshold of {ingress.port} is too low."
    )


def as_unexplained(first: PausePlace) -> str:
    """About a further port of a switch that sends pause without a known reason."""
    return f"no reason is known, as for {first.port}."


def seen(places: Sequence[PausePlace]) -> str:
    """About queues that the tree has elsewhere."""
    return f"also {few(places)}: followed elsewhere in this tree."


def too_deep(most: int) -> str:
    """About a branch that is longer than the bound."""
    return f"the tree ends here after {most} steps."


def nothing_chosen(choice: PauseChoice) -> str:
    """About a choice that matches no port."""
    chosen = ", ".join(f"{name} {value}" for name, value in choice._asdict().items() if value)
    return (
        f"no switch port with pause counters fits {chosen}: hosts are found by their LLDP system name, "
        "or by `links` of the target."
    )
