"""For more hosts than one Prometheus can hold: agents write to a shared store, which serves the rules and the dashboards alike.

The store is the machine's VictoriaMetrics: 1.79 of Debian 12, or with tests/newest.sh the newest one in Debian. The
vmalert of 1.79 is older than `keep_firing_for` (1.91): its rules omit that field.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_blocks import LOOKBACK, backfill, on_blocks
from deploy_daemon import running
from deploy_history import END, HOSTS, SCRAPE, SECONDS, history
from deploy_paths import victoria_metrics
from deploy_servers import Server, prometheus, started
from deploy_tools import COMMAND, DEPLOY, ROOT, fetch, need, wait_until
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.nightly

RULES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")
VARIABLE = re.compile(r"\$(?:\{([a-z_]\w*)(?::\w+)?\}|([a-z_]\w*))")
"""Excludes $1, which belongs to label_replace."""
JOINED_INTO_ITSELF = re.compile(r'"value", "=", "\w+", "value"\)')
"""label_join into a label that is also joined: VictoriaMetrics 1.79 overwrites the label while it reads it, so the text is wrong there."""
ANY_OF_EQUALS = "topk by"
"""Of equal values, as of two instances of one host, Prometheus and VictoriaMetrics keep different ones."""
INTERVALS = {"__interval": "15s", "__rate_interval": "60s", "__range": "15m"}
Labels = frozenset[tuple[str, str]]


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
    asked = [
        target["expr"]
        for board in boards
        for panel in panels(board)
        for target in panel.get("targets", ())
        if target.get("expr")
    ]
    return [VARIABLE.sub(lambda match: INTERVALS.get(match[1] or match[2], ".*"), text) for text in asked]


def import_lines(store: Server, lines: list[str]) -> None:
    """Add lines to VictoriaMetrics, which counts milliseconds."""
    body = "".join(f"{line}000\n" for line in lines).encode()
    request = urllib.request.Request(f"{store.url}/api/v1/import/prometheus", data=body)
    with urllib.request.urlopen(request, timeout=60):
        pass
    fetch(f"{store.url}/internal/force_flush")


def recorded(server: Server, rule: dict[str, str]) -> list[str]:
    """The series that a recording rule would have recorded."""
    told = server.ask(
        "/api/v1/query_range",
        query=rule["expr"],
        start=str(END - SECONDS),
        end=str(END),
        step=str(SCRAPE),
    )
    return [
        f"{rule['record']}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels)}}} {value} {at}"
        for one in told["result"]
        for labels in [sorted(({**one["metric"], **rule.get("labels", {})} | {"__name__": ""}).items())[1:]]
        for at, value in one["values"]
    ]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Prometheus and VictoriaMetrics with the same history, and with the results of the recording rules on it."""
    folder = tmp_path_factory.mktemp("stores")
    need("victoria-metrics", "victoria-metrics")
    lines = [line for host in HOSTS for line in history(host)]
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


def without_names(vector: dict[Labels, float]) -> dict[Labels, float]:
    """MetricsQL keeps the name where PromQL drops it (`last_over_time`, comparisons); no query matches on it."""
    return {
        frozenset(pair for pair in labels if pair[0] != "__name__"): value for labels, value in vector.items()
    }


def fits_into_the_history(expression: str) -> bool:
    """Prometheus divides by the whole window even if the history is shorter, VictoriaMetrics by the available part."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    windows = re.findall(r"\[(\d+)([smhd])", expression)
    return all(int(number) * units[unit] <= SECONDS for number, unit in windows)


def tolerance() -> float:
    """The tolerated difference between two rates: MetricsQL does not extrapolate to the borders of a window.

    Windows of Prometheus 3 exclude their left border, so one of four scrapes is missing from our shortest window.
    """
    printed = subprocess.run(["prometheus", "--version"], check=True, capture_output=True, text=True)
    major = re.search(r"version (\d+)\.", printed.stdout + printed.stderr)
    return 0.1 if int(major[1]) < 3 else 0.25


def values_of(server: Server, expression: str) -> dict[Labels, float]:
    """The reply of a server; an error names the query and the reason."""
    try:
        return server.values(expression, END)
    except urllib.error.HTTPError as error:
        pytest.fail(f"{server.url} refuses {expression}: {error.read().decode()[:500]}")


@pytest.mark.parametrize("kind", ["rules", "dashboards"])
def test_the_store_answers_as_prometheus_does(both: tuple[Server, Server], kind: str) -> None:
    """The same series, and nearly the same values."""
    apart = tolerance()
    expressions = [rule["expr"] for rule in rules()] if kind == "rules" else dashboard_queries()
    told = 0
    for expression in dict.fromkeys(expressions):
        ours, theirs = (without_names(values_of(server, expression)) for server in both)
        if JOINED_INTO_ITSELF.search(expression) or ANY_OF_EQUALS in expression:
            assert len(ours) == len(theirs), expression
            continue
        assert ours.keys() == theirs.keys(), expression
        if fits_into_the_history(expression):
            assert theirs == pytest.approx(ours, rel=apart, abs=1e-9, nan_ok=True), expression
            told += bool(ours)
    assert told >= {"rules": 20, "dashboards": 100}[kind]


class Pager(ThreadingHTTPServer):
    """Accepts what an Alertmanager would be sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.alerts: list[dict[str, Any]] = []


