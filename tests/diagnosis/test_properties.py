"""The same fault told by another driver, next to another fault, or by the rows that the daemon keeps. What else must not change a verdict is in `test_invariants.py`."""

import asyncio
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
from built_host import (
    DRIVERS,
    FOREIGN,
    MARKED,
    Incident,
    fine_and_said,
    incident_history,
    load_incidents,
    misread,
)
from changed_host import healthy_moments
from fault_histories import fault_history, simulated_history
from fault_table import load_faults
from hardware_trials import load_trials, trial_history

from roce_exporter.catalog import INDEX, dialect_of, pattern_of
from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import Row, Spelling
from roce_exporter.checks.health.congestion_rules import UNKEPT
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import KEPT
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.view.host_view import History, HostClock, TimedSamples

Found = list[tuple[str, str, str, str, str]]
CHEAP = [one for one in load_faults() if not (one.simulate or one.script)]


@pytest.fixture(scope="module")
def histories() -> Mapping[str, History]:
    async def every() -> dict[str, History]:
        with tempfile.TemporaryDirectory() as folder:
            moments = await healthy_moments(Path(folder))
        found = {one.id: await fault_history(one, moments) for one in CHEAP}
        return found | {one.key: await trial_history(one) for one in load_trials()[::4]}

    return asyncio.run(every())


def found(history: History) -> Found:
    return [
        (one.device, one.port, one.check, one.side.value, one.status.name)
        for one in diagnose(history).findings
    ]


def test_what_is_fine_is_in_no_finding(histories) -> None:
    for key, history in histories.items():
        assert fine_and_said(diagnose(history)) == [], key


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_what_is_fine_is_in_no_finding_of_a_scenario(scenario) -> None:
    clock = HostClock()
    history = await simulated_history(simulate(scenario, clock=clock), clock)
    assert fine_and_said(diagnose(history)) == []


def test_the_daemons_rows_are_sufficient(histories) -> None:
    """But for what it can only say is unseen."""
    for key, history in histories.items():
        kept = tuple(
            TimedSamples(one.time, {name: of for name, of in one.values.items() if name in KEPT})
            for one in history
        )
        assert found(kept) == found(history), key


SINGLE = [
    one
    for one in (*load_incidents(), *load_incidents(FOREIGN))
    if one.kind == "fault"
    and one.batch < 9
    and not (one.truth_too or one.other_truth or one.missed or one.open or one.wrong_truth)
]
"""Hosts with one fault that the first run had right."""
EVERY = 40  # of the pairs of hosts, which are taken in the first tier
TOO_LONG = "hw/rx_rdma_mtu_discard_pkts"  # ionic's discards are packets longer than the MTU, those of others are drops
DIALECT = {name: dialect_of(names.module) or name for name, names in DRIVERS.items()}
INFINIBAND = frozenset({"ib", "hfi1"})
"""Its counters in `counters` are those of the link; on Ethernet they have no meaning."""
WITHOUT_NETDEV = INFINIBAND | {"efa"}
SOURCES = {"hw": "hw_counters", "ethtool": "ethtool", "counters": "counters"}
FOLDERS = {source: folder for folder, source in SOURCES.items()}
OF_NETDEV = ("net/", "ethtool/", "dcb/", "sys/class/net/")


class Told(NamedTuple):
    """A counter of a driver: its row, the labels in its name, and how it is spelt."""

    row: Row
    labels: Mapping[str, str]
    spelling: Spelling

    @property
    def unit(self) -> float:
        """How much of the row's unit one of it is."""
        return self.spelling.times / self.spelling.per


def transpositions(incident: Incident) -> Iterator[Incident]:
    """The same host with each driver that counts all that this one's fault counts.

    What only one of the two drivers counts is hidden: a counter that the fault would have moved there is not calm here.
    """
    is_counted = any("<<" in str(text) for text in incident.files.values())  # counters, of this driver only
    is_local = is_counted or incident.ecn or incident.log or incident.vf or incident.driver in INFINIBAND
    needs_netdev = (
        incident.down
        or incident.set_down
        or incident.bond
        or any(path.startswith(OF_NETDEV) for path in incident.files)
    )
    for driver in DRIVERS:
        is_other = DIALECT[driver] != DIALECT[incident.driver] and driver not in INFINIBAND
        if not is_other or is_local or (needs_netdev and driver in WITHOUT_NETDEV):
            continue
        rates = _rates(incident, driver)
        burst = _told(incident, driver, incident.burst)
        start = _told(incident, driver, {name: (first,) for name, first in incident.start.items()})
        if rates is None or burst is None or start is None or TOO_LONG in {*rates, *burst, *start}:
            continue
        known = {
            one.row.name
            for name in listed(incident.driver)
            if not any(fnmatch(name, p) for p in incident.without)
            if (one := meaning_of(incident.driver, name))
        }
        moved = {*rates, *burst, *start}
        hidden = (
            name
            for name in DRIVERS[driver].zeros
            if name not in moved and (one := meaning_of(driver, name)) and one.row.name not in known
        )
        yield replace(
            incident,
            id=f"{incident.id}-as-{driver}",
            driver=driver,
            rates=rates,
            burst=burst,
            start={name: first for name, (first,) in start.items()},
            without=tuple(hidden),
        )


