"""What the exporter serves for a host while something happens: the real exporter on a simulated kernel, a scrape a minute.

A week of a host is put together from such clips: a host whose exporter is not disturbed serves the same whenever it happens. A clip begins and ends
with minutes in which all is well, so that windows and the memory of the verdict are the host's own.
"""

import asyncio
import contextlib
import logging
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import NamedTuple

from alert_promtool import delivered
from kernel import ScriptedPort, simulate_script
from simulated_daemon import START, VIRTUAL_FUNCTIONS, sample_lines

from roce_exporter.assemble import Clock, Parts, assemble
from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.collect.collector import Settings
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.simulated.conditions import Conditions, Span
from roce_exporter.host.simulated.scenarios import EASE, QUIET, RUSH, PortSeed, Window, bursts, overlay
from roce_exporter.view.host_view import HostClock

MINUTE = 60
LEAD, TAIL = 10, 62
"""Minutes of a clip before and after what happens: as long as the longest memory of the verdict, an hour."""
COUNTED = re.compile(r"\w+_(total|bucket|count|sum)\b")
RESTARTS = re.compile(r"roce_(pfc_storms|pfc_storm_near_misses|pfc_detector_faults|exporter_\w+)_total\b")
"""Counters of the exporter itself, which a restart of it sets to zero."""
GONE = math.nan


class Clip(NamedTuple):
    """The values of each series, a minute apart; `GONE` is no sample."""

    minutes: int
    series: dict[str, list[float]]


class Course(NamedTuple):
    """What happens to the one port of a host for some minutes."""

    minutes: int
    change: Callable[[Conditions], Conditions] | None = None
    windows: tuple[float, float] | None = None
    """It happens for the first number of seconds, each time the second number of seconds has passed; None: all the time."""
    poll: float = 1.0
    """Seconds between two polls of the fast loop: long where no storm is to be found, to save time."""
    faults: frozenset[str] = frozenset()
    lossless: tuple[int, ...] = (3,)
    seed: int = 1


@cache
def names() -> frozenset[str]:
    """The metrics that the rules of the alerts read."""
    rules = [rule for group in delivered() for rule in group["rules"]]
    return frozenset(re.findall(r"(?<![:\w])roce_\w+(?![:\w])", " ".join(rule["expr"] for rule in rules)))


def clip(course: Course) -> Clip:
    """The minutes of a course, with those before and after it."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(_clip(course))


def _spans(course: Course) -> Iterator[Span]:
    calm = bursts(PortSeed(0, course.seed).random(), EASE, RUSH, QUIET)
    if course.change is None:
        return calm
    start, end = LEAD * MINUTE, (LEAD + course.minutes) * MINUTE
    lasting, every = course.windows or (end - start, end - start)
    starts = [start + number * every for number in range(int((end - start) / every))]
    return overlay(calm, [Window(one, one + lasting, course.change) for one in starts])


async def _clip(course: Course) -> Clip:
    clock = HostClock()
    pace = Pace(interval=course.poll, idle=1.0, linger=30.0 if course.poll < 1 else 0.0)
    parts = Parts(Settings(disabled=frozenset({VIRTUAL_FUNCTIONS}), timeout=60.0), pace=pace, owners=None)
    port = ScriptedPort("mlx5", _spans(course), lossless=course.lossless, faults=course.faults)
    served, renderer = ServedSeries(MetricSet.LEAN), Renderer()
    minutes = LEAD + course.minutes + TAIL
    found: dict[str, list[float]] = {}
    kernel = simulate_script([port], clock=clock)
    with contextlib.closing(assemble(kernel, parts, Clock(clock, lambda: START + clock.now))) as exporter:
        sampler = exporter.part(Sampler)
        # what is over is in the document only, which nothing here reads, and takes most of the time
        exporter.part(HealthWatch)._rules = partial(diagnose, past=False)
        for minute in range(-2, minutes):
            await clock.play(sampler, (minute + 2) * MINUTE)
            await exporter.observe_complete()
            text = renderer.render(served.select((await exporter.observe()).samples), Format.TEXT).decode()
            for line in sample_lines(text) if minute >= 0 else ():
                name, _, value = line.rpartition(" ")
                if name.partition("{")[0] in names():
                    found.setdefault(name, [GONE] * minutes)[minute] = float(value)
    return Clip(minutes, found)


def changed(**fields: object) -> Callable[[Conditions], Conditions]:
    """A change of conditions to these values."""
    return lambda conditions: replace(conditions, **fields)  # type: ignore[arg-type]  # any field of the conditions


# ---- from clips to the week of a host


class Part(NamedTuple):
    """A part of a host's week: a clip, or nothing at all while its exporter does not answer."""

    start: int
    """Minute of the week."""
    clip: Clip | None
    offset: int = 0
    """Minute of the clip at which it begins."""
    zeroed: str = ""
    """A pattern of the counters that begin at zero with this part: of the exporter after its restart, of the NIC after that of the host."""


def week(parts: list[Part], minutes: int) -> dict[str, list[float]]:
    """The series of a host: `up`, and those of its clips with counters that go on from one to the next."""
    found: dict[str, list[float]] = {"up": []}
    totals: dict[str, float] = {}
    random = Random(len(parts))  # noqa: S311 - where counters begin
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        length = (following.start if following else minutes) - part.start
        found["up"] += [float(part.clip is not None)] * length
        for name in totals:
            if part.zeroed and re.match(part.zeroed, name):
                totals[name] = 0.0
        for name, values in part.clip.series.items() if part.clip else ():
            series = found.setdefault(name, [GONE] * part.start)
            series += [GONE] * (part.start - len(series))
            own = _repeated(values, part.offset, length)
            if COUNTED.match(name):
                own = _going_on(own, totals.setdefault(name, float(random.randrange(10**6))))
                totals[name] = next((one for one in reversed(own) if one == one), totals[name])  # noqa: PLR0124 - not GONE
            series += own
    return {name: values + [GONE] * (minutes - len(values)) for name, values in found.items()}


def _repeated(values: list[float], offset: int, length: int) -> list[float]:
    found = values[offset : offset + length]
    return found + [found[-1]] * (length - len(found))


def _going_on(values: list[float], total: float) -> list[float]:
    """The growth of a counter on top of its total, until it is reset."""
    known = [one for one in values if one == one]  # noqa: PLR0124 - not GONE
    base, last = total - known[0] if known else 0.0, -1.0
    found = []
    for one in values:
        base = 0.0 if one < last else base
        last = one if one == one else last  # noqa: PLR0124
        found.append(one + base)
    return found
