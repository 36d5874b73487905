"""The owners of one device from round to round: who is shown, their totals, and the samples of the last round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.model.owner import OTHER_OWNERS, UNKNOWN_OWNER, ObjectKind
from roce_exporter.owners.folding import choose_shown
from roce_exporter.owners.holdings import Holdings, OwnerHoldings, by_owner, together
from roce_exporter.owners.owner_counters import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.model.owner import Owner
    from roce_exporter.owners.owner_counters import OwnerTotal
    from roce_exporter.owners.owner_survey import Survey

OTHER_PEERS = OTHER_OWNERS.name


class Shown(NamedTuple):
    """What one owner of a device shows: its numbers, with peers beyond the configured number as `other`."""

    held: Holdings
    peers: Mapping[str, int]


class Round(NamedTuple):
    """The result of one round over one device."""

    kinds: frozenset[ObjectKind] = frozenset()
    """Kinds that were listed to their end. Numbers of other kinds are not known."""
    owners: Mapping[str, Shown] = {}
    """Owners with series of their own, and `other`."""
    folded: Mapping[str, Holdings] = {}
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
    """Creation time per process ID of the last round, see `Roll`."""
    last: Round = field(default_factory=Round)
    """The last round; empty if it failed altogether."""
    _shown: frozenset[str] = frozenset()
    _peers: dict[str, frozenset[str]] = field(default_factory=dict)
    _states: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Per owner the states and types of queue pairs that it has had: their series stay, with 0."""

    def enter(self, survey: Survey, dialect: str) -> None:
        """Enter what a round has found; `dialect` is the catalogue's name for how the driver spells its counters."""
        found = by_owner(survey.censuses.values(), survey.roll.owners, survey.roll.processes)
        self.created = survey.roll.created
        self._choose(found)
        folded = {name: held for name, held in found.held.items() if not self._is_shown(name)}
        held = {name: held for name, held in found.held.items() if name not in folded}
        if folded:
            held[OTHER_OWNERS.name] = together(folded.values())
        self._states = {
            name: self._states.get(name, set()) | set(one.queue_pairs) for name, one in held.items()
        }
        for name, one in held.items():
            one.queue_pairs.update(dict.fromkeys(self._states[name], 0))
        self._count(survey, dialect, held)
        self._peers = {name: self._peers.get(name, frozenset()) for name in held}
        self.last = Round(
            frozenset(survey.censuses),
            {name: Shown(one, self._choose_peers(name, one.connections)) for name, one in held.items()},
            folded,
            {**found.identities, **({OTHER_OWNERS.name: Counter((OTHER_OWNERS,))} if folded else {})},
            {
                total: value
                for total, value in self.ledger.totals.items()
                if total.owner in held and total.port in survey.sets
            },
            survey.unseen,
            survey.roll.hidden,
        )

    def fail(self) -> None:
        """Enter a round that found nothing: numbers of an earlier round must not look current."""
        self.last = Round()

    def _choose(self, found: OwnerHoldings) -> None:
        ranks = {name: held.rank for name, held in found.held.items() if name != UNKNOWN_OWNER.name}
        self._shown = choose_shown(ranks, self._shown, self.most)

    def _is_shown(self, name: str) -> bool:
        return name in self._shown or name == UNKNOWN_OWNER.name

    def _choose_peers(self, owner: str, connections: Counter[str]) -> dict[str, int]:
        ranks = {peer: (count,) for peer, count in connections.items()}
        shown = self._peers[owner] = choose_shown(ranks, self._peers[owner], self.most_peers)
        kept: Counter[str] = Counter()
        for peer, count in connections.items():
            kept[peer if peer in shown else OTHER_PEERS] += count
        return dict(sorted(kept.items()))

    def _count(self, survey: Survey, dialect: str, held: Mapping[str, Holdings]) -> None:
        def label_of(pid: int) -> str:
            name = survey.roll.owners.get(pid, UNKNOWN_OWNER).name
            return name if self._is_shown(name) else OTHER_OWNERS.name

        for port, sets in survey.sets.items():
            self.ledger.enter(dialect, port, sets, label_of)
        self.ledger.retain(held)