def listed(driver: str) -> list[str]:
    """The counters that each port of this driver has."""
    names = DRIVERS[driver]
    traffic = [*(f"hw/{one}" for one in names.hw), *(f"ethtool/{one}" for one in names.stats)]
    return [*names.zeros, *traffic, *(f"hw/{one}" for one in MARKED if driver == "mlx5")]


def meaning_of(driver: str, name: str) -> Told | None:
    """What a counter such as `ethtool/rx_prio3_pause` means; None for one without a row."""
    source, _, raw = name.partition("/")
    row = INDEX.claimed(DIALECT[driver], SOURCES[source], raw)
    for spelling in row.spellings if row else ():
        if spelling.source == SOURCES[source] and INDEX.speaks(DIALECT[driver], spelling):
            for one in spelling.raw:
                if row and (found := pattern_of(one).fullmatch(raw)):
                    return Told(row, found.groupdict(), spelling)
    return None


def _rates(incident: Incident, driver: str) -> Mapping[str, float] | None:
    """Rates without what the busy port of the other driver counts anyway, and with what this one's does."""
    own, other = (MARKED if one == "mlx5" else {} for one in (incident.driver, driver))
    whole = {
        name: (rate + own.get(name.removeprefix("hw/"), 0.0) * incident.traffic,)
        for name, rate in incident.rates.items()
    }
    told = _told(incident, driver, whole)
    if told is None or any(rate < 0 for (rate,) in told.values()):
        return None
    return {
        name: rate - other.get(name.removeprefix("hw/"), 0.0) * incident.traffic
        for name, (rate,) in told.items()
    }


def _told(
    incident: Incident, driver: str, counted: Mapping[str, tuple[float, ...]]
) -> dict[str, tuple[float, ...]] | None:
    """The same counters in the words and units of the other driver; None where it lacks one."""
    found: dict[str, tuple[float, ...]] = {}
    for name, (amount, *rest) in counted.items():
        meaning = meaning_of(incident.driver, name)
        spoken = _spoken(driver, meaning) if meaning else None
        if not meaning or not spoken:
            return None
        (first, *others), unit = spoken
        before = found.get(first, (0.0,))[0]
        found[first] = (before + amount * meaning.unit / unit, *rest)
        found |= {one: (0.0, *rest) for one in others if one not in found}
    return found


def _spoken(driver: str, meaning: Told) -> tuple[list[str], float] | None:
    """The counters whose sum this driver tells the row by, and how much of the row's unit one is; those that its ports list, if there are any."""
    found = []
    for one in meaning.row.spellings:
        stub = one.source == "counters" and family_of(DIALECT[driver]).stub_port_counters
        absent = one.source == "ethtool" and driver in WITHOUT_NETDEV
        if (
            one.source in FOLDERS
            and not (one.difference or stub or absent)
            and INDEX.speaks(DIALECT[driver], one)
        ):
            names = [
                f"{FOLDERS[one.source]}/{raw.format_map(meaning.labels) if '{' in raw else raw}"
                for raw in one.raw
            ]
            found.append((names, one.times / one.per))
    known = {*listed(driver)}
    return next((one for one in found if known.issuperset(one[0])), found[0] if found else None)


LESS_SURE = {
    ("global_pause", "fabric: pause_received"): "roce_pfc_enabled",
    ("global_pause", "host: slow_receiver"): "roce_pfc_enabled",
    ("pfc_mismatch", "fabric: pause_received"): "roce_pfc_enabled",
    ("outside_lossless_priority", "fabric: packet_loss"): "roce_priority_transmit_bytes_total",
    ("misconfigured", "host: path_mtu"): "roce_config_check_ok",
    ("retransmissions_uncounted", "nothing"): "roce_transport_slow_restart_cnps_total",
}
"""What is said in place of a cause, and the row without which it cannot be told."""


def is_less_sure(incident: Incident, said: str, history: History) -> bool:
    """Whether the driver does not count what the cause is told by."""
    names = incident.truth.partition(": ")[2].split("|")
    if said == "nothing" and "marks_without_cnps" in names:
        return DIALECT[incident.driver] in UNKEPT
    rows = [row for name in names if (row := LESS_SURE.get((name, said)))]
    return any(not any(moment.values.get(row) for moment in history) for row in rows)


TOLD = [other for one in SINGLE if one.rates or one.burst for other in transpositions(one)]


async def untold(hosts: list[Incident]) -> dict[str, str]:
    """Of these hosts those of which another driver's counters say something else, and what."""
    found = {}
    for one in hosts:
        history = await incident_history(one)
        said = misread(one, diagnose(history).findings)
        if said and not is_less_sure(one, said, history):
            found[one.id] = said
    return found


