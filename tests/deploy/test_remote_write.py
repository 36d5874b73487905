"""The rules and the dashboards get the same answers from VictoriaMetrics as from Prometheus, on one history of three simulated hosts.

The store is the machine's VictoriaMetrics: 1.79 of Debian 12, or with tests/newest.sh the newest one in Debian.
"""

import asyncio
import json
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml
from clock import Clock
from deploy_servers import LOOKBACK, backfill, on_blocks, prometheus_version, victoria_metrics
from deploy_tools import ROOT, fetch
from servers import Running, Values
from waiting import HUNG_SECONDS

from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.fastloop import Sampler
from roce_exporter.fastloop.target import Pace
from roce_exporter.host.simulated.kernel import simulate

pytestmark = pytest.mark.nightly

END = 1_767_232_800
"""2026-01-01T02:00:00Z: the end of the history."""
SECONDS = 20 * 60
SCRAPE = 15
POLL = 0.2
"""Seconds between polls of the fast loop, long so that the tests take less time."""
SCENARIOS = {"gpu-1": "pfc-storm", "gpu-2": "incast", "gpu-3": "quiet"}
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
RULES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")
VARIABLE = re.compile(r"\$(?:\{([a-z_]\w*)(?::\w+)?\}|([a-z_]\w*))")
"""Excludes $1, which belongs to label_replace."""
ANY_OF_EQUALS = ("topk by", "topk(1, up{")
"""Of equal values, as of two instances of one host or two targets that are up, Prometheus and VictoriaMetrics keep different ones."""
INTERVALS = {"__interval": "15s", "__rate_interval": "60s", "__range": "15m"}


async def history(instance: str, scenario: str) -> list[str]:
    """Lines of one host, `SERIES VALUE TIMESTAMP` with the timestamp in seconds: the real exporter on a simulated clock."""
    clock = Clock(0.0)
    kernel = simulate(scenario, clock=clock, vendors=("mlx5", "mlx5"), seed=2)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, lambda: END - SECONDS + clock(), Pace(interval=POLL, linger=5.0))
    exporter = Exporter(collector, [Auditor(load_profile("auto")), sampler])
    target = f'cluster="simulated",job="roce",instance="{instance}"'
    lines: list[str] = []
    while clock.now <= SECONDS:
        text = exporter.render(await exporter.observe(5.0), Format.TEXT).decode() + "up 1\n"
        at = END - SECONDS + clock.now
        for name, labels, value in SAMPLE.findall(re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
            lines.append(f"{name}{{{labels + ',' if labels else ''}{target}}} {value} {at:.0f}")
        until = clock.now + SCRAPE
        while (due := sampler.tick()) < until:
            clock.now = max(due, clock.now)
        clock.now = until
    collector.close()
    return lines


def rules() -> list[dict[str, str]]:
    return [
        rule
        for place in RULES
        for group in yaml.safe_load(place.read_text())["groups"]
        for rule in group["rules"]
    ]


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board.get("panels", ()):
        yield panel
        yield from panels(panel)


def dashboard_queries() -> list[str]:
    """The queries of the panels, every variable with a pattern that matches everything."""
    boards = [json.loads(path.read_text()) for path in sorted((ROOT / "dashboards").glob("*.json"))]
    targets = [target for board in boards for panel in panels(board) for target in panel.get("targets", ())]
    texts = [target["expr"] for target in targets if target.get("expr")]
    return [VARIABLE.sub(lambda match: INTERVALS.get(match[1] or match[2], ".*"), text) for text in texts]


def import_lines(store: Running, lines: list[str]) -> None:
    """Add lines to VictoriaMetrics, which counts milliseconds."""
    body = "".join(f"{line}000\n" for line in lines).encode()
    request = urllib.request.Request(f"{store.url}/api/v1/import/prometheus", data=body)
    with urllib.request.urlopen(request, timeout=HUNG_SECONDS):
        pass
    fetch(f"{store.url}/internal/force_flush")


def recorded(server: Running, rule: dict[str, str]) -> list[str]:
    """The series that a recording rule would have recorded."""
    times = {"start": str(END - SECONDS), "end": str(END), "step": str(SCRAPE)}
    found = server.ask("query_range", query=rule["expr"], **times)
    return [
        f"{rule['record']}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels)}}} {value} {at}"
        for one in found["result"]
        for labels in [sorted(({**one["metric"], **rule.get("labels", {})} | {"__name__": ""}).items())[1:]]
        for at, value in one["values"]
    ]


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Iterator[tuple[Running, Running]]:
    """Prometheus and VictoriaMetrics with the same history, and with the results of the recording rules on it."""
    folder = tmp_path_factory.mktemp("stores")
    logging.getLogger().setLevel(logging.ERROR)
    lines = [line for host in SCENARIOS.items() for line in asyncio.run(history(*host))]
    with ExitStack() as stack:
        store = stack.enter_context(victoria_metrics(folder, LOOKBACK))
        waiting = [rule for rule in rules() if "record" in rule]
        backfill(folder, "scraped", lines)
        import_lines(store, lines)
        while waiting:
            unmade = {rule["record"] for rule in waiting}
            # a rule may read what it recorded before: here nothing
            ready = [
                rule
                for rule in waiting
                if not any(name in rule["expr"] for name in unmade - {rule["record"]})
            ]
            assert ready, f"rules that depend on each other: {unmade}"
            with on_blocks(folder) as server:
                lines = [line for rule in ready for line in recorded(server, rule)]
            if lines:
                backfill(folder, f"recorded-{len(waiting)}", lines)
                import_lines(store, lines)
            waiting = [rule for rule in waiting if rule not in ready]
        yield stack.enter_context(on_blocks(folder)), store


def values_of(server: Running, expression: str) -> Values:
    """The reply of a server without names: MetricsQL keeps them where PromQL drops them, and no query matches on them."""
    try:
        found = server.values(expression, time=END)
    except urllib.error.HTTPError as error:
        pytest.fail(f"{server.url} refuses {expression}: {error.read().decode()[:500]}")
    return {
        frozenset(pair for pair in labels if pair[0] != "__name__"): value for labels, value in found.items()
    }


def fits_into_the_history(expression: str) -> bool:
    """Prometheus divides by the whole window even if the history is shorter, VictoriaMetrics by the available part."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    windows = re.findall(r"\[(\d+)([smhd])", expression)
    return all(int(number) * units[unit] <= SECONDS for number, unit in windows)


@pytest.mark.parametrize(("kind", "least"), [("rules", 20), ("dashboards", 100)])
def test_the_store_answers_as_prometheus_does(both, kind, least) -> None:
    """The same series, and nearly the same values: MetricsQL does not extrapolate to the borders of a window.

    Windows of Prometheus 3 exclude their left border, so one of four scrapes is missing from our shortest window.
    """
    apart = 0.1 if prometheus_version() < 3 else 0.25
    expressions = [rule["expr"] for rule in rules()] if kind == "rules" else dashboard_queries()
    compared = 0
    for expression in dict.fromkeys(expressions):
        ours, theirs = (values_of(server, expression) for server in both)
        if any(one in expression for one in ANY_OF_EQUALS):
            assert len(ours) == len(theirs), expression
            continue
        assert ours.keys() == theirs.keys(), expression
        if fits_into_the_history(expression):
            assert theirs == pytest.approx(ours, rel=apart, abs=1e-9, nan_ok=True), expression
            compared += bool(ours)
    assert compared >= least
