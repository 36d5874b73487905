"""Builds simulated hosts: their ports, the names of devices, and the conditions of each port."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.errors import UserError
from roce_exporter.host.simulated.conditions import Conditions, Setup
from roce_exporter.host.simulated.scenarios import SCENARIOS, PortSeed
from roce_exporter.host.simulated.vendors import DRIVERS
from roce_exporter.host.simulated.world import Card, SimulatedNetdev, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from roce_exporter.host.simulated.conditions import Span
    from roce_exporter.host.simulated.drivers import Driver
    from roce_exporter.host.simulated.scenarios import Scenario

VENDORS = tuple(DRIVERS)
MAX_PORTS = 16


class ScenarioError(UserError):
    """An unknown simulated host; one line that lists the known ones."""


@dataclass(frozen=True, slots=True)
class ScriptedPort:
    """One port of a simulated host with an explicit script."""

    vendor: str
    spans: Iterable[Span]
    """The script, endless or not; for a LAG that of the first member port."""
    lossless: tuple[int, ...] = (3,)
    """Priorities with PFC."""
    priority: int = 3
    """The priority of RoCE traffic."""
    second: Iterable[Span] = ()
    """The script of the second member port of a LAG."""
    afterwards: Conditions = field(default_factory=Conditions)
    """The conditions after the end of a script."""
    phase: float = 0.0
    """Seconds from the start to the first refresh, for a driver that refreshes `ethtool -S` once a second; below 1."""
    faults: frozenset[str] = frozenset()
    """Simulated faults, of `simulation.faults.FAULTS`."""


class Course(NamedTuple):
    """The setup of one network device, its script, and the conditions afterwards."""

    setup: Setup
    spans: Iterable[Span]
    afterwards: Conditions = Conditions()


class Part(NamedTuple):
    """One port to build: a course for each of its member ports, and the phase of its refresh."""

    driver: Driver
    courses: tuple[Course, ...]
    phase: float


def make_scenario_world(
    scenario: str, clock: Callable[[], float], vendors: Sequence[str], seed: int
) -> World:
    """The world of a scenario, from the clock's first value on. See `simulation.kernel.simulate`.

    Raises:
        ScenarioError: unknown scenario or vendor, or an invalid number of ports.
    """
    return _world(_scenario_parts(scenario, vendors, seed), clock)


def scenario_courses(scenario: str, vendors: Sequence[str], seed: int) -> Iterator[tuple[Driver, Course]]:
    """The driver and the course of each network device of a scenario's host, in the order of their names.

    Raises:
        ScenarioError: unknown scenario or vendor, or an invalid number of ports.
    """
    for driver, courses, _ in _scenario_parts(scenario, vendors, seed):
        for course in courses:
            yield driver, course


def make_scripted_world(ports: Sequence[ScriptedPort], clock: Callable[[], float]) -> World:
    """The world of scripts, from the clock's first value on. See `simulation.kernel.simulate_script`.

    Raises:
        ScenarioError: unknown vendor, or an invalid number of ports.
    """
    return _world(_checked([_scripted(port) for port in ports]), clock)


def _driver(vendor: str) -> Driver:
    if vendor not in DRIVERS:
        raise ScenarioError(f"no vendor {vendor!r}; there are {', '.join(VENDORS)}")
    return DRIVERS[vendor]


def _scenario_parts(scenario: str, vendors: Sequence[str], seed: int) -> list[Part]:
    if scenario not in SCENARIOS:
        raise ScenarioError(f"no scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
    return _checked([*_parts(SCENARIOS[scenario], vendors, seed)])


def _parts(played: Scenario, vendors: Sequence[str], seed: int) -> Iterator[Part]:
    positions = count()
    for driver in map(_driver, vendors):
        ports = [PortSeed(next(positions), seed) for _ in range(1 + driver.lag)]
        courses = tuple(Course(played.setup(port.position), played.spans(port)) for port in ports)
        yield Part(driver, courses, ports[0].random(f"phase {ports[0].position}").random())


def _scripted(port: ScriptedPort) -> Part:
    driver = _driver(port.vendor)
    setup = Setup(lossless=port.lossless, priority=port.priority, faults=port.faults)
    scripts = (port.spans, port.second)[: 1 + driver.lag]
    return Part(driver, tuple(Course(setup, spans, port.afterwards) for spans in scripts), port.phase)


def _checked(parts: list[Part]) -> list[Part]:
    if not 1 <= len(parts) <= MAX_PORTS:
        raise ScenarioError(f"{len(parts)} ports; a simulated host has 1 to {MAX_PORTS}")
    return parts


def _world(parts: Sequence[Part], clock: Callable[[], float]) -> World:
    start = clock()
    return World(tuple(_cards(parts, start)), clock, start)


def _cards(parts: Sequence[Part], start: float) -> Iterator[Card]:
    netdevs, numbers, bonds = count(), dict[str, int](), count()
    for driver, courses, phase in parts:
        number = numbers[driver.device] = numbers.get(driver.device, -1) + 1
        members = tuple(
            SimulatedNetdev(
                f"eth{next(netdevs)}", driver, setup, spans, start, phase=phase, afterwards=afterwards
            )
            for setup, spans, afterwards in courses
        )
        yield Card(driver.device.format(number), driver, members, f"bond{next(bonds)}" if driver.lag else "")
