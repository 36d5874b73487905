"""The owners of one device from round to round: who is shown, and the totals of their counters, added up from counter sets. Pure.

A set lives as long as the queue pairs that are bound to it, and its counts go with it. So each round adds what every set
has counted since the round before to the total of its owner, and a total never falls.

What the first value of a set means: in the first round that reads a port, the set can be of any age, and what it
counted before belongs to no interval; counting starts from that value. A set that appears in a later round was made
since the round before, so that all of its value counts. Lost is what a set counts between the last round and its end.

Sets of ionic hold only what the queue pairs that exist have counted. A value that falls has lost a queue pair, and
what the others have counted meanwhile is not known: it is not counted, so that owners never exceed the port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from roce_exporter.catalog import check
from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.owners import OWNER_COUNTERS
from roce_exporter.catalog.row import HW_COUNTERS, Row
from roce_exporter.model.owner import OTHER_OWNERS, UNKNOWN_OWNER, CounterSet, ObjectKind, Owner
from roce_exporter.normalise.series import Value, step
from roce_exporter.normalise.series_plan import (
    Source,
    ValuePlan,
    ValuePosition,
    choose,
    value_plan,
    values_of,
)
from roce_exporter.owners.owner_scan import ObjectTotals, OwnerScan, by_owner, together

OF_OWNER = {of_port.name: of_owner for of_port, of_owner in OWNER_COUNTERS}
OF_PORT = check(
    replace(row, spellings=tuple(one for one in row.spellings if not one.difference))
    for row, _ in OWNER_COUNTERS
)
"""The rows of a port whose counters sets have, too. A difference is the state of a port, which no set counts."""

KEPT_ROUNDS = 10
"""Rounds for which the totals of an owner without sets are kept: a service that restarts continues to count."""


SetKey = tuple[int, int, int, str]
"""Port, number, process and type of a counter set. The kernel gives a number to another set once the first one is gone."""


class OwnerTotal(NamedTuple):
    """Which total: a row, an owner's name, and a port."""

    row: Row
    owner: str
    port: int


class Ledger:
    """The totals of one device's owners."""

    def __init__(self) -> None:
        self.totals: dict[OwnerTotal, float] = {}
        self._last: dict[int, dict[SetKey, Mapping[str, int]]] = {}
        """Per port the values of the last round that could read it."""
        self._unused: dict[str, int] = {}
        """Rounds since an owner with totals was last present."""

    def enter(
        self, dialect: str, port: int, sets: Sequence[CounterSet], owner_of: Callable[[int], str]
    ) -> None:
        """Enter the sets of one port; `owner_of` names the owner of a process. Sets not made per process are left out."""
        now = {(one.port, one.number, one.pid, one.type): one.values for one in sets if one.pid}
        before = self._last.get(port)
        for key, values in now.items():
            owner = owner_of(key[2])
            start = values if before is None else before.get(key, {})
            for row, growth in _growths(dialect, start, values):
                total = OwnerTotal(row, owner, port)
                self.totals[total] = self.totals.get(total, 0) + (growth or 0)
        self._last[port] = now

    def retain(self, present: Collection[str]) -> None:
        """Once a round: drop the totals of owners that have not been present for `KEPT_ROUNDS` rounds."""
        for owner in {total.owner for total in self.totals}:
            self._unused[owner] = 0 if owner in present else self._unused.get(owner, 0) + 1
        gone = {owner for owner, rounds in self._unused.items() if rounds > KEPT_ROUNDS}
        self.totals = {total: value for total, value in self.totals.items() if total.owner not in gone}
        for owner in gone:
            del self._unused[owner]


class Growths(NamedTuple):
    """What the raw counters of a set have grown by, in the order of its names."""

    values: Sequence[int]


