"""How often the rule of the odd host names the slow host of a job: python bench/odd_host.py [JOBS [SEED]].

Simulated jobs of 8 to 512 hosts, half of them with one host that pauses its switch, loses packets, has a slow link or sends little, the
others without one but with what healthy jobs have: a lossy fabric, two generations of NICs, hosts of two roles, a host that only
leads. The rule is `instance_workload_signal:roce_odd_host:score` of alerts/rules/jobs.yml, of which `scores` is the same in Python:
tests/alerts/test_odd_host.py compares them. The limits were chosen with seeds below 1,000; the judgement has others.
"""

from __future__ import annotations

import math
import random
import sys
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMIT = 3.3
"""Of a score: that many times the usual distance from the median, or the least distance that matters."""
FLOOR, USUAL = 1.0, 1.2
"""Of the distance that a score is relative to: the least one, and times the median distance (1.48 is the standard deviation)."""
FEWEST = 4
"""Hosts of a job that can be compared."""
MOST = 0.25
"""Share of the hosts of a job above the limit in a signal: more are a group and no odd host, as those of an older generation."""
SAMPLES = 4
"""Of ten minutes that are averaged."""
JOBS, SEED = 300, 10_000
LINE = 50e9
"""Bytes per second of a link."""


class HostFacts(NamedTuple):
    """One host of a job, the mean of ten minutes."""

    pause: float
    """Share of the time for which it paused its switch."""
    loss: float
    """Share of its packets that were lost."""
    speed: float
    """Bytes per second of its slowest link."""
    sent: float
    """Bytes per second."""


def levels(host: HostFacts) -> Iterator[tuple[str, float]]:
    """Each signal in units of the least difference that matters; the larger, the worse."""
    yield "pause", 2 * math.log2(1 + host.pause / 0.005)
    yield "loss", 2 * math.log2(1 + host.loss / 0.00001)
    yield "speed", -5 * math.log2(host.speed)
    if host.sent > 1e6:  # noqa: PLR2004 - a host that sends nothing leads or waits; its peers see one that is dead
        yield "throughput", -math.log2(host.sent)


def scores(job: Mapping[str, HostFacts]) -> dict[str, float]:
    """The largest score of each host: its distance from the median of the job in a signal, by the usual distance."""
    signals: dict[str, dict[str, float]] = {}
    for name, host in job.items():
        for signal, level in levels(host):
            signals.setdefault(signal, {})[name] = level
    found = dict.fromkeys(job, 0.0)
    for of in signals.values():
        if len(of) < FEWEST:
            continue
        middle = median(of.values())
        usual = median(abs(level - middle) for level in of.values())
        far = {name: (level - middle) / (FLOOR + USUAL * usual) for name, level in of.items()}
        if sum(one > LIMIT for one in far.values()) <= MOST * len(of):
            found |= {name: max(found[name], one) for name, one in far.items()}
    return found


def simulated_job(dice: random.Random, *, slow: bool) -> tuple[dict[str, HostFacts], str]:
    """The hosts of a job, and the name of the slow one; empty if there is none."""
    size = round(2 ** dice.uniform(3, 9))
    base_loss = dice.choice([0, 0, 1e-7, 1e-6, 1e-5])
    base_pause = dice.choice([0, 1e-4, 1e-3, 1e-2])
    speeds = [LINE, LINE / 2] if dice.random() < 0.05 else [LINE]  # noqa: PLR2004 - one job in twenty
    roles = [0.4, 0.13] if dice.random() < 0.2 else [dice.uniform(0.05, 0.6)]  # noqa: PLR2004 - one job in five
    job = {
        f"host{number}": HostFacts(
            base_pause * _over_minutes(dice, 0.4, 0.6),
            base_loss * _over_minutes(dice, 0.5, 0.9),
            speeds[number % len(speeds)],
            LINE * roles[number * 7 % size * len(roles) // size] * _over_minutes(dice, 0.1, 0.1),
        )
        for number in range(size)
    }
    if dice.random() < 0.1:  # noqa: PLR2004 - one job in ten has a host that only leads
        job["host0"] = job["host0"]._replace(sent=1e4)
    if not slow:
        return job, ""
    name = f"host{dice.randrange(size)}"
    host = job[name]
    job[name] = dice.choice(
        [
            host._replace(pause=dice.uniform(0.03, 0.5)),
            host._replace(pause=dice.uniform(0.03, 0.5)),
            host._replace(loss=10 ** dice.uniform(-4, -2)),
            host._replace(speed=host.speed / dice.choice([2, 4])),
            host._replace(sent=max(host.sent, LINE / 20) / dice.uniform(30, 100)),
        ]
    )
    return job, name


def _over_minutes(dice: random.Random, host: float, moment: float) -> float:
    """How a host differs from others (standard deviations of logarithms): always, and in each of the samples that are averaged."""
    return (
        dice.lognormvariate(0, host) * sum(dice.lognormvariate(0, moment) for _ in range(SAMPLES)) / SAMPLES
    )


class Judged(NamedTuple):
    """What the rule said of many jobs."""

    named: int
    """Jobs whose slow host has the highest score of those above the limit."""
    missed: int
    wrong: int
    """Jobs of which another host was named, or one although none is slow."""
    accused: int
    """Jobs without a slow host of which one was named."""
    healthy: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.named / (2 * self.named + self.missed + self.wrong)


def judge(jobs: int, seed: int) -> Judged:
    """The rule on `jobs` jobs, every other one with a slow host."""
    named = missed = wrong = accused = 0
    for number in range(jobs):
        job, slow = simulated_job(random.Random(seed + number), slow=number % 2 == 0)  # noqa: S311 - no secret
        found = scores(job)
        worst = max(found, key=lambda name: found[name])
        said = worst if found[worst] > LIMIT else ""
        named += bool(slow) and said == slow
        missed += bool(slow) and not said
        wrong += bool(said) and said != slow
        accused += bool(said) and not slow
    return Judged(named, missed, wrong, accused, jobs // 2)


def main() -> None:
    """Print one table."""
    given = [int(one) for one in sys.argv[1:]]
    jobs, seed = (given + [JOBS, SEED][len(given) :])[:2]
    found = judge(jobs, seed)
    print("| jobs | slow host named | missed | wrong host | healthy jobs accused | F1 |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    print(
        f"| {jobs} | {found.named} of {jobs - found.healthy} | {found.missed} | {found.wrong - found.accused} "
        f"| {found.accused} of {found.healthy} | {found.f1:.3f} |"
    )


if __name__ == "__main__":
    main()
