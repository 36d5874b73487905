"""The scenarios by name. Each has a generator of spans per port, and the setup of each port.

A script is a quiet or busy background, and windows in which its conditions are changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, NamedTuple

from roce_exporter.host.simulated.conditions import (
    FAULTS,
    HOT,
    RECEIVE,
    TRANSMIT,
    UNPLUGGED,
    Conditions,
    Pause,
    Setup,
    Span,
)

QUIET = (2.0, 20.0)  # seconds from one burst of congestion to the next on a quiet fabric
BUSY = (0.02, 0.4)  # the same with incast
BURST = (0.005, 0.06)  # duration of a burst in seconds

# The ratios to choose from at random: few different conditions, whose rates are computed once each.
TENTHS = tuple(tenths / 10 for tenths in range(1, 10))


class Window(NamedTuple):
    """An interval, in seconds from the start, in which the conditions are changed."""

    start: float
    end: float
    change: Callable[[Conditions], Conditions]


def bursts(
    random: Random, calm: Conditions, burst: Conditions, gap: tuple[float, float], priority: int | None = 3
) -> Iterator[Span]:
    """An endless alternation of calm and a burst with received pause of 10 to 90 %."""
    pauses = [()] if priority is None else [(Pause(priority, RECEIVE, ratio),) for ratio in TENTHS]
    paused_ones = [replace(burst, pauses=pause) for pause in pauses]
    while True:
        yield Span(random.uniform(*gap), calm)
        yield Span(random.uniform(*BURST), random.choice(paused_ones))


def repeat(
    random: Random,
    change: Callable[[Conditions], Conditions],
    *,
    first: tuple[float, float],
    lasting: tuple[float, float],
    every: tuple[float, float],
) -> Iterator[Window]:
    """Endless windows: the first begins after `first` seconds, each lasts `lasting`, the next begins `every` later."""
    start = random.uniform(*first)
    while True:
        yield Window(start, start + random.uniform(*lasting), change)
        start += random.uniform(*every)


def overlay(background: Iterable[Span], windows: Iterable[Window]) -> Iterator[Span]:
    """The background, changed in the windows, which are in order and do not overlap."""
    coming = iter(windows)
    window = next(coming, None)
    here = 0.0
    for seconds, conditions in background:
        end = here + seconds
        while here < end:
            while window and window.end <= here:
                window = next(coming, None)
            if window is None:
                until, held = end, conditions
            elif window.start <= here:
                until, held = min(end, window.end), window.change(conditions)
            else:
                until, held = min(end, window.start), conditions
            yield Span(until - here, held)
            here = until


def paused(*pauses: Pause) -> Callable[[Conditions], Conditions]:
    """A change that replaces the background's pauses of the same priority and direction by these."""
    replaced = {pause.where for pause in pauses}

    def change(conditions: Conditions) -> Conditions:
        kept = tuple(pause for pause in conditions.pauses if pause.where not in replaced)
        return replace(conditions, pauses=kept + pauses)

    return change


EASE = Conditions(load=0.3, corrected_blocks=20.0)
RUSH = Conditions(load=0.8, marked=0.002, notified=0.1, corrected_blocks=20.0)