@lru_cache(maxsize=64)
def _plan(dialect: str, names: tuple[str, ...]) -> tuple[tuple[Source, ...], ValuePlan]:
    """The counters of owners that a set with these names has, by the same rules as those of the port."""
    uncounted = family_of(dialect).uncounted
    known = {name: ValuePosition(0, at) for at, name in enumerate(names) if not name.startswith(uncounted)}
    sources = choose(OF_PORT, dialect, {(HW_COUNTERS, ()): known}, {})
    return sources, value_plan(sources)


def _growths(
    dialect: str, before: Mapping[str, int], values: Mapping[str, int]
) -> Iterator[tuple[Row, Value]]:
    """What each row has grown by, in base units, between two readings of a set; a name missing before was 0."""
    is_sum = family_of(dialect).sums_on_read
    sources, plan = _plan(dialect, tuple(values))
    grown = [0] * len(values)
    for source in sources:
        for raw, place in zip(source.raw, source.places, strict=True):
            last, now = before.get(raw, 0), values[raw]
            # A sum over the queue pairs that exist has counted at least what it grew by.
            grown[place.position] = (
                max(0, now - last) if is_sum else step(last, now, (1 << source.spelling.bits,))
            )
    for source, value in zip(sources, values_of(plan, (Growths(grown),)), strict=True):
        yield OF_OWNER[source.series.row.name], value


MARGIN = 1.25  # how much more a newcomer must have to take the place of one that is shown already


def choose_shown(
    ranks: Mapping[str, tuple[float, ...]], before: Collection[str], most: int
) -> frozenset[str]:
    """The names to show, at most `most`: those of the highest ranks.

    A name shown `before` keeps its place until a newcomer exceeds it by `MARGIN`. Equal ranks are decided by name.
    """

    def order(name: str) -> tuple[tuple[float, ...], bool, str]:
        shown = name in before
        weight = MARGIN if shown else 1.0
        return tuple(-weight * number for number in ranks[name]), not shown, name

    return frozenset(sorted(ranks, key=order)[:most])


OTHER_PEERS = OTHER_OWNERS.name


class OwnerNumbers(NamedTuple):
    """What one owner of a device shows: its numbers, with peers beyond the configured number as `other`."""

    held: ObjectTotals
    peers: Mapping[str, int]


class Round(NamedTuple):
    """The result of one round over one device."""

    kinds: frozenset[ObjectKind] = frozenset()
    """Kinds that were listed to their end. Numbers of other kinds are not known."""
    owners: Mapping[str, OwnerNumbers] = {}
    """Owners with series of their own, and `other`."""
    folded: Mapping[str, ObjectTotals] = {}
    """Owners that are part of `other`."""
    identities: Mapping[str, Counter[Owner]] = {}
    totals: Mapping[OwnerTotal, float] = {}
    """Of the ports whose counter sets could be read."""
    unseen: Mapping[ObjectKind, int] = {}
    hidden: int = 0


