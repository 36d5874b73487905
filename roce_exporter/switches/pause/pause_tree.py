"""The pause tree: from the hosts that switches pause, through the switches, to the ports where the pause starts.

A pure walk over the last answers of all switches. A switch that pauses its neighbour on priority p does so because packets of
p wait in it (IEEE 802.1Qbb): its other ports whose queue of p is paused or full are the candidates. A paused queue leads on to
the neighbour that paused it; a full queue that is not paused, a host that sends pause, and a loop are ends.
Counters do not show which port's packets wait in which queue, so every candidate is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter

from roce_exporter.switches.pause import fabric as at
from roce_exporter.switches.pause import pause_report as say
from roce_exporter.switches.pause.fabric import FabricLink, PausePlace
from roce_exporter.switches.pause.pause_report import PauseChoice, PauseGap, PauseStep, PauseTree
from roce_exporter.switches.switch_view import SwitchView, natural
from roce_exporter.words import few

STALE = 120.0
"""Seconds after which an answer is old: two scrapes at the longest usual interval."""

SHORT = 5.0
"""Seconds; most switches refresh their counters once a second, and some once in ten."""

MOST_STEPS = 2000
"""Steps of one tree. Each paused port is followed once, so only a storm over thousands of ports reaches this."""
MOST_DEPTH = 32
"""Switches between a host and the start of the pause; more than any fabric has."""
MOST_NAMED = 16
"""Ports that a step names of those that are followed elsewhere: in a storm each host has them all."""
CERTAIN = say.CAUSES - say.OPEN_ENDS
RECEIVERS = frozenset({say.SLOW_RECEIVER, say.PAUSED_RECEIVER})
RARE, EVERYDAY = 0.1, 0.05
"""A host whose pause is both below this part of another's, and below this part of the time, is no cause."""
STUCK = 0.9
"""A loop is one only if each of its queues is paused for this part of the time: in a deadlock no packet leaves."""
EVERYWHERE = PauseChoice()


def _of_answer(view: SwitchView, plan: at.SwitchPlan) -> Iterator[str]:
    for source, fault in view.faults.items():
        yield f"source {source}: {fault}" if source else fault
    for source, place in plan.sources:
        if view.samples.values[place] == 0 and source not in view.faults:
            yield f"source {source} could not be used"
    if not view.samples.series:
        if not view.faults:
            yield "has not answered"
        return
    if view.before is None or view.seconds <= 0:
        yield "answered once: rates need two answers, only states are known"
    elif view.seconds < SHORT:
        yield f"the last two answers are {view.seconds:.1f} s apart: its rates are rough"
    if view.age > STALE:
        yield f"the last answer is {view.age:.0f} s old"


def _of_ports(here: at.SwitchPauses, alone: Sequence[PausePlace]) -> Iterator[str]:
    if estimated := dict.fromkeys(here.estimated):
        yield f"pause time is estimated by the switch on {few(tuple(estimated))}"
    if not here.plan.announced:
        yield "reports no LLDP neighbours"
    elif ports := dict.fromkeys(
        one.port for one in alone if one in here.pausing or here.pause(one).is_paused
    ):
        yield f"no neighbour is known on {few(tuple(ports))}, which have pause"
    if not here.plan.has_queues:
        yield "which queue a priority has is not read: full queues and its watchdog are not known"
    elif all(here.pause(place).fill.is_full is None for place in here.plan.places):
        yield "how full its queues are is not read: incast there cannot be seen"


class _Wiring:
    """What is at the other end of each place, which plans say: kept from tree to tree, like them."""

    def __init__(self, plans: tuple[at.SwitchPlan, ...]) -> None:
        found, places = at.fabric_links(plans), {place: place for one in plans for place in one.places}
        self.links = {place: link for place in places if (link := found.get(place[:2]))}
        ends = ((place, link.peer) for place, link in self.links.items() if link.peer)
        peers = ((place, PausePlace(*end, place.priority)) for place, end in ends)
        # Equal objects that are the same one are found faster.
        self.peers = {place: places.get(peer, peer) for place, peer in peers}
        self.to_switches = {place for place, link in self.links.items() if link.kind == at.SWITCH}
        self.alone = {one.device: [place for place in one.places if place not in self.links] for one in plans}


