"""What do the queries of the dashboards cost with 16,000 ports? `python bench boards`, for a Prometheus with a day of 2,000 hosts.

Every query of every panel, variable and mark, with the range, the step and the values of variables with which Grafana opens the
dashboard: the fleet dashboard with all clusters, the others with one host of eight ports. The data: `board_fleet.py`, written
by `promtool tsdb create-blocks-from openmetrics`. Medians of three runs, the slowest first; rely on the CPU seconds where other
programs run. The goals are those of `GOALS`, in CPU seconds of Prometheus; run it with two numbers of hosts for the slope. Needs 3 GB of memory for some minutes and 2 GB in /tmp; `ROCE_BENCH_HOSTS` is the number of hosts, `ROCE_BENCH_BLOCKS` a folder to keep the data for another run.
Prometheus 3 of `tests/newest.sh` if it is there, otherwise that of the PATH.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from board_fleet import DAY, EARLY, PORTS, RANGE, SPARSE, Target, background, chosen, spans, text_of, whole
from board_history import END, HOUR, SCRAPE, one_host, repeated
from dashboard_contents import DASHBOARDS, names, panels, queries, read, selector
from promql_uses import escaped, interpolate
from servers import prometheus as prometheus_server
from tables import print_head, print_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from board_history import Past
    from servers import Running

HOSTS = int(os.environ.get("ROCE_BENCH_HOSTS", "2000"))
SERVERS = Path.home() / ".cache/roce-lab/servers/usr/bin"
BLOCK = 2 * HOUR
SERIES_OF_A_PORT = 70
"""Series of each port of the other hosts, recorded ones included: as many as the metric set `lean` has."""
UNCOMPACTED = ("--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h")
"""As in the first hours of a real one, and so that no compaction runs during the measurement."""
ROUNDS = 3
LIMIT = 2.0
"""CPU seconds that a query may take."""
GOALS = {"roce-fleet": 2.0, "roce-jobs": 5.0, "roce-configuration": 3.0}
"""CPU seconds that opening a board may take."""
POINTS = 1000
"""The width of a panel that spans a screen, in pixels."""
STEPS = (15, 20, 30, 60, 120, 300, 600, 900, 1200)
"""Intervals to which Grafana rounds, from Prometheus' scrape interval upwards."""
EVERYTHING = {"cluster": ".*", "job": ".+", "instance": ".+", "host": ".*", "netdev": ".*", "workload": ".+"}
EVERYTHING |= {"device": ".+", "port": ".+", "priority": ".+"}


class Question(NamedTuple):
    """One request of Grafana to Prometheus."""

    board: str
    place: str
    path: str
    parameters: dict[str, Any]


class Figure(NamedTuple):
    """A request, the medians of its seconds and of Prometheus' CPU seconds, and the series of the reply."""

    question: Question
    seconds: float
    cpu: float
    series: int


# ---- data


def build(data: Path, hosts: int) -> None:
    """Write a day of the fleet as blocks below `data`, two hours at a time."""
    had, target = one_host(data.parents[1] / "host"), chosen(hosts)
    uses = Counter(name for place in DASHBOARDS for query in queries(read(place)) for name in names(query))
    others, found, host = background(had, uses, SERIES_OF_A_PORT), spans(hosts), whole(had, target)
    print(
        f"Series: the host {len(host)}, {hosts - 1} others {others.series} each, {len(found)} of faults and clusters."
    )
    _backfill(text_of(found, END - DAY, END - RANGE, EARLY), data)
    for start in range(END - RANGE, END, BLOCK):
        ends = range(start + SPARSE - SCRAPE, start + BLOCK, SPARSE)
        parts = (
            text_of(found, start, start + BLOCK),
            (
                others.of(Target(number), at)
                for at in ends
                for number in range(hosts)
                if number != target.number
            ),
            (line for one in host for line in _lines(one, start)),
        )
        _backfill(chain(*parts), data)


def _lines(one: Past, start: int) -> Iterator[str]:
    return (f"{one.series} {value:.17g} {at}\n" for at, value in repeated(one, start, start + BLOCK))


def _backfill(lines: Iterable[str], data: Path) -> None:
    """Add samples: one run per block, because promtool reads all its input once per block."""
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        text = Path(folder) / "text.om"
        with text.open("w", encoding="utf-8") as file:
            file.writelines(lines)
            file.write("# EOF\n")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", text, data]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own text


# ---- questions


def step_of(points: int) -> int:
    """Grafana's step of a panel over the range."""
    return next(one for one in STEPS if one * 1.25 >= RANGE / points)


def values_of(board: str, target: Target) -> dict[str, str]:
    """Grafana's values of the variables, inside strings of PromQL."""
    if board == "roce-fleet":
        return EVERYTHING
    own = {
        "instance": escaped(target.instance),
        "switch": "leaf1",
        "switch_port": "Ethernet0",
        "setting": "roce_pfc_enabled",
    }
    own |= {"switches": "http://localhost:10123"}
    one_port = {"device": "mlx5_0", "port": "1"} if board in {"roce-port", "roce-link"} else {}
    return EVERYTHING | own | one_port


