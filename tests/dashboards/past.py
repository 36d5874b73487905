"""Serve the history of the tests for screenshots: `python tests/dashboards/past.py FOLDER SECONDS`.

It prints Prometheus' address, and ends with its input. A folder that already holds a history is served unchanged.
"""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from dashboard_contents import DASHBOARDS, RULES, queries, read
from dashboard_history import END, HOSTS, SCRAPE, write_history
from dashboard_past import Prometheus, evaluate, read_rules


def wanted(places: tuple[Path, ...] = DASHBOARDS) -> set[str]:
    """Every word of every query and rule, including the names of metrics: no query reads the rest of a history."""
    texts = [query for place in places for query in queries(read(place))]
    texts += [place.read_text(encoding="utf-8") for place in RULES]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def make(prometheus: Prometheus, seconds: int, names: set[str]) -> None:
    """Create the last `seconds` of every host, and the results of the rules."""
    prometheus.data.mkdir()
    folder = prometheus.data.parent
    places = [folder / f"{number}.om" for number in range(len(HOSTS))]
    # a fork of a process with threads may hang, and Python 3.12 warns about it
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for one in [
            pool.submit(write_history, host, seconds, names, place)
            for host, place in zip(HOSTS, places, strict=True)
        ]:
            one.result()
    for place in places:
        prometheus.backfill(place)
        place.unlink()
    evaluate(prometheus, list(read_rules(RULES)), END - seconds, END, SCRAPE)


def main() -> None:
    """Create the history if it is missing, and serve it until the input ends."""
    folder, seconds = Path(sys.argv[1]), int(sys.argv[2])
    prometheus = Prometheus(folder / "data")
    if not (folder / "made").exists():
        folder.mkdir(parents=True)
        make(prometheus, seconds, wanted(tuple(Path(one) for one in sys.argv[3:]) or DASHBOARDS))
        (folder / "made").touch()
    prometheus.start()
    print(prometheus.url, END - seconds, END, flush=True)  # noqa: T201 - the address is the result
    sys.stdin.read()
    prometheus.stop()


if __name__ == "__main__":
    main()
