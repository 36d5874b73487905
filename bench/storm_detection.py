"""How many PFC storms are found, how soon, and with how many false alarms? `python bench/storm_detection.py`.

Monte Carlo over the simulated host: per row `--trials` storms of 50 ms to 8 s and as many controls without one, each on
a host of its own, with ordinary congestion in the background (busy: a burst every 20 to 400 ms; quiet: every 2 to 20 s;
still: none), polls that are up to some milliseconds late, and one in fifty that is 20 to 400 ms late. The sampler is
the daemon's own, on a clock that the script sets. On the same hosts in the same run it is compared with the rule of the
switches' watchdog (nothing passed and all of the time paused, every 200 ms for 400 ms, any miss starts over), and with
a scrape every 15 s and an alert at half of the time paused.

`long` are storms longer than the detection time and two polls; those must be found. Latency counts from the true start
of a storm, restore from its true end.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kernel import ScriptedPort, simulate_script

from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.fastloop.target import HotCounters
from roce_exporter.fastloop.watch import PauseKey, difference
from roce_exporter.host.inventory import describe, list_devices
from roce_exporter.host.simulated.conditions import Conditions, Pause, Span
from roce_exporter.host.simulated.scenarios import BUSY, QUIET, Window, bursts, overlay, paused
from roce_exporter.model import DeviceReadings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from roce_exporter.fastloop.episodes import Counts

CALM = Conditions(load=0.4)
BURST = Conditions(load=0.9, marked=0.02, notified=0.1)
BACKGROUNDS = {"busy": BUSY, "quiet": QUIET, "still": None}

BEGIN = 6.0
AFTER = 6.0
CONTROL = 20.0
"""Seconds before the earliest start of a storm, after its end, and of a control."""

PERIOD = {"bnxt": 1.0}
"""Seconds between two renewals of the driver's counters."""

SPEED = {"ice": 12.5e9}


class Case(NamedTuple):
    """One row of the table."""

    vendor: str
    direction: str
    background: str
    mode: str


CASES = (
    Case("mlx5", "receive", "busy", "fixed"),
    Case("mlx5", "receive", "quiet", "fixed"),
    Case("mlx5", "transmit", "busy", "fixed"),
    Case("mlx5", "receive", "quiet", "adaptive"),
    Case("mlx5", "receive", "still", "adaptive"),
    Case("mlx5", "transmit", "still", "adaptive"),
    Case("bnxt", "receive", "busy", "fixed"),
    Case("bnxt", "transmit", "quiet", "fixed"),
    Case("bnxt", "receive", "still", "adaptive"),
    Case("ionic", "receive", "busy", "fixed"),
    Case("ice", "receive", "busy", "fixed"),
    Case("ice", "transmit", "quiet", "adaptive"),
)


class Clock:
    """Monotonic seconds that the script sets."""

    now = 5000.0

    def __call__(self) -> float:
        """Now."""
        return self.now


class Trial(NamedTuple):
    """One host, and what each rule reported: the start and the end of each storm."""

    begin: float
    end: float
    seconds: float
    told: dict[str, tuple[tuple[float, float], ...]]


@dataclass
class Reports:
    """The start and the end of each storm that a rule reported."""

    storms: list[tuple[float, float]] = field(default_factory=list)

    def say(self, active: bool, now: float) -> None:
        """Record whether the rule reports a storm at this moment."""
        going_on = bool(self.storms) and self.storms[-1][1] == 0.0
        if active and not going_on:
            self.storms.append((now, 0.0))
        elif going_on and not active:
            self.storms[-1] = (self.storms[-1][0], now)


class SwitchRule:
    """pfcwd: at every poll of the detection time nothing passed and all of the time was paused; restored likewise."""

    name = "switch watchdog's rule"
    poll = 0.2
    detect = 0.4

    def __init__(self) -> None:
        self.told = Reports()
        self._hot = self._quiet = 0.0

    def see(self, change: Counts, seconds: float, now: float) -> None:
        """Evaluate what changed since the last poll."""
        paused_all = change.paused > 0.99 * seconds if change.paused is not None else bool(change.stops)
        self._hot = self._hot + seconds if paused_all and not change.packets else 0.0
        self._quiet = 0.0 if change.stops or change.paused else self._quiet + seconds
        going_on = bool(self.told.storms) and self.told.storms[-1][1] == 0.0
        self.told.say(self._hot >= 0.99 * self.detect or (going_on and self._quiet < 0.99 * self.detect), now)


class ScrapeRule:
    """A scrape every 15 s, and an alert when half of the time was paused."""

    name = "15 s scrape"
    poll = 15.0

    def __init__(self, speed: float) -> None:
        self.told = Reports()
        self._speed = speed

    def see(self, change: Counts, seconds: float, now: float) -> None:
        """Evaluate what changed since the last scrape."""
        held = change.paused if change.paused is not None else (change.stops or 0) * 65535 * 64 / self._speed
        self.told.say(held / seconds >= 0.5, now)  # noqa: PLR2004 - half of the time