@dataclass(frozen=True, slots=True)
class PortSeed:
    """The position of one port in a scenario, and the seed of its random numbers."""

    position: int
    """Position among the host's ports, from 0; the member ports of a LAG count separately."""
    seed: int

    def random(self, what: str = "") -> Random:
        """A generator that depends on the seed and the port, or on the seed and `what` for all ports alike."""
        place = what or f"port {self.position}"
        return Random(f"{self.seed}/{place}")  # noqa: S311 - a reproducible simulation, not a secret


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named course of events on a host."""

    name: str
    description: str
    """One line."""
    spans: Callable[[PortSeed], Iterator[Span]]
    setup: Callable[[int], Setup] = lambda _: Setup()
    """The setup of the port at this position."""
    probed: bool = False
    """Whether the demo has probers next to the host, which see what its counters do not."""


def quiet(port: PortSeed) -> Iterator[Span]:
    """A port without problems."""
    return bursts(port.random(), EASE, RUSH, QUIET)


def _incast(port: PortSeed) -> Iterator[Span]:
    calm = replace(EASE, load=0.6, marked=0.005, notified=0.05)
    burst = replace(RUSH, load=1.0, marked=0.08, notified=0.4)
    return bursts(port.random(), calm, burst, BUSY)


def _one_port(
    what: str, windows: Callable[[Random], Iterator[Window]], position: int = 0
) -> Callable[[PortSeed], Iterator[Span]]:
    """A quiet host, with windows on the port at this position; `what` seeds their random numbers."""

    def spans(port: PortSeed) -> Iterator[Span]:
        return overlay(quiet(port), windows(port.random(what)) if port.position == position else ())

    return spans


def _changed(
    *, first: tuple[float, float], lasting: tuple[float, float], every: tuple[float, float], **changes: Any
) -> Callable[[Random], Iterator[Window]]:
    """Endless windows in which these fields of the conditions have other values."""
    return partial(
        repeat, change=lambda one: replace(one, **changes), first=first, lasting=lasting, every=every
    )


again = partial(repeat, first=(20.0, 40.0), lasting=(2.0, 6.0), every=(60.0, 120.0))
"""Windows of a few seconds every minute or two."""


def _pfc_storm(port: PortSeed) -> Iterator[Span]:
    # Every port gets the same times: a storm of one port also pauses another.
    storm = Pause(3, TRANSMIT, 1.0)
    felt = Pause(3, RECEIVE, 0.6, 0.004)
    change = paused(storm if port.position == 0 else felt)
    windows = again(port.random("storms"), change) if port.position < 2 else iter(())  # noqa: PLR2004 - one port storms, one feels it
    return overlay(quiet(port), windows)


def _victim(port: PortSeed) -> Iterator[Span]:
    windows = again(port.random("storms"), paused(Pause(3, RECEIVE, 1.0)))
    return overlay(quiet(port), windows if port.position % 2 == 0 else ())


def _slow_receiver(port: PortSeed) -> Iterator[Span]:
    random = port.random()

    def slow(conditions: Conditions) -> Conditions:
        pause = Pause(3, TRANSMIT, random.choice(TENTHS[:5]), 0.0005)
        return replace(paused(pause)(conditions), load=0.9, pcie_stall=0.6, not_ready=20.0, discards=2.0)

    windows = repeat(port.random("slow"), slow, first=(4.0, 8.0), lasting=(15.0, 30.0), every=(35.0, 50.0))
    return overlay(quiet(port), windows if port.position == 0 else ())


_LOSSY_CLASS = replace(EASE, load=0.6, lost=30.0, timeouts=0.5, discards=25.0)
"""RoCE on a priority without PFC: the buffer overflows."""

_MISTAKES: tuple[tuple[Setup, Conditions], ...] = (
    (Setup(lossless=(4,), tos=104), _LOSSY_CLASS),
    (Setup(priority=2, dscp=((26, 2), (48, 6)), watchdog=8000), _LOSSY_CLASS),
    (Setup(priority=0, trust_dscp=False, dscp=(), roce_version=1, tos=0), _LOSSY_CLASS),
    (Setup(notifies=False), replace(EASE, load=0.6, marked=0.05, notifies=False)),
)


def _misconfigured(port: PortSeed) -> Iterator[Span]:
    _, conditions = _MISTAKES[port.position % len(_MISTAKES)]
    background = bursts(port.random(), conditions, replace(conditions, load=0.8), QUIET, priority=None)
    off = _changed(first=(30.0, 60.0), lasting=(10.0, 20.0), every=(60.0, 120.0), lossless=())
    return overlay(background, off(port.random()) if port.position % len(_MISTAKES) == 1 else ())


def _flaps(random: Random) -> Iterator[Window]:
    down = _changed(first=(10.0, 20.0), lasting=(1.0, 5.0), every=(20.0, 60.0), up=False)
    for number, window in enumerate(down(random), 1):
        yield window
        if number % 3 == 0:
            # The operator reloads the driver, without success.
            yield Window(window.end, window.end + 0.5, lambda conditions: replace(conditions, reset=True))


def _heat(random: Random) -> Iterator[Window]:
    """Again and again the transceiver gets hot, the NIC switches it off, and it is replaced."""

    def hot(conditions: Conditions) -> Conditions:
        return replace(conditions, module=HOT, corrected_blocks=80_000.0, wire_errors=5.0, lost=5.0)

    for window in repeat(random, hot, first=(5.0, 10.0), lasting=(15.0, 25.0), every=(90.0, 120.0)):
        off, out, back = (window.end + seconds for seconds in (0.0, 20.0, 25.0))
        yield window
        yield Window(off, out, lambda conditions: replace(conditions, module=HOT, up=False))
        yield Window(out, back, lambda conditions: replace(conditions, module=UNPLUGGED, up=False))


def _dead_peer(port: PortSeed) -> Iterator[Span]:
    # A node of the training job dies: every port has queue pairs to it.
    calm, burst = replace(EASE, aimed=1.0), replace(RUSH, aimed=1.0)
    return overlay(bursts(port.random(), calm, burst, QUIET), _deaths(port.random("deaths")))


def _deaths(random: Random) -> Iterator[Window]:
    retrying = partial(replace, timeouts=ORPHANS / RETRY_TIMEOUT)
    hung = _changed(first=(25.0, 35.0), lasting=(90.0, 150.0), every=(200.0, 260.0), load=0.1, broken=ORPHANS)
    for window in hung(random):
        yield Window(window.start - RETRY_SECONDS, window.start, retrying)
        yield window


ORPHANS = 2  # queue pairs of a port to the node that dies
RETRY_TIMEOUT = 0.54  # seconds from one retry to the next: a local ACK timeout of 17
RETRY_SECONDS = 8 * RETRY_TIMEOUT  # until a queue pair has made its seven retries

_ALL = (
    Scenario("quiet", "a fabric at ease: light load, a short burst of congestion every few seconds", quiet),
    Scenario("incast", "many send to few: ECN marks, CNPs, rate cuts, bursts of pause all the time", _incast),
    Scenario(
        "pfc-storm", "now and then the first port sends pause without end, and another suffers", _pfc_storm
    ),
    Scenario(
        "slow-receiver",
        "the first port's host takes packets too slowly: it sends pause, PCIe stalls",
        _slow_receiver,
    ),
    Scenario(
        "victim", "every other port is paused without end now and then, the cause is elsewhere", _victim
    ),
    Scenario(
        "misconfigured",
        "a wrong setting per port: PFC priority and ToS, DSCP map, trust, CNPs",
        _misconfigured,
        lambda position: _MISTAKES[position % len(_MISTAKES)][0],
    ),
    Scenario(
        "flapping",
        "the first port's link goes down again and again, every third time with a reset",
        _one_port("flaps", _flaps),
    ),
    Scenario(
        "overheating",
        "the first port's module overheats, is switched off, unplugged and replaced",
        _one_port("heat", _heat),
    ),
    Scenario(
        "lossy",
        "the first port's cable damages packets: FEC, CRC and ICRC errors, retransmission",
        _one_port(
            "cable",
            _changed(
                first=(2.0, 5.0),
                lasting=(10.0, 25.0),
                every=(30.0, 45.0),
                lost=40.0,
                timeouts=1.0,
                wire_errors=35.0,
                icrc_errors=0.5,
                corrected_blocks=50_000.0,
            ),
        ),
    ),
    Scenario(
        "lossy-path",
        "an uplink of another rack loses packets: counters are clean, only probes see it",
        quiet,
        probed=True,
    ),
    Scenario(
        "dead-peer",
        "a node of the job dies: retries, then queue pairs in error; other jobs are quiet",
        _dead_peer,
    ),
    Scenario(
        "firmware",
        "the first port's firmware fails and moves no data until the driver recovers it",
        _one_port(
            "firmware",
            _changed(
                first=(20.0, 30.0), lasting=(60.0, 90.0), every=(200.0, 260.0), load=0.0, failing="fw_fatal"
            ),
        ),
    ),
    Scenario(
        "broken",
        "per port: files that fail or hold garbage, a dead interface, frozen counters",
        _one_port(
            "frozen",
            _changed(first=(20.0, 30.0), lasting=(15.0, 30.0), every=(60.0, 90.0), frozen=True),
            position=len(FAULTS),
        ),
        lambda position: Setup(faults=frozenset(FAULTS[position : position + 1])),
    ),
)

SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
"""Every scenario by its name."""
