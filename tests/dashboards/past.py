"""A real Prometheus with the histories, the results of the recording rules, and the alerts that fired.

`python tests/dashboards/past.py FOLDER SECONDS [DASHBOARD...]` serves one for screenshots: it prints the address and the first and last
second, and ends with its input. A folder that already holds a history is served unchanged.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml
from dashboard_contents import DASHBOARDS, RULES, queries, read
from dashboard_history import END, HOSTS, SCRAPE, Samples, history
from remote_write import send, timed
from servers import Running, prometheus

LOOKBACK = 30
"""Seconds. Written series have no staleness markers; a window of two scrape intervals replaces them."""
FLAGS = (
    f"--query.lookback-delta={LOOKBACK}s",
    "--web.enable-remote-write-receiver",
    "--storage.tsdb.retention.time=100y",
    "--storage.tsdb.min-block-duration=30d",  # samples of any time of the history are accepted in any order of series
    "--storage.tsdb.max-block-duration=30d",
)
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@contextmanager
def past(folder: Path, seconds: int, boards: Iterable[Path] = DASHBOARDS) -> Iterator[Running]:
    """A Prometheus in `folder` with the last `seconds` of every host, and the results of the rules."""
    with prometheus(folder, {}, *FLAGS) as running:
        if not (folder / "made").exists():
            for samples in histories(seconds, wanted(boards)):
                write(running, samples)
            evaluate(running, END - seconds)
            (folder / "made").touch()
        yield running


def wanted(boards: Iterable[Path] = DASHBOARDS) -> set[str]:
    """Every word of every query and rule, including the names of metrics: no query reads the rest of a history."""
    texts = [query for place in boards for query in queries(read(place))]
    texts += [place.read_text(encoding="utf-8") for place in RULES]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def histories(seconds: int, names: set[str]) -> Iterator[Samples]:
    """The history of each host."""
    # a fork of a process with threads may hang, and Python 3.12 warns about it
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        yield from pool.map(history, HOSTS, repeat(seconds), repeat(names))


def write(running: Running, samples: Samples) -> None:
    """Send samples; those of one series must be in order."""
    send(running, (timed(dict(labels), values) for labels, values in samples.items()))


# ---- rules


def evaluate(running: Running, start: int) -> Samples:
    """Write the series that the rules would have recorded, and the alerts that would have fired, and return them.

    Rules on rules and on alerts come after these. A rule that reads its own past is evaluated without a past.
    """
    groups = [
        group for place in RULES for group in yaml.safe_load(place.read_text(encoding="utf-8"))["groups"]
    ]
    waiting = [rule for group in groups for rule in group["rules"]]
    found: Samples = {}
    while waiting:
        unmade = {_name(rule) for rule in waiting}
        ready = [rule for rule in waiting if not any(one in rule["expr"] for one in unmade - {_name(rule)})]
        assert ready, f"rules that depend on each other: {unmade}"
        made = dict(one for rule in ready for one in _made(running, rule, start))
        write(running, made)
        found |= made
        waiting = [rule for rule in waiting if rule not in ready]
    return found


def _name(rule: dict[str, Any]) -> str:
    return str(rule.get("record", "ALERTS"))


def _made(
    running: Running, rule: dict[str, Any], start: int
) -> Iterator[tuple[tuple[tuple[str, str], ...], list[tuple[float, float]]]]:
    for one in running.ask("query_range", query=rule["expr"], start=start, end=END, step=SCRAPE)["result"]:
        labels = one["metric"] | rule.get("labels", {}) | {"__name__": _name(rule)}
        samples = [(at, float(value)) for at, value in one["values"]]
        if "alert" in rule:
            labels |= {"alertname": rule["alert"]}
            fired = list(_fired([at for at, _ in samples], _seconds(rule.get("for", "0s"))))
            yield _key(labels | {"__name__": "ALERTS_FOR_STATE"}), fired
            labels, samples = labels | {"alertstate": "firing"}, [(at, 1.0) for at, _ in fired]
        yield _key(labels), samples


def _key(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _fired(held: list[float], wait: float) -> Iterator[tuple[float, float]]:
    """When an alert fires whose condition held at these times, and since when it has been active: `ALERTS_FOR_STATE`."""
    since = before = float("-inf")
    for at in held:
        since = since if at - before <= SCRAPE else at
        before = at
        if at - since >= wait:
            yield at, since


def _seconds(text: str) -> float:
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhd])", text))


if __name__ == "__main__":
    with past(
        Path(sys.argv[1]), int(sys.argv[2]), [Path(one) for one in sys.argv[3:]] or DASHBOARDS
    ) as served:
        print(served.url, END - int(sys.argv[2]), END, flush=True)  # noqa: T201 - the address is the result
        sys.stdin.read()