async def test_a_fault_is_told_by_another_driver() -> None:
    """A rule reads what a counter means and not whose it is."""
    assert len(TOLD) > 300
    assert await untold(TOLD[::EVERY]) == {}


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(3600)  # hundreds of histories of ten minutes
async def test_a_fault_is_told_by_every_driver_that_counts_it() -> None:
    assert await untold(TOLD) == {}


NUMBER = re.compile(r"\d[\d,.]*")
PLACE = ("driver", "ports", "at", "moments", "apart", "speed", "traffic", "vf", "bond", "under")
"""What two hosts must have in common to be one."""


def together(one: Incident, other: Incident) -> Incident | None:
    """Both faults on one port; None where they change the same counter or file, one lacks what the other counts, or one is more than what is counted, read or logged."""
    counted = [{*host.rates, *host.burst, *host.start, *host.files} for host in (one, other)]
    is_plain = not any(
        host.gone or host.ecn or host.traffic != 1.0 or host.batch >= 9 for host in (one, other)
    )
    # a port without a link counts nothing, and less than a healthy host's falls behind
    is_less = any(
        rate < 0 or until > host.moments * host.apart
        for host in (one, other)
        for _, until in host.down
        for rate in (*one.rates.values(), *other.rates.values())
    )
    is_twice = any(begin < until and since < end for begin, end in one.down for since, until in other.down)
    is_hidden = any(
        fnmatch(name, hidden)
        for host, its in zip((other, one), counted, strict=True)
        for hidden in host.without
        for name in its
    )
    if (
        is_less
        or is_twice
        or is_hidden
        or not is_plain
        or counted[0] & counted[1]
        or any(getattr(one, key) != getattr(other, key) for key in PLACE)
    ):
        return None
    return replace(
        one,
        id=f"{one.id}+{other.id}",
        rates={**one.rates, **other.rates},
        burst={**one.burst, **other.burst},
        start={**one.start, **other.start},
        files={**one.files, **other.files},
        log=tuple(sorted((*one.log, *other.log))),
        down=one.down + other.down,
        set_down=one.set_down + other.set_down,
        without=one.without + other.without,
    )


def beside(one: Incident, other: Incident) -> Incident | None:
    """The second fault on the next port of the same host; None where it is more than what is counted, or its port is another one."""
    is_plain = one.ports == 2 and not (one.bond or one.without or other.without)
    is_counted = not (
        other.ecn or other.files or other.log or other.down or other.set_down or other.start or other.gone
    )
    if not (is_plain and is_counted) or any(getattr(one, key) != getattr(other, key) for key in PLACE):
        return None
    return replace(
        one,
        id=f"{one.id}+{other.id}",
        other_truth=other.truth,
        other_rates=other.rates,
        other_burst=other.burst,
    )


def neighbours() -> list[Incident]:
    """Hosts with two faulty ports, in an order in which those next to each other have little in common."""
    found = (beside(one, other) for one in SINGLE for other in SINGLE if one is not other)
    return sorted(filter(None, found), key=lambda both: both.id[::-1])


async def unsaid(hosts: list[Incident]) -> dict[str, str]:
    found = {one.id: misread(one, diagnose(await incident_history(one)).findings) for one in hosts}
    return {name: said for name, said in found.items() if said}


@cache
def pairs() -> list[tuple[Incident, Incident, Incident]]:
    """Two hosts and what they are together, in an order in which neighbours have little in common."""
    found = [(one, other, both) for one, other in combinations(SINGLE, 2) if (both := together(one, other))]
    return sorted(found, key=lambda three: three[2].id[::-1])


async def swallowed(three: tuple[Incident, Incident, Incident]) -> list[str]:
    """The faults whose first finding is missing where both are on one port: as a finding, a consequence, or evidence of another one.

    Two losses of the link are more than one, and losses of packets more than a silence: what counts is the sign, whatever its number.
    """
    *alone, both = three
    here = [one for one in diagnose(await incident_history(both)).findings if one.device == both.device]
    lines = {NUMBER.sub("N", said) for one in here for said in one.evidence}
    lost = []
    for host in alone:
        first = next(
            one for one in diagnose(await incident_history(host)).findings if one.device == host.device
        )
        if first.check not in {one.check for one in here} and NUMBER.sub("N", first.evidence[0]) not in lines:
            lost.append(f"{both.id}: {first.check}")
    return lost


async def test_the_fault_of_each_of_two_ports_is_named() -> None:
    hosts = neighbours()
    assert len(hosts) > 1000
    assert await unsaid(hosts[:: len(hosts) // 4]) == {}


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(3600)  # hundreds of histories of ten minutes
async def test_the_faults_of_many_pairs_of_ports_are_named() -> None:
    hosts = neighbours()
    assert await unsaid(hosts[:: len(hosts) // 150]) == {}


async def test_neither_of_two_faults_of_one_port_disappears() -> None:
    assert len(pairs()) > 1000
    assert [lost for three in pairs()[:: len(pairs()) // 4] for lost in await swallowed(three)] == []


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(3600)  # hundreds of histories of ten minutes
async def test_none_of_many_faults_of_one_port_disappears() -> None:
    assert [lost for three in pairs()[:: len(pairs()) // 150] for lost in await swallowed(three)] == []