_wiring = lru_cache(1)(_Wiring)


@dataclass(frozen=True, slots=True)
class _Fabric:
    by_switch: Mapping[str, at.SwitchPauses]
    made: Mapping[PausePlace, at.PortPause]
    """Those that were needed so far."""
    wiring: _Wiring

    def pause(self, place: PausePlace) -> at.PortPause:
        return self.made.get(place) or self.by_switch[place.switch].pause(place)

    def denies(self, place: PausePlace) -> bool:
        """Whether the switch of a place counts no pause frames there."""
        return place not in self.by_switch[place.switch].pausing and self.pause(place).transmits is False

    def link(self, place: PausePlace) -> FabricLink:
        return self.wiring.links.get(place, at.UNKNOWN_LINK)

    def peer(self, place: PausePlace) -> PausePlace | None:
        """The same priority at the other end of the link, if that is a known port of a switch."""
        return self.wiring.peers.get(place)

    def others(self, ingress: PausePlace) -> tuple[PausePlace, ...]:
        """The queues whose packets may come from this port: a switch does not send them back to it."""
        found = self.by_switch[ingress.switch].candidates.get(ingress.priority, ())
        return tuple(place for place in found if place != ingress) if ingress in found else found


def pause_tree(views: Sequence[SwitchView], choice: PauseChoice = EVERYWHERE) -> PauseTree:
    """The tree from the chosen ports, or from everything that is paused now.

    Rates need two answers of a switch; with one, only states are known (queue paused, watchdog tripped, fill level).
    """
    made: dict[PausePlace, at.PortPause] = {}
    parts = {view.device: at.SwitchPauses(view, made) for view in views}
    fabric = _Fabric(parts, made, wiring := _wiring(tuple(part.plan for part in parts.values())))
    walk = _Walk(fabric)
    starts = _everywhere(fabric, walk) if choice == EVERYWHERE else _chosen(fabric, choice)
    for place, is_victim in starts:
        if len(walk.steps) >= MOST_STEPS:
            walk.left_out.update((place, *map(itemgetter(0), starts)))
        else:
            walk.start(place, is_victim=is_victim)
    steps = _without_everyday_pause(walk.steps)
    # Queues that pause each other in a circle now and then are no news where something else explains the pause.
    explained = {step.priority for step in steps if step.kind in CERTAIN}
    ends = [
        step
        for step in steps
        if step.kind in say.CAUSES and not (step.kind == say.WEAK_LOOP and step.priority in explained)
    ]
    ends.sort(key=lambda step: (-(step.pause_ratio or 0), -(step.frames_per_second or 0)))
    ends.sort(key=lambda step: step.kind in say.OPEN_ENDS)  # of equal ones the order stays
    gaps = [
        PauseGap(view.device, text)
        for view, part in zip(views, parts.values(), strict=True)
        for text in (
            *_of_answer(view, part.plan),
            *(_of_ports(part, wiring.alone[part.plan.device]) if part.plan.places else ()),
        )
    ]
    if choice != EVERYWHERE and not steps and not walk.left_out:
        gaps.insert(0, PauseGap("", say.nothing_chosen(choice)))
    answered = sum(1 for view in views if view.samples.series)
    return PauseTree(steps, tuple(ends), tuple(gaps), answered, len(walk.left_out))


def _without_everyday_pause(steps: Sequence[PauseStep]) -> tuple[PauseStep, ...]:
    """The steps; a host that pauses rarely, next to one that does ten times as much, is no cause.

    Hosts of healthy fabrics pause their switch for up to a few hundredths of the time.
    """
    shares = {
        one.id: one.pause_ratio for one in steps if one.kind in RECEIVERS and one.pause_ratio is not None
    }
    most: dict[str, float] = {}
    for number, share in shares.items():
        most[steps[number].priority] = max(share, most.get(steps[number].priority, 0.0))
    rare = {one for one, share in shares.items() if share < min(EVERYDAY, RARE * most[steps[one].priority])}
    return tuple([step._replace(kind=say.ALSO_PAUSES) if step.id in rare else step for step in steps])