def questions(target: Target) -> Iterator[Question]:
    """Every request that opening each dashboard makes, its collapsed rows included."""
    for place in DASHBOARDS:
        document, board = read(place), place.stem
        values = values_of(board, target)
        for one in document["templating"]["list"]:
            if one["type"] == "query":
                label = one["query"]["query"].rpartition(", ")[2].rstrip(")")
                match = {"match[]": interpolate(selector(one), values, RANGE)}
                yield Question(board, f"variable {one['name']}", f"label/{label}/values", match | _range(0))
        for one in document["annotations"]["list"]:
            if "expr" in one:
                query = {"query": interpolate(one["expr"], values, RANGE)}
                yield Question(board, f"mark {one['name']}", "query_range", query | _range(60))
        yield from _of_panels(board, document, values)


def _of_panels(board: str, document: dict[str, Any], values: dict[str, str]) -> Iterator[Question]:
    for panel in panels(document):
        step = step_of(panel.get("maxDataPoints") or POINTS)
        for target in panel["targets"]:
            query = {"query": interpolate(target["expr"], values, RANGE)}
            if target["instant"]:
                yield Question(board, panel["title"], "query", query | {"time": END - SCRAPE})
            else:
                yield Question(board, panel["title"], "query_range", query | _range(step))


def _range(step: int) -> dict[str, int]:
    """The last six hours, aligned to the step as Grafana does."""
    if not step:
        return {"start": END - RANGE, "end": END - SCRAPE}
    return {"start": (END - RANGE) // step * step, "end": (END - SCRAPE) // step * step, "step": step}


def measured(prometheus: Running, question: Question) -> Figure:
    """The median of `ROUNDS` requests."""
    seconds, cpus, series = [], [], 0
    for _ in range(ROUNDS):
        start, before = time.perf_counter(), _cpu(prometheus)
        found = prometheus.ask(question.path, **question.parameters)
        seconds.append(time.perf_counter() - start)
        cpus.append(_cpu(prometheus) - before)
        series = len(found["result"] if isinstance(found, dict) else found)
    return Figure(question, statistics.median(seconds), statistics.median(cpus), series)


def _cpu(prometheus: Running) -> float:
    """CPU seconds of all its threads so far (clock_getcpuclockid(3)); a query has no use for a second core."""
    return time.clock_gettime(~prometheus.process.pid << 3 | 2)


def print_figures(figures: list[Figure]) -> None:
    """The slowest query of each board, and the slowest of all."""
    print_head("board", "queries", "CPU s", "goal", "slowest CPU s", f"above {LIMIT:g} s", "slowest s")
    for board in dict.fromkeys(one.question.board for one in figures):
        own = [one for one in figures if one.question.board == board]
        walls, cpus = [one.seconds for one in own], [one.cpu for one in own]
        above = sum(one > LIMIT for one in cpus)
        print_row(board, len(own), sum(cpus), GOALS.get(board, "-"), max(cpus), above, max(walls))
    print()
    print_head("board", "panel", "seconds", "CPU s", "series")
    for one in sorted(figures, key=lambda one: -one.cpu)[: int(os.environ.get("ROCE_BENCH_ROWS", "30"))]:
        print_row(one.question.board, one.question.place, one.seconds, one.cpu, one.series)


def main() -> None:
    """Build the fleet unless it is there, query it, and print the tables."""
    if SERVERS.is_dir():
        os.environ["PATH"] = f"{SERVERS}:{os.environ['PATH']}"
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("left out: needs Prometheus (apt-get install prometheus)")
        return
    kept = os.environ.get("ROCE_BENCH_BLOCKS")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(kept or folder) / f"{HOSTS}"
        if not (data / "complete").exists():
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir(parents=True)
            build(data / "data", HOSTS)
            (data / "complete").touch()
        retention = "--storage.tsdb.retention.time=100y"
        with prometheus_server(data, {}, *UNCOMPACTED, retention, "--query.lookback-delta=300s") as running:
            _print(running)


def _print(prometheus: Running) -> None:
    before = os.getloadavg()
    series = prometheus.query('count({__name__!=""})', time=END - SCRAPE)[0]["value"][1]
    print(
        f"{HOSTS} hosts, {HOSTS * PORTS} ports, {series} series at the end; load {before[0]:.1f} of {os.cpu_count()} cores.\n"
    )
    print_figures([measured(prometheus, one) for one in questions(chosen(HOSTS))])
    status = Path(f"/proc/{prometheus.process.pid}/status").read_text(encoding="utf-8")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(f"\nMost memory of Prometheus, queries included: {peak:.0f} MB.")


if __name__ == "__main__":
    main()
