"""The leaf switch of the simulated fabric: a SONiC with a port for each network device of the simulated host, and two more.

The same scenario, vendors and seed give the same switch, and one that fits the host: both ends of a link play one script.
The host's script does not depend on the watchdog: a port that feels the storm of another feels it until the host's
storm ends, also where the watchdog has stopped it at this switch.

The two other ports lead to quiet hosts. In the scenario `victim` the cause that is elsewhere is the first of them: it sends
pause without end while the victims are paused, and the watchdog of its port only reports.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.host.simulated.conditions import TRANSMIT, Conditions, Pause, Setup
from roce_exporter.host.simulated.hosts import scenario_courses
from roce_exporter.host.simulated.leaf_buffers import MEBIBYTE, LeafWred
from roce_exporter.host.simulated.leaf_counters import counters_db
from roce_exporter.host.simulated.leaf_port import LeafNeighbor, LeafPlan, LeafPort
from roce_exporter.host.simulated.leaf_settings import appl_db, config_db, state_db
from roce_exporter.host.simulated.leaf_watchdog import ALERT, LeafWatchdog
from roce_exporter.host.simulated.scenarios import PortSeed, again, quiet
from roce_exporter.host.simulated.still import hostname_of, mac_of
from roce_exporter.host.simulated.timeline import overlay, paused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.simulated.conditions import Span
    from roce_exporter.host.simulated.leaf_counters import Table

Databases = dict[str, "Table"]
"""The tables of a SONiC by the name of their database."""

DATABASE_NUMBERS = {"APPL_DB": 0, "COUNTERS_DB": 2, "CONFIG_DB": 4, "STATE_DB": 6}
"""The numbers of the databases in SONiC's default layout (database_config.json)."""

OTHERS = 2
"""Hosts behind the switch besides the simulated one."""

LANES = 8
OTHER_SPEED = 400 * 10**9
LARGEST_HOST = 2**24

LATE_MARKS = LeafWred("LATE_MARKS", minimum=4 * MEBIBYTE, maximum=5 * MEBIBYTE)
NO_MARKS = LeafWred("NO_MARKS", ecn=False)
REPORTING = LeafWatchdog(action=ALERT)


class _LeafLink(NamedTuple):
    """A port with the script of the host's end."""

    plan: LeafPlan
    setup: Setup
    spans: Iterator[Span]
    afterwards: Conditions


class SimulatedLeaf:
    """The switch over time. Times never decrease."""

    def __init__(self, hostname: str, mac: str, ports: Sequence[LeafPort]) -> None:
        self.hostname = hostname
        self.plans = tuple(port.plan for port in ports)
        self._mac = mac
        self._ports = tuple(ports)
        self._config = config_db(hostname, mac, self.plans)

    def databases(self, now: float) -> Databases:
        """All tables of the switch at `now`, which is a time of the host's clock."""
        ports = [port.state(now) for port in self._ports]
        return {
            "APPL_DB": appl_db(self.hostname, self._mac, ports),
            "COUNTERS_DB": counters_db(ports),
            "CONFIG_DB": self._config,
            "STATE_DB": state_db(),
        }


def simulate_leaf(scenario: str, *, start: float, vendors: Sequence[str], seed: int) -> SimulatedLeaf:
    """The switch of a simulated host; `start` is the time at which the host's world began.

    Raises:
        ScenarioError: unknown scenario or vendor, or an invalid number of ports.
    """
    links = [*_host_links(scenario, vendors, seed)]
    for other in range(1, OTHERS + 1):
        links.append(_other_link(scenario, seed, other, len(links)))
    ports = [LeafPort(link.plan, link.setup, link.spans, start, link.afterwards) for link in links]
    return SimulatedLeaf(f"leaf-{seed:03}", _switch_mac(seed), ports)


def _switch_mac(seed: int) -> str:
    """Locally administered, in another range than those of the hosts."""
    return (bytes((6,)) + (seed % LARGEST_HOST).to_bytes(3) + bytes(2)).hex(":")


def _host_links(scenario: str, vendors: Sequence[str], seed: int) -> Iterator[_LeafLink]:
    for number, (driver, course) in enumerate(scenario_courses(scenario, vendors, seed)):
        neighbor = _neighbor(seed, f"eth{number}", by_mac=number % 4 < 3)  # noqa: PLR2004 - every fourth by its name
        plan = LeafPlan(f"Ethernet{LANES * number}", neighbor, driver.speed)
        if scenario == "misconfigured":
            plan = replace(plan, **_MISTAKES[number % len(_MISTAKES)])
        yield _LeafLink(plan, course.setup, iter(course.spans), course.afterwards)


_MISTAKES: tuple[Mapping[str, Any], ...] = (
    {},  # the host has PFC on another priority
    {"wred": NO_MARKS},
    {"watchdog": None},
    {"wred": LATE_MARKS},
)
"""What is wrong with each port in the scenario `misconfigured`."""


def _neighbor(host: int, netdev: str, *, by_mac: bool) -> LeafNeighbor:
    return LeafNeighbor(hostname_of(host), mac_of(host, "eth0"), netdev, mac_of(host, netdev), by_mac)


def _other_link(scenario: str, seed: int, other: int, number: int) -> _LeafLink:
    """A link to another host, of which only the first one can have a problem."""
    name, neighbor = f"Ethernet{LANES * number}", _neighbor(seed + other, "eth0", by_mac=other == 1)
    port = PortSeed(100 + other, seed)
    if scenario == "victim" and other == 1:
        # The victims are paused in the same windows.
        windows = again(port.random("storms"), paused(Pause(3, TRANSMIT, 1.0)))
        plan = LeafPlan(name, neighbor, OTHER_SPEED, watchdog=REPORTING)
        return _LeafLink(plan, Setup(), overlay(quiet(port), windows), Conditions())
    return _LeafLink(LeafPlan(name, neighbor, OTHER_SPEED), Setup(), quiet(port), Conditions())
