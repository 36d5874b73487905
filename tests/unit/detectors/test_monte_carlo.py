"""The benchmark of the storm detector on a small scale: the same hosts and seeds, so the result is deterministic."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
PATH = Path(__file__).parents[3] / "bench" / "storm_detection.py"


def load():
    spec = importlib.util.spec_from_file_location("storm_detection", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


bench = load()

TRIALS = 12


@pytest.mark.parametrize("case", bench.CASES, ids="-".join)
def test_long_storms_are_found_without_false_alarms(case) -> None:
    storms = [bench.play(case, seed, with_storm=True) for seed in range(TRIALS)]
    controls = [bench.play(case, seed, with_storm=False) for seed in range(TRIALS)]
    ours = bench.score(case, storms, controls, "roce_exporter")
    assert ours.long >= 3
    assert ours.found == ours.long
    assert ours.false_alarms == 0
    scrapes = bench.score(case, storms, controls, "15 s scrape")
    assert scrapes.found < ours.found