def play(case: Case, seed: int, with_storm: bool) -> Trial:
    """Run one host from start to end."""
    dice = random.Random(f"{case}/{seed}/{with_storm}")  # noqa: S311 - must replay
    clock = Clock()
    length = dice.choice((dice.uniform(0.05, 1.5), dice.uniform(1.5, 8.0))) if with_storm else 0.0
    begin = BEGIN + dice.random()
    seconds = begin + length + AFTER if with_storm else CONTROL
    storm = paused(Pause(3, case.direction, 1.0))
    windows = [Window(begin, begin + length, storm)] if with_storm else []
    spans = overlay(_background(case, dice), windows)
    kernel = simulate_script([ScriptedPort(case.vendor, spans, phase=dice.random())], clock=clock)
    start = clock.now
    (listed,) = list_devices(kernel)
    device = describe(kernel, listed)
    sampler = Sampler(kernel, clock, lambda: clock.now, Pace(mode=case.mode))
    sampler.follow([DeviceReadings(device, ())])
    rules = (SwitchRule(), ScrapeRule(SPEED.get(case.vendor, 50e9)))
    hot = HotCounters(kernel, device, 1, "eth0")
    told = _drive(Race(clock, sampler, rules, hot, PauseKey("3", case.direction), dice), start + seconds)
    said = {"roce_exporter": told} | {rule.name: rule.told for rule in rules}
    return Trial(
        start + begin,
        start + begin + length,
        seconds,
        {name: tuple(one.storms) for name, one in said.items()},
    )


def _background(case: Case, dice: random.Random) -> Iterable[Span]:
    gap = BACKGROUNDS[case.background]
    return repeat(Span(60.0, CALM)) if gap is None else bursts(dice, CALM, BURST, gap)


class Race(NamedTuple):
    """A host and everything that polls it."""

    clock: Clock
    sampler: Sampler
    rules: tuple[SwitchRule | ScrapeRule, ...]
    hot: HotCounters
    key: PauseKey
    dice: random.Random

    def lateness(self) -> float:
        """Seconds by which a poll is late, as on a real host: a few milliseconds, and one in fifty far more."""
        stall = self.dice.uniform(0.02, 0.4) if self.dice.randrange(50) == 0 else 0.0
        return abs(self.dice.gauss(0, 0.003)) + stall


def _drive(race: Race, until: float) -> Reports:
    """Advance time and run each poll when it is due; returns the sampler's reports."""
    clock, key, told = race.clock, race.key, Reports()
    last = {rule.name: (clock.now, race.hot.read(clock).counts[key]) for rule in race.rules}
    due = {rule.name: clock.now + rule.poll * race.dice.random() for rule in race.rules}
    due["sampler"] = clock.now
    while (now := max(clock.now, min(due.values()))) < until:
        clock.now = now + race.lateness()
        if due["sampler"] <= clock.now:
            due["sampler"] = race.sampler.tick()
            events = [event for event in race.sampler.events() if event["direction"] == key.direction]
            told.say(bool(events) and events[0]["end"] is None, clock.now)
        for rule in race.rules:
            if due[rule.name] <= clock.now:
                before, counts = last[rule.name]
                latest = race.hot.read(clock).counts[key]
                rule.see(difference(counts, latest), clock.now - before, clock.now)
                last[rule.name] = (clock.now, latest)
                due[rule.name] += rule.poll
    return told


class Score(NamedTuple):
    """The result of one rule in one row."""

    found: int
    """Long storms only."""
    long: int
    all_found: int
    false_alarms: int
    hours: float
    latencies: tuple[float, ...]
    restores: tuple[float, ...]


def score(case: Case, storms: Sequence[Trial], controls: Sequence[Trial], rule: str) -> Score:
    """Count the storms that one rule found, and its false alarms."""
    poll = max(1.0 if case.mode == "adaptive" else 0.1, PERIOD.get(case.vendor, 0.0))
    least = StormLimits().detect + 2 * poll
    found, long, every, false = 0, 0, 0, sum(len(trial.told[rule]) for trial in controls)
    latencies, restores = [], []
    for trial in storms:
        told = trial.told[rule]
        right = [one for one in told if trial.begin <= one[0]]
        false += len(told) - bool(right)
        every += bool(right)
        if trial.end - trial.begin < least:
            continue
        long += 1
        if right:
            found += 1
            latencies.append(right[0][0] - trial.begin)
            if right[0][1]:
                restores.append(right[0][1] - trial.end)
    hours = sum(trial.seconds for trial in (*controls, *storms)) / 3600
    return Score(found, long, every, false, hours, tuple(latencies), tuple(restores))


def _quantiles(values: Sequence[float]) -> str:
    if len(values) < 2:  # noqa: PLR2004 - no quantile of one
        return "-"
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return f"{cuts[49]:.2f} / {cuts[98]:.2f}"


def _play_all(work: tuple[Case, int, int]) -> tuple[list[Trial], list[Trial]]:
    case, first, last = work
    logging.disable(logging.WARNING)
    seeds = range(first, last)
    return [play(case, seed, with_storm=True) for seed in seeds], [
        play(case, seed, with_storm=False) for seed in seeds
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400, help="storms, and controls, per row (400)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    print(f"{options.trials} storms and {options.trials} controls per row; seconds as p50 / p99")
    print(
        "| NIC, direction | background | polls | rule | long storms found | all found | false alarms | per host-day | latency | restore |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    step = max(1, options.trials // (4 * options.jobs))
    with ProcessPoolExecutor(options.jobs) as pool:
        for case in CASES:
            parts = [
                (case, first, min(first + step, options.trials)) for first in range(0, options.trials, step)
            ]
            played = list(pool.map(_play_all, parts))
            storms = [trial for part, _ in played for trial in part]
            controls = [trial for _, part in played for trial in part]
            for rule in storms[0].told:
                found = score(case, storms, controls, rule)
                print(
                    f"| {case.vendor} {case.direction} | {case.background} | {case.mode} | {rule} | {found.found}/{found.long} "
                    f"| {found.all_found}/{len(storms)} | {found.false_alarms} | {found.false_alarms / found.hours * 24:.1f} | {_quantiles(found.latencies)} "
                    f"| {_quantiles(found.restores)} |"
                )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