@dataclass(slots=True)
class DeviceOwners:
    """What is kept of a device between its rounds. Used by the event loop."""

    most: int
    """Owners with series of their own."""
    most_peers: int
    ledger: Ledger = field(default_factory=Ledger)
    created: Mapping[int, float] = field(default_factory=dict)
    """Creation time per process ID of the last round, see `ProcessOwners`."""
    last: Round = field(default_factory=Round)
    """The last round; empty if it failed altogether."""
    _shown: frozenset[str] = frozenset()
    _peers: dict[str, frozenset[str]] = field(default_factory=dict)
    _states: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Per owner the states and types of queue pairs that it has had: their series stay, with 0."""

    def enter(self, scan: OwnerScan, dialect: str) -> None:
        """Enter what a round has found; `dialect` is the catalogue's name for how the driver spells its counters."""
        found = by_owner(scan.censuses.values(), scan.known.owners, scan.known.processes)
        self.created = scan.known.created
        self._shown = _choose(found.held, self._shown, self.most)
        folded = {name: held for name, held in found.held.items() if _label(name, self._shown) != name}
        held = {name: held for name, held in found.held.items() if name not in folded}
        if folded:
            held[OTHER_OWNERS.name] = together(folded.values())
        self._states = {
            name: self._states.get(name, set()) | set(one.queue_pairs) for name, one in held.items()
        }
        for name, one in held.items():
            one.queue_pairs.update(dict.fromkeys(self._states[name], 0))

        def label_of(pid: int) -> str:
            return _label(scan.known.owners.get(pid, UNKNOWN_OWNER).name, self._shown)

        for port, sets in scan.sets.items():
            self.ledger.enter(dialect, port, sets, label_of)
        self.ledger.retain(held)
        self._peers = {name: self._peers.get(name, frozenset()) for name in held}
        self.last = Round(
            frozenset(scan.censuses),
            {
                name: OwnerNumbers(one, self._choose_peers(name, one.connections))
                for name, one in held.items()
            },
            folded,
            {**found.identities, **({OTHER_OWNERS.name: Counter((OTHER_OWNERS,))} if folded else {})},
            {
                total: value
                for total, value in self.ledger.totals.items()
                if total.owner in held and total.port in scan.sets
            },
            scan.unseen,
            scan.known.hidden,
        )

    def fail(self) -> None:
        """Enter a round that found nothing: numbers of an earlier round must not look current."""
        self.last = Round()

    def _choose_peers(self, owner: str, connections: Counter[str]) -> dict[str, int]:
        ranks = {peer: (count,) for peer, count in connections.items()}
        shown = self._peers[owner] = choose_shown(ranks, self._peers[owner], self.most_peers)
        kept: Counter[str] = Counter()
        for peer, count in connections.items():
            kept[peer if peer in shown else OTHER_PEERS] += count
        return dict(sorted(kept.items()))


def _choose(held: Mapping[str, ObjectTotals], before: Collection[str], most: int) -> frozenset[str]:
    """The owners with series of their own, besides those that always have them."""
    fixed = {UNKNOWN_OWNER.name, OTHER_OWNERS.name}
    return choose_shown({name: one.rank for name, one in held.items() if name not in fixed}, before, most)


def _label(name: str, shown: Collection[str]) -> str:
    return name if name in shown or name == UNKNOWN_OWNER.name else OTHER_OWNERS.name


class HostOwners:
    """What owners hold and count on all devices of a host together, for as many owners as one device shows.

    A counter adds what each device has counted since it was last read: so it does not fall when a device leaves.
    """

    def __init__(self, most: int) -> None:
        self.held: dict[str, ObjectTotals] = {}
        self.kinds: frozenset[ObjectKind] = frozenset()
        self.counts: dict[tuple[Row, str], float] = {}
        self._most = most
        self._shown: frozenset[str] = frozenset()
        self._read: dict[Hashable, dict[OwnerTotal, float]] = {}

    def enter(self, devices: Mapping[Hashable, DeviceOwners]) -> None:
        """Enter the last round of each device."""
        parts: dict[str, list[ObjectTotals]] = {}
        for one in devices.values():
            for name, shown in one.last.owners.items():
                parts.setdefault(name, []).append(shown.held)
        together_by_name = {name: together(found) for name, found in parts.items()}
        self._shown = _choose(together_by_name, self._shown, self._most)
        self.held = {}
        for name, held in sorted(together_by_name.items()):
            self.held.setdefault(_label(name, self._shown), ObjectTotals()).add(held)
        self.kinds = frozenset[ObjectKind]().union(*(one.last.kinds for one in devices.values()))
        for key, one in devices.items():
            read = self._read.setdefault(key, {})
            for total, value in one.last.totals.items():
                label = total.row, _label(total.owner, self._shown)
                self.counts[label] = self.counts.get(label, 0.0) + value - read.get(total, 0.0)
                read[total] = value
            self._read[key] = {total: value for total, value in read.items() if total in one.ledger.totals}
        self._read = {key: self._read[key] for key in devices}
        self.counts = {label: count for label, count in self.counts.items() if label[1] in self.held}
