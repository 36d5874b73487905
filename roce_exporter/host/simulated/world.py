"""The simulated host: RDMA devices, the network devices below them, how each changes over time, and how a host is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, tee
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from roce_exporter.errors import UserError
from roce_exporter.host.simulated.conditions import Conditions, Setup, Span, Storm, TimedConditions
from roce_exporter.host.simulated.drivers import DRIVERS, Driver, amounts, statistics
from roce_exporter.host.simulated.rates import RunningTotals, hold
from roce_exporter.host.simulated.scenarios import SCENARIOS, PortSeed

T = TypeVar("T")


class ConditionChange(NamedTuple):
    """Two successive conditions of a network device, and when the second began (the host's clock)."""

    time: float
    netdev: str
    old: Conditions
    new: Conditions


class SimulatedNetdev:
    """One network device with hardware behind it. Times never decrease."""

    def __init__(
        self,
        netdev: str,
        driver: Driver,
        setup: Setup,
        spans: Iterable[Span],
        start: float,
        *,
        phase: float = 0.0,
    ) -> None:
        self.netdev = netdev
        self.driver = driver
        self.setup = setup
        self.start = start
        self.storms: list[Storm] = []
        """The storms that are over."""
        self.changes: list[ConditionChange] = []
        """Changes of link and transceiver, which the driver writes to the kernel log, and reloads of the driver."""
        self._phase = phase
        self._ongoing: dict[tuple[int, str], float] = {}
        self._tables: dict[tuple[int, ...], tuple[tuple[Any, ...], ...]] = {}
        """Names, facts and divisors of the counters while these priorities have PFC."""
        live, late = tee(hold(spans, start, setup, driver.speed))
        self._live = RunningTotals(live, self._note)
        self._reported = RunningTotals(late) if driver.refresh else self._live
        self._note_storms(self._live.current)

    def conditions(self, now: float) -> Conditions:
        """The conditions at `now`."""
        self._advance(now)
        return self._live.current.conditions

    def facts(self, now: float) -> Mapping[str, float]:
        """The quantities of the model at `now`."""
        self._advance(now)
        return self._live.totals(now)

    def reported(self, now: float) -> Mapping[str, float]:
        """The quantities that `ethtool -S` reports at `now`: those of the last refresh, or from before it froze."""
        self._advance(now)
        return self._reported.shown(self._refreshed(now))

    def statistics(self, now: float) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Names and values of `ethtool -S`; the names are the same object as long as PFC is on for the same priorities."""
        lossless = self.conditions(now).lossless or ()
        if lossless not in self._tables:
            self._tables[lossless] = tuple(zip(*statistics(self.driver, lossless), strict=True))
        names, facts, per = self._tables[lossless]
        return names, amounts(facts, per, self.reported(now))

    def ongoing(self, now: float) -> Iterator[Storm]:
        """The storms under way at `now`, which becomes their end."""
        self._advance(now)
        for (priority, direction), start in self._ongoing.items():
            yield Storm(self.netdev, priority, direction, start, now)

    def _advance(self, now: float) -> None:
        # Both, so that `tee` keeps only the spans between the two.
        self._live.advance(now)
        self._reported.advance(self._refreshed(now))

    def _refreshed(self, now: float) -> float:
        """Time of the last refresh of `ethtool -S`: with the port's own phase, or `now` without refreshes."""
        period = self.driver.refresh
        if not period:
            return now
        first = self.start + self._phase
        return max(self.start, first + math.floor((now - first) / period) * period)

    def _note(self, old: TimedConditions, new: TimedConditions) -> None:
        before, now = ((one.up, one.module, one.reset) for one in (old.conditions, new.conditions))
        if before != now:
            self.changes.append(ConditionChange(new.start, self.netdev, old.conditions, new.conditions))
        self._note_storms(new)

    def _note_storms(self, current: TimedConditions) -> None:
        storming = {pause.where for pause in current.conditions.pauses if pause.storm}
        for where in self._ongoing.keys() - storming:
            priority, direction = where
            self.storms.append(
                Storm(self.netdev, priority, direction, self._ongoing.pop(where), current.start)
            )
        for where in storming - self._ongoing.keys():
            self._ongoing[where] = current.start


class Card(NamedTuple):
    """One RDMA device of one port, with one network device, or with two member ports below a bond."""

    name: str
    driver: Driver
    members: tuple[SimulatedNetdev, ...]
    bond: str = ""
    """The bond of the members; empty for a single network device."""

    @property
    def netdev(self) -> str:
        """The network device of the RDMA port."""
        return self.bond or self.members[0].netdev

    def facts(self, now: float) -> Mapping[str, float]:
        """The sums of the quantities of all members."""
        if len(self.members) == 1:
            return self.members[0].facts(now)
        parts = [member.facts(now) for member in self.members]
        return {name: sum(part.get(name, 0.0) for part in parts) for part in parts for name in part}

    def up(self, now: float) -> bool:
        """Whether any member has a link."""
        return any(member.conditions(now).up for member in self.members)

    def broken(self, now: float) -> int:
        """Queue pairs in state ERR, of all members."""
        return sum(member.conditions(now).broken for member in self.members)

    def failing(self, now: float) -> set[str]:
        """The health reporters that report an error."""
        return {member.conditions(now).failing for member in self.members}

    def speed(self, now: float) -> int:
        """Bits per second of the slowest member."""
        return min(member.conditions(now).speed or 0 for member in self.members)


class World:
    """All devices of a host on one clock. A reader holds its `lock` from the call of `now` until it has the values."""

    def __init__(self, cards: Sequence[Card], clock: Callable[[], float], start: float) -> None:
        self.cards = tuple(cards)
        self.start = start
        self.lock = RLock()
        self._clock = clock
        self._now = start

    def now(self) -> float:
        """Seconds on the host's clock; never decreases."""
        self._now = max(self._now, self._clock())
        return self._now

    @property
    def netdevs(self) -> tuple[SimulatedNetdev, ...]:
        """Every network device with hardware behind it."""
        return tuple(netdev for card in self.cards for netdev in card.members)

    def read(self, read: Callable[[float], T]) -> T:
        """What `read` returns for now, with the lock."""
        with self.lock:
            return read(self.now())

    @property
    def changes(self) -> tuple[ConditionChange, ...]:
        """Every change of a link, of a transceiver or by a reload until now, in order of time."""

        def found(now: float) -> list[ConditionChange]:
            for netdev in self.netdevs:
                netdev.conditions(now)
            return [change for netdev in self.netdevs for change in netdev.changes]

        return tuple(sorted(self.read(found), key=lambda change: (change.time, change.netdev)))

    @property
    def storms(self) -> tuple[Storm, ...]:
        """Every storm until now, by its start; a storm under way ends now."""
        found = self.read(
            lambda now: [storm for netdev in self.netdevs for storm in (*netdev.ongoing(now), *netdev.storms)]
        )
        return tuple(sorted(found, key=lambda storm: storm[3:] + storm[:3]))

    @property
    def resets(self) -> tuple[ConditionChange, ...]:
        """Every reload of a driver, which resets its counters, until now."""
        return tuple(one for one in self.changes if one.new.reset and not one.old.reset)


VENDORS = tuple(DRIVERS)
MAX_PORTS = 16


class ScenarioError(UserError):
    """An unknown scenario or vendor, or too few or many ports: what everything raises that makes a simulated host or switch.

    One line that lists the valid ones.
    """


class Course(NamedTuple):
    """The setup of one network device, and its script."""

    setup: Setup
    spans: Iterable[Span]


Part = tuple["Driver", tuple[Course, ...], float]
"""One port to build: its driver, a course for each of its member ports, and the phase of its refresh."""


def make_scenario_world(
    scenario: str, clock: Callable[[], float], vendors: Sequence[str], seed: int
) -> World:
    """The world of a scenario, from the clock's first value on. See `simulated.kernel.simulate`."""
    return make_world(_scenario_parts(scenario, vendors, seed), clock)


def scenario_courses(scenario: str, vendors: Sequence[str], seed: int) -> Iterator[tuple[Driver, Course]]:
    """The driver and the course of each network device of a scenario's host, in the order of their names."""
    for driver, courses, _ in _scenario_parts(scenario, vendors, seed):
        for course in courses:
            yield driver, course


def _scenario_parts(scenario: str, vendors: Sequence[str], seed: int) -> Iterator[Part]:
    if scenario not in SCENARIOS:
        raise ScenarioError(f"no scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
    played, positions = SCENARIOS[scenario], count()
    for driver in drivers_of(vendors):
        ports = [PortSeed(next(positions), seed) for _ in range(1 + driver.lag)]
        courses = tuple(Course(played.setup(port.position), played.spans(port)) for port in ports)
        yield driver, courses, ports[0].random(f"phase {ports[0].position}").random()


def drivers_of(vendors: Sequence[str]) -> list[Driver]:
    """The driver of each port. ScenarioError: a vendor is unknown, or there are too few or many ports."""
    for vendor in vendors:
        if vendor not in DRIVERS:
            raise ScenarioError(f"no vendor {vendor!r}; there are {', '.join(VENDORS)}")
    if not 1 <= len(vendors) <= MAX_PORTS:
        raise ScenarioError(f"{len(vendors)} ports; a simulated host has 1 to {MAX_PORTS}")
    return [DRIVERS[vendor] for vendor in vendors]


def make_world(parts: Iterable[Part], clock: Callable[[], float]) -> World:
    """The world of these ports, from the clock's first value on."""
    start, cards = clock(), list[Card]()
    netdevs, numbers, bonds = count(), dict[str, int](), count()
    for driver, courses, phase in parts:
        number = numbers[driver.device] = numbers.get(driver.device, -1) + 1
        members = tuple(
            SimulatedNetdev(f"eth{next(netdevs)}", driver, setup, spans, start, phase=phase)
            for setup, spans in courses
        )
        bond = f"bond{next(bonds)}" if driver.lag else ""
        cards.append(Card(driver.device.format(number), driver, members, bond))
    return World(cards, clock, start)