def _everywhere(fabric: _Fabric, walk: _Walk) -> Iterator[tuple[PausePlace, bool]]:
    """Where to start without a choice, so that the bound of the tree cuts off repetitions and no causes.

    First one paused host per switch and priority, the most paused first; then paused ports whose pause reaches none of these
    hosts, those first that no other pause explains; then the other paused hosts.
    """
    parts = fabric.by_switch
    rates: dict[PausePlace, float] = {}
    for device in sorted(parts, key=natural):
        rates |= parts[device].pausing
    # A sort backwards keeps places of equal pause in their order, too.
    victims = sorted(
        (one for one in rates if one not in fabric.wiring.to_switches), key=rates.__getitem__, reverse=True
    )
    of_switch = map(itemgetter(0, 2), reversed(victims))
    first = set(dict(zip(of_switch, reversed(victims), strict=True)).values())
    yield from zip([place for place in victims if place in first], repeat(True))
    candidates = (part.candidates.values() for part in parts.values() if part.may_be_paused)
    found = chain.from_iterable(chain.from_iterable(candidates))
    rest = [place for place in found if fabric.pause(place).is_paused and place not in walk.seen]
    followed = {place for one in rest if (peer := fabric.peer(one)) for place in fabric.others(peer)}
    yield from ((place, False) for place in rest if place not in followed)
    # What is left was reached by those, or is a loop.
    yield from ((place, False) for place in rest if place not in walk.seen)
    yield from zip([place for place in victims if place not in first], repeat(True))


def _chosen(fabric: _Fabric, choice: PauseChoice) -> Iterator[tuple[PausePlace, bool]]:
    """The chosen ports that pause their neighbour, then those that are paused by it; if neither is, all of them."""
    places = (place for part in fabric.by_switch.values() for place in part.plan.places)
    fitting = [place for place in places if choice.fits(place, fabric.link(place))]
    pauses = ((place, fabric.pause(place)) for place in fitting)
    found = [(place, bool(pause.transmits)) for place, pause in pauses if pause.transmits or pause.is_paused]
    return iter(sorted(found, key=lambda one: not one[1]) or [(place, True) for place in fitting])


