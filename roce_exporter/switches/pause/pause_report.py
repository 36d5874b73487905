"""The pause tree as data: its steps, each with a sentence, what it does not know, and the whole as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from roce_exporter.switches.pause.fabric import (
    AWAY,
    HOST,
    NOT_CONFIGURED,
    PORT_UNKNOWN,
    FabricLink,
    PausePlace,
    PortPause,
    is_named,
)
from roce_exporter.words import counted, few

KILO, MEGA = 1000, 1_000_000

PAUSES, NOT_PAUSED, PAUSED = "pauses", "not_paused", "paused"
SLOW_RECEIVER, PAUSED_RECEIVER, ALSO_PAUSES = "slow_receiver", "paused_receiver", "also_pauses"
INCAST, LOOP, WEAK_LOOP = "incast", "loop", "possible_loop"
LEAVES, UNEXPLAINED, SEEN, CUT = "leaves_known", "unexplained", "seen", "cut"
"""What the walk found at a step: docs/switches.md says what each kind means."""
OPEN_ENDS = frozenset({LEAVES, UNEXPLAINED, WEAK_LOOP})
"""Ends of the walk without a reason for the pause."""
CAUSES = frozenset({SLOW_RECEIVER, PAUSED_RECEIVER, INCAST, LOOP}) | OPEN_ENDS
"""Ends of the walk that are findings."""

TRIPPED = " The PFC watchdog of this queue is tripped: the pause is not obeyed, and packets are discarded."
VERSION = 1
"""Of the document. New keys do not change it; a key that is removed or means something else does."""


class PauseStep(NamedTuple):
    """One line of the tree; its fields are the keys of the document, which docs/switches.md describes."""

    id: int
    parent: int | None
    depth: int
    kind: str
    sentence: str
    switch: str
    port: str
    priority: str
    neighbor: str
    neighbor_port: str
    pause_ratio: float | None
    pause_ratio_estimated: bool
    frames_per_second: float | None
    queue_bytes: float | None
    watchdog_tripped: bool | None
    ports: tuple[str, ...] = ()

    @property
    def place(self) -> PausePlace:
        """Where it is."""
        return PausePlace(self.switch, self.port, self.priority)


class PauseGap(NamedTuple):
    """Something that the tree does not know."""

    switch: str
    """Empty if it is about no single switch."""
    text: str


class PauseChoice(NamedTuple):
    """Where the tree starts. Empty fields match everything; all empty: wherever there is pause."""

    host: str = ""
    netdev: str = ""
    switch: str = ""
    port: str = ""
    priority: str = ""

    def fits(self, place: PausePlace, link: FabricLink) -> bool:
        """Whether a switch port, or the host behind it, is chosen."""
        return (
            (not self.host or (link.kind in (HOST, NOT_CONFIGURED) and is_named(link.neighbor, self.host)))
            and (
                not self.netdev
                or any(self.netdev in name.split() for name in (link.neighbor_port, *link.names))
            )
            and (not self.switch or is_named(place.switch, self.switch))
            and self.port in ("", place.port)
            and self.priority in ("", place.priority)
        )


@dataclass(frozen=True, slots=True)
class PauseTree:
    """The result: steps in the order of the walk, each below its parent."""

    steps: tuple[PauseStep, ...]
    causes: tuple[PauseStep, ...]
    """The steps at which the walk ended with a finding: what is certain first, then by pause."""
    gaps: tuple[PauseGap, ...]
    """What is not known: switches and sources that failed, estimates, missing neighbours."""
    switches: int
    """How many switches answered."""
    cut: int = 0
    """Paused ports that were not followed, because the tree has the most steps that are allowed."""


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
    if pause.receive_share is not None:
        return f"for {share_text(pause.receive_share, estimated=pause.estimated)}"
    if pause.receive_frames:
        return f"with {pause.receive_frames:.3g} pause frames per second"
    return "at the time of the answer"


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
    return start + end + (TRIPPED if pause.tripped else "")


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
    if not fill.marks and fill.busy is not None:
        return f"is on a port that transmits at {fill.busy:.0%} of its speed"
    return f"marks {fill.marks or 0:.3g} packets per second with ECN"


def paused(place: PausePlace, link: FabricLink, pause: PortPause, answering: bool) -> str:
    """About a queue that another switch pauses."""
    text = f"{link} pauses {place} on priority {place.priority} {_received(pause)}."
    if not answering:
        text += f" {link} counts no pause frames sent: one of the two counters is wrong, or not current."
    return text + (TRIPPED if pause.tripped else "")


def leaves(place: PausePlace, link: FabricLink, pause: PortPause) -> str:
    """About a paused queue from which the walk cannot go on."""
    reason = {
        AWAY: f"{link.neighbor} has not answered",
        PORT_UNKNOWN: f"the neighbour is {link.neighbor}, but which port of it is not known",
        NOT_CONFIGURED: f"{link} is a switch that is not in the configuration",
    }.get(link.kind, "no neighbour is known for this port (LLDP, or `links` of the target)")
    return (
        f"the pause leaves what is known at {place}: it is paused on priority {place.priority} "
        f"{_received(pause)}, and {reason}.{TRIPPED if pause.tripped else ''}"
    )


def loop(members: Sequence[PausePlace], pauses: Sequence[PortPause]) -> str:
    """About queues that pause each other in a circle."""
    way = " -> ".join(map(str, (*members, members[0])))
    text = f"the pause of priority {members[0].priority} forms a loop: {way}. "
    text += "It is a deadlock if packets take this way, which counters do not show."
    if shares := [pause.receive_share for pause in pauses if pause.receive_share is not None]:
        text += f" The least paused of them is paused for {share_text(min(shares), estimated=False)}."
    held = " The PFC watchdog of a queue in it is tripped."
    return text + (held if any(pause.tripped for pause in pauses) else "")


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


def seen(places: Sequence[PausePlace]) -> str:
    """About queues that the tree has elsewhere."""
    return f"also {few(places)}: followed elsewhere in this tree."


def nothing_chosen(choice: PauseChoice) -> str:
    """About a choice that matches no port."""
    chosen = ", ".join(f"{name} {value}" for name, value in choice._asdict().items() if value)
    return (
        f"no switch port with pause counters fits {chosen}: hosts are found by their LLDP system name, "
        "or by `links` of the target."
    )


def as_text(tree: PauseTree) -> str:
    """The tree, its causes first, indented by distance from the start."""
    return "\n".join(_lines(tree)) + "\n"


def _lines(tree: PauseTree) -> Iterator[str]:
    switches = counted(tree.switches, "switch", "switches")
    if not tree.steps:
        yield f"No pause is known on {switches}."
    for heading, is_open in (("Where it starts", False), ("Where the walk ends without a reason", True)):
        if ends := [step for step in tree.causes if (step.kind in OPEN_ENDS) is is_open]:
            yield f"{heading} ({switches} answered):"
            yield from (f"  {step.sentence}" for step in ends)
            yield ""
    if tree.steps:
        yield "How the pause gets there:"
        yield from ("  " * (step.depth + 1) + step.sentence for step in in_order(tree))
    if tree.cut:
        cut = counted(tree.cut, "more paused port is", "more paused ports are")
        yield f"  {cut} not shown; choose one by host, or by switch and port."
    if tree.gaps:
        yield ""
        yield "What is not known:"
        yield from (f"  {gap.switch}: {gap.text}" if gap.switch else f"  {gap.text}" for gap in tree.gaps)


def in_order(tree: PauseTree) -> Iterator[PauseStep]:
    """The steps, each directly followed by the steps below it."""
    below: dict[int | None, list[PauseStep]] = {}
    for step in tree.steps:
        below.setdefault(step.parent, []).append(step)
    stack = below.get(None, [])[::-1]
    while stack:
        step = stack.pop()
        yield step
        stack += below.get(step.id, [])[::-1]


def as_document(tree: PauseTree) -> dict[str, Any]:
    """The document that `as_json` prints; docs/switches.md describes its keys."""
    return {
        "version": VERSION,
        "switches": tree.switches,
        "causes": [step.id for step in tree.causes],
        "steps": [
            {**step._asdict(), "neighbor": step.neighbor or None, "neighbor_port": step.neighbor_port or None}
            for step in in_order(tree)
        ],
        "unknown": [{"switch": gap.switch or None, "text": gap.text} for gap in tree.gaps],
        "not_shown": tree.cut,
    }


def as_json(tree: PauseTree) -> str:
    """The document as text."""
    return json.dumps(as_document(tree), indent=2, ensure_ascii=False) + "\n"
