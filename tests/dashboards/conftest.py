"""One past for all tests: made once, by the real exporter, promtool and Prometheus."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
from dashboard_contents import DASHBOARDS, RULES, queries, read
from dashboard_history import END, HOSTS, SCRAPE, SECONDS, write_history
from dashboard_past import Prometheus, evaluate, read_rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _need(program: str) -> None:
    if shutil.which(program) is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{program} is not installed")


def _wanted() -> set[str]:
    """Every word of every query and rule, the names of metrics among them: the rest of a history would never be asked for."""
    asked = [query for place in DASHBOARDS for query in queries(read(place))]
    asked += [place.read_text(encoding="utf-8") for place in RULES]
    return {word for text in asked for word in re.findall(r"\w+", text)}


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus with the last `SECONDS` of every host, and what the rules made of them."""
    _need("promtool")
    _need("prometheus")
    folder = tmp_path_factory.mktemp("past")
    prometheus = Prometheus(folder / "data")
    prometheus.data.mkdir()
    for place in _histories(folder):
        prometheus.backfill(place)
        place.unlink()
    evaluate(prometheus, list(read_rules(RULES)), END - SECONDS, END, SCRAPE)
    prometheus.start()
    yield prometheus
    prometheus.stop()


def _histories(folder: Path) -> list[Path]:
    places = [folder / f"{number}.om" for number in range(len(HOSTS))]
    wanted = _wanted()
    # a fork of a process with threads may hang, and Python 3.12 says so
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        made = [
            pool.submit(write_history, host, SECONDS, wanted, place)
            for host, place in zip(HOSTS, places, strict=True)
        ]
        for one in made:
            one.result()
    return places
