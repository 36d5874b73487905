"""Expositions of simulated hosts, rendered ahead of time: `python bench/fleet_history.py FOLDER`.

A fleet is made of a few variants. Each is one host with a history of its own: all sources, the fast loop, the kernel log and the
verdict run on a simulated clock, so that the counters are monotone and storms begin at known times. The exporter's output of every
scrape is stored gzip-compressed, one archive per metric set and variant; `fleet_server.py` replays it.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import logging
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fleet_exporter import SETS, SimulatedHost
from kernel import ScriptedPort, simulate_script

from roce_exporter.fastloop import Pace
from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Pause
from roce_exporter.host.simulated.kernel import SimulatedKernel, simulate
from roce_exporter.host.simulated.scenarios import PortSeed, Window, overlay, paused, quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roce_exporter.host.simulated.conditions import Span

STORM_SECONDS = 6.0
"""Longer than the detection time of a storm, shorter than that of the NIC's own watchdog."""
SPREAD = 6
"""Hosts begin at different moments of their history, within a sixth of the run."""
EARLY, MIDDLE, LATE = 0.35, 0.5, 0.65
"""When a storm begins, as a share of the run."""
SPARE = 4
"""Scrapes that are rendered beyond the end of the run."""


class Course(NamedTuple):
    """Duration of the run, the scrape interval (both in seconds), and the number of ports of each host."""

    seconds: int
    every: int
    ports: int

    @property
    def phases(self) -> int:
        """The number of different moments at which hosts begin."""
        return max(1, self.seconds // SPREAD // self.every)

    @property
    def moments(self) -> int:
        """The number of scrapes in a history."""
        return self.seconds // self.every + self.phases + SPARE


class Variant(NamedTuple):
    """One kind of host."""

    scenario: str
    """`quiet` or `incast` for the whole history."""
    direction: str = ""
    """Of the storm of the first port, or empty: no storm."""
    begins: float = 0.0
    """When the storm begins, as a share of the run."""


QUIET, INCAST = Variant("quiet"), Variant("incast")
SENDS_EARLY, SENDS_LATE = Variant("quiet", TRANSMIT, EARLY), Variant("quiet", TRANSMIT, LATE)
PAUSED = Variant("quiet", RECEIVE, MIDDLE)
VARIANTS = (SENDS_EARLY, SENDS_LATE, PAUSED, *[QUIET] * 9, *[INCAST] * 4)
"""Each with its own random numbers."""
ORDINARY = range(3, len(VARIANTS))


class Place(NamedTuple):
    """The variant of one host, and the moment of its history at which it begins."""

    variant: int
    phase: int


def place_of(host: int, course: Course) -> Place:
    """Of 100 hosts, two send a storm, at different times, and four are paused by their switches at the same time."""
    phase = host % course.phases
    if host % 100 in (1, 2):
        return Place(host % 100 - 1, phase)
    if host % 25 == 3:  # noqa: PLR2004 - any number other than 1 and 2
        return Place(VARIANTS.index(PAUSED), 0)
    return Place(ORDINARY[host % len(ORDINARY)], phase)


def senders(hosts: int, course: Course) -> int:
    """The number of hosts that send a storm."""
    return sum(VARIANTS[place_of(host, course).variant].direction == TRANSMIT for host in range(hosts))


def paused_hosts(hosts: int, course: Course) -> int:
    """The number of hosts that are paused by their switches."""
    return sum(VARIANTS[place_of(host, course).variant].direction == RECEIVE for host in range(hosts))


def _spans(variant: Variant, port: PortSeed, seconds: int) -> Iterator[Span]:
    if port.position or not variant.direction:
        return quiet(port)
    begin = variant.begins * seconds
    storm = Window(begin, begin + STORM_SECONDS, paused(Pause(3, variant.direction, 1.0)))
    return overlay(quiet(port), [storm])


def _kernel(number: int, course: Course, clock: Callable[[], float]) -> SimulatedKernel:
    variant = VARIANTS[number]
    if variant.scenario != QUIET.scenario:
        return simulate(variant.scenario, clock=clock, vendors=("mlx5",) * course.ports, seed=number + 1)
    ports = [
        ScriptedPort("mlx5", _spans(variant, PortSeed(position, number + 1), course.seconds))
        for position in range(course.ports)
    ]
    return simulate_script(ports, clock=clock, host=number + 1)


def _pace(variant: Variant) -> Pace:
    # Polls find storms; a host without one is polled less often, to save time here.
    return Pace(interval=0.2, idle=0.2 if variant.direction else 1.0, linger=2.0)


def archive(folder: Path, metric_set: str, number: int) -> Path:
    """Where the expositions of one variant are."""
    return folder / f"{metric_set}-{number}.zip"


def _unfinished(folder: Path, metric_set: str, number: int) -> Path:
    return folder / f"{metric_set}-{number}.part"


def render_variant(number: int, course: Course, sets: Sequence[str], folder: Path) -> None:
    """Write the archives of one variant."""
    logging.disable(logging.WARNING)
    asyncio.run(_render_variant(number, course, sets, folder))


async def _render_variant(number: int, course: Course, sets: Sequence[str], folder: Path) -> None:
    host = SimulatedHost(lambda clock: _kernel(number, course, clock), _pace(VARIANTS[number]), sets)
    files = {name: zipfile.ZipFile(_unfinished(folder, name, number), "w") for name in sets}
    for moment in range(course.moments):
        for name, body in (await host.scrape(course.every)).items():
            files[name].writestr(f"{moment}", gzip.compress(body, 6))
    for name, file in files.items():
        file.close()
        _unfinished(folder, name, number).rename(archive(folder, name, number))
    host.close()


def load(folder: Path, metric_set: str, number: int, course: Course) -> list[bytes]:
    """The compressed expositions of a variant, in the order of time."""
    with zipfile.ZipFile(archive(folder, metric_set, number)) as file:
        return [file.read(f"{moment}") for moment in range(course.moments)]


def variants_of(hosts: int, course: Course) -> list[int]:
    """The variants that a fleet of this size has."""
    return sorted({place_of(host, course).variant for host in range(hosts)})


def render(hosts: int, course: Course, sets: Sequence[str], folder: Path) -> None:
    """Write the archives of the variants of a fleet that are not in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [
        number
        for number in variants_of(hosts, course)
        if not all(archive(folder, name, number).exists() for name in sets)
    ]
    with ProcessPoolExecutor() as pool:
        list(pool.map(render_variant, numbers, repeat(course), repeat(tuple(sets)), repeat(folder)))


def main() -> None:
    """Render the histories of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    for flag, default in (("--hosts", 1000), ("--seconds", 1800), ("--every", 15), ("--ports", 8)):
        parser.add_argument(flag, type=int, default=default)
    options = parser.parse_args()
    course = Course(options.seconds, options.every, options.ports)
    render(options.hosts, course, options.sets.split(","), options.folder)
    print(
        f"{len(variants_of(options.hosts, course))} variants, {course.moments} scrapes each, in {options.folder}"
    )


if __name__ == "__main__":
    main()