class _Walk:
    """A depth-first walk with its own stack: a loop of any length costs no recursion. Each paused queue is followed once."""

    def __init__(self, fabric: _Fabric) -> None:
        self.steps: list[PauseStep] = []
        self.seen: set[PausePlace] = set()
        self.left_out: set[PausePlace] = set()
        """Ports that are not followed because the tree is full."""
        self._fabric = fabric
        self._path: dict[PausePlace, int] = {}
        """The queues between the start and here, with their steps."""
        self._stack: list[tuple[PausePlace, int | None, int, bool]] = []
        """Queues to visit with the step above and its depth; or to leave."""
        self._unexplained: dict[tuple[str, str], PausePlace] = {}
        """By switch and priority, the first port whose pause has no known reason."""
        self._repeats: dict[int, list[PausePlace]] = {}
        """By step, the queues below it that another branch follows."""

    def start(self, place: PausePlace, *, is_victim: bool) -> None:
        """Walk from a port that pauses its neighbour, or from one that its neighbour pauses."""
        if is_victim:
            pause, link = self._fabric.pause(place), self._fabric.link(place)
            kind = say.PAUSES if pause.transmits else say.NOT_PAUSED
            number = self._add(place, None, 0, kind, say.victim(place, link, pause))
            if pause.transmits:
                self._below(place, number, 1)
        elif place not in self.seen:
            self._stack.append((place, None, 0, False))
        while self._stack:
            self._visit(*self._stack.pop())
        for parent, places in self._repeats.items():
            depth = self.steps[parent].depth + 1
            self._add(places[0], parent, depth, say.SEEN, *_seen(tuple(places)))
        self._repeats.clear()

    def _visit(self, place: PausePlace, parent: int | None, depth: int, leave: bool) -> None:
        if leave:
            self._path.pop(place)
            return
        if len(self.steps) >= MOST_STEPS:
            self.left_out.add(place)
            return
        if parent is not None and place in self.seen:
            self._repeats.setdefault(parent, []).append(place)
            return
        self.seen.add(place)
        kind, sentence, peer = _judge(self._fabric, place)
        number = self._add(place, parent, depth, kind, sentence)
        if peer is None:
            return
        if depth >= MOST_DEPTH:
            self._add(place, number, depth + 1, say.CUT, f"the tree ends here after {MOST_DEPTH} steps.")
            return
        self._path[place] = number
        self._stack.append((place, None, depth, True))
        self._below(peer, number, depth + 1)

    def _below(self, ingress: PausePlace, parent: int, depth: int) -> None:
        """Add what may be the reason for the pause that a port of a switch sends."""
        found = self._fabric.others(ingress)
        if not found:
            first = self._unexplained.setdefault((ingress.switch, ingress.priority), ingress)
            # A switch that pauses all its neighbours for no known reason is one finding.
            if first != ingress:
                said = f"no reason is known, as for {first.port}."
                self._add(ingress, parent, depth, say.SEEN, said)
            else:
                said = say.unexplained(
                    ingress, self._fabric.by_switch[ingress.switch].fullest(ingress.priority)
                )
                self._add(ingress, parent, depth, say.UNEXPLAINED, said)
        among = {*found} if self._path else ()
        for place in [one for one in self._path if one in among]:
            self._add_loop(place, parent, depth)
        if repeats := [place for place in found if place in self.seen and place not in self._path]:
            self._repeats.setdefault(parent, []).extend(repeats)
        self._stack += [(one, parent, depth, False) for one in reversed(found) if one not in self.seen]

    def _add_loop(self, place: PausePlace, parent: int, depth: int) -> None:
        members = list(self._path)[list(self._path).index(place) :]
        pauses = [self._fabric.pause(one) for one in members]
        is_stuck = all(pause.tripped or (pause.receive_share or STUCK) >= STUCK for pause in pauses)
        kind = say.LOOP if is_stuck else say.WEAK_LOOP
        shares = [pause.receive_share for pause in pauses if pause.receive_share is not None]
        # A loop is as paused as its least paused port.
        share = min(shares) if len(shares) == len(pauses) else None
        number = self._add(place, parent, depth, kind, say.loop(members, pauses), *map(str, members))
        self.steps[number] = self.steps[number]._replace(pause_ratio=share)

    def _add(
        self, place: PausePlace, parent: int | None, depth: int, kind: str, said: str, *ports: str
    ) -> int:
        pause, link = self._fabric.pause(place), self._fabric.link(place)
        sends = kind in (say.PAUSES, say.NOT_PAUSED, say.UNEXPLAINED)
        share = None if sends else pause.receive_share
        estimated, held, tripped = pause.estimated and not sends, pause.fill.held, pause.tripped
        frames = pause.transmit_frames if sends else pause.receive_frames
        what = (len(self.steps), parent, depth, kind, said, *place, link.neighbor, link.neighbor_port)
        self.steps.append(PauseStep(*what, share, estimated, frames, held, tripped, ports))
        return len(self.steps) - 1


@lru_cache(64)
def _seen(places: tuple[PausePlace, ...]) -> tuple[str, ...]:
    """What a step says of queues that the tree has elsewhere, which in a storm are the same for all hosts of a switch."""
    return say.seen(places), *map(str, places[:MOST_NAMED])


def _judge(fabric: _Fabric, place: PausePlace) -> tuple[str, str, PausePlace | None]:
    """What a paused or full queue is in the tree, the sentence about it, and where the walk goes on."""
    pause, link = fabric.pause(place), fabric.link(place)
    if not pause.is_paused:
        return say.INCAST, say.incast(place, link, pause), None
    if link.kind == at.SWITCH:
        peer = fabric.peer(place)
        return say.PAUSED, say.paused(place, link, pause, peer is None or not fabric.denies(peer)), peer
    if link.kind != at.HOST:
        return say.LEAVES, say.leaves(place, link, pause), None
    kind = say.PAUSED_RECEIVER if pause.transmits else say.SLOW_RECEIVER
    return kind, say.receiver(place, link, pause), None