class Page(BaseHTTPRequestHandler):
    """One message of vmalert, in the form of Alertmanager's API."""

    server: Pager

    def do_POST(self) -> None:
        self.server.alerts += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Log nothing."""


@contextmanager
def pager() -> Iterator[Pager]:
    with Pager() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def agent_config(folder: Path, exporters: list[str], store: Server) -> Path:
    """agent.yml for these exporters, as the only agent, with short intervals."""
    config = yaml.safe_load((DEPLOY / "prometheus/agent.yml").read_text())
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config["remote_write"][0]["url"] = f"{store.url}/api/v1/write"
    (job,) = config["scrape_configs"]
    (hash_of_address,) = (rule for rule in job["relabel_configs"] if rule.get("action") == "hashmod")
    hash_of_address["modulus"] = 1
    (folder / "targets").mkdir()
    hosts = [
        {"targets": [address], "labels": {"instance": f"gpu-{number}", "cluster": "live"}}
        for number, address in enumerate(exporters)
    ]
    (folder / "targets/roce.yml").write_text(yaml.safe_dump(hosts))
    path = folder / "agent.yml"
    path.write_text(yaml.safe_dump(config))
    return path


def rules_for_debians_vmalert(folder: Path) -> list[str]:
    """The rules without the fields that it is too old for; each group is evaluated every second to shorten the test."""
    flags = []
    for place in RULES:
        groups = yaml.safe_load(place.read_text())["groups"]
        for group in groups:
            group["interval"] = "1s"
            for rule in group["rules"]:
                rule.pop("keep_firing_for", None)
        path = folder / place.name
        path.write_text(yaml.safe_dump({"groups": groups}))
        flags.append(f"-rule={path}")
    return flags


def test_an_agent_writes_and_the_storm_pages_from_the_store(tmp_path: Path) -> None:
    """Exporter, agent, store, rules at the store, notification: the whole path, without a Prometheus that stores data."""
    vmalert = need("vmalert", "victoria-metrics")
    program = need("prometheus", "prometheus")
    with ExitStack() as stack:
        store = stack.enter_context(victoria_metrics(tmp_path, LOOKBACK))
        daemons = [
            stack.enter_context(running([str(COMMAND)], flags=[f"--host.simulate={scenario}"]))
            for scenario in ("pfc-storm", "quiet")
        ]
        exporters = [daemon.url.removeprefix("http://") for daemon in daemons]
        config = agent_config(tmp_path, exporters, store)
        stack.enter_context(prometheus(program, config, tmp_path, storage="agent"))
        wait_until(
            lambda: len(store.values('up{job="roce",replica="a"} == 1')) == 2,
            "both hosts are in the store",
        )
        called = stack.enter_context(pager())
        port = free_port()
        command = [
            vmalert,
            f"-datasource.url={store.url}",
            f"-remoteWrite.url={store.url}",
            f"-notifier.url=http://127.0.0.1:{called.server_port}",
            f"-httpListenAddr=127.0.0.1:{port}",
            *rules_for_debians_vmalert(tmp_path),
        ]
        stack.enter_context(started(command, port, tmp_path / "vmalert.log", ready="/health"))

        wait_until(lambda: "gpu-0" in hosts_with_storm(called.alerts), "the storm of gpu-0 pages", 120)
        assert hosts_with_storm(called.alerts) == {"gpu-0"}


def hosts_with_storm(alerts: list[dict[str, Any]]) -> set[str]:
    """The hosts with a paging storm alert."""
    labels = [alert["labels"] for alert in list(alerts)]
    return {
        of["instance"]
        for of in labels
        if of["alertname"].startswith("RocePfcStorm") and of["severity"] == "page" and "instance" in of
    }
