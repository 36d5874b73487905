"""How well the pause tree names the roots of fabrics that are known, and what a tree of 100 switches of 64 ports costs.

The fabrics and their judgement are those of `tests/fabric_model.py`; ROCE_BENCH_SEED chooses others than the tests have.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / place) for place in ("tests", "tests/unit/switches")]

import fabric_model
from fabric_views import MadeSwitch, as_kept, linked, views

from roce_exporter.switches.interpretation import NO_PLAN, SeriesTable
from roce_exporter.switches.pause.pause_report import as_text
from roce_exporter.switches.pause.pause_tree import pause_tree

FABRICS = int(os.environ.get("ROCE_BENCH_FABRICS", "500"))
SEED = int(os.environ.get("ROCE_BENCH_SEED", "360001"))
LEAVES, SPINES, HOSTS = 84, 16, 48
"""Leaves of 64 ports; a spine has a port for each."""
TURNS = 11
GOAL_MS = 50


def fabric(*, storm: bool) -> list[MadeSwitch]:
    """A fabric in which nothing is paused, or one host stops all others."""
    leaves = [MadeSwitch(f"leaf{number}") for number in range(LEAVES)]
    spines = [MadeSwitch(f"spine{number}") for number in range(SPINES)]
    for number, leaf in enumerate(leaves):
        for place in range(HOSTS):
            leaf.port(port := f"Ethernet{place * 4}")
            leaf.neighbor(port, f"gpu-{number:03}-{place // 8}", f"eth{place % 8}")
            if storm and (number, place) != (0, 0):
                leaf.pauses(port)
        for place, spine in enumerate(spines):
            up, down = f"Ethernet{(HOSTS + place) * 4}", f"Ethernet{number * 4}"
            leaf.port(up)
            spine.port(down)
            linked(leaf, up, spine, down)
            if storm and number:
                leaf.paused(up, 0.8)
                spine.pauses(down)
            elif storm:
                leaf.pauses(up)
                spine.paused(down, 0.82)
    if storm:
        leaves[0].paused("Ethernet0", 0.84)
    return [*leaves, *spines]


def main() -> None:
    """Print both tables."""
    gc.set_threshold(*gc.get_threshold()[:2], 1000)  # as `serve` does with switches
    print(f"### {FABRICS} fabrics, seeds from {SEED}\n", flush=True)
    fabric_model.main(FABRICS, SEED)
    print(f"\n### One tree with its text, {LEAVES + SPINES} switches, median of {TURNS}\n")
    print("| fabric | steps | CPU ms | goal |\n| --- | ---: | ---: | ---: |")
    for name, storm in (("calm", False), ("one host stops all", True)):
        made, costs, steps = views(*fabric(storm=storm)), [], 0
        tables = [SeriesTable(view.device, tuple(view.samples.series), NO_PLAN) for view in made]
        shown = [*map(as_kept, made, tables)]
        for _ in range(TURNS):
            begin = time.process_time()
            tree = pause_tree(shown)
            as_text(tree)
            costs.append(time.process_time() - begin)
            steps = len(tree.steps)
        print(f"| {name} | {steps:,} | {statistics.median(costs) * 1e3:.0f} | {GOAL_MS} |", flush=True)
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
