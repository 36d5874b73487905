"""A real Prometheus with a history: backfilled series, the results of recording rules, and the alerts that fired."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

LOOKBACK = 30
"""Seconds. Backfilled series have no staleness markers; a window of two scrape intervals replaces them."""
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

Series = tuple[dict[str, str], list[tuple[float, float]]]
"""Labels, and samples as time and value."""


class RefusedError(AssertionError):
    """Prometheus refuses a query; the message has the reason."""


class Prometheus:
    """The server on a folder of blocks; nothing is scraped."""

    def __init__(self, data: Path, *flags: str, lookback: int = LOOKBACK) -> None:
        self.data = data
        self._flags = (*flags, f"--query.lookback-delta={lookback}s")
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start serving; returns when the server is ready."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        config = self.data.with_name("prometheus.yml")
        config.write_text("global: {}\n", encoding="utf-8")
        self.url = f"http://127.0.0.1:{port}"
        log = self.data.with_name("prometheus.log").open("ab")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self.data}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{port}",
                *self._flags,
            ],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        log.close()
        self._wait_until_ready()

    @property
    def pid(self) -> int:
        """The number of the running process.

        Raises:
            AssertionError: the server does not run.
        """
        assert self._process is not None
        return self._process.pid

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("prometheus is not ready; see prometheus.log next to its data")

    def stop(self) -> None:
        """Terminate the server and wait for it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(120)

    def ask(self, path: str, **parameters: Any) -> Any:
        """The `data` of a reply of the HTTP API.

        Raises:
            RefusedError: the reply is an error.
        """
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=300) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise RefusedError(f"{parameters}: {json.load(error).get('error')}") from error

    def instant(self, query: str, at: float) -> list[Any]:
        """The result of an instant query."""
        found = self.ask("query", query=query, time=at)
        return [found["result"]] if found["resultType"] == "scalar" else found["result"]

    def over(self, query: str, start: float, end: float, step: float) -> list[Series]:
        """The result of a range query."""
        result = self.ask("query_range", query=query, start=start, end=end, step=step)["result"]
        return [(one["metric"], [(float(at), float(value)) for at, value in one["values"]]) for one in result]

    def backfill(self, openmetrics: Path) -> None:
        """Add the samples of a file. The server must be stopped: it discovers new blocks only occasionally."""
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", openmetrics, self.data],
            check=True,
            capture_output=True,
        )


class Rule(NamedTuple):
    """A recording rule, or an alert, whose name is then `ALERTS`."""

    name: str
    expr: str
    labels: dict[str, str]
    alert: str = ""
    wait: float = 0.0
    keep: float = 0.0


def read_rules(places: Iterable[Path]) -> Iterator[Rule]:
    """The rules of these files."""
    for place in places:
        for group in yaml.safe_load(place.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                labels = rule.get("labels", {})
                if "record" in rule:
                    yield Rule(rule["record"], rule["expr"], labels)
                else:
                    times = (_seconds(str(rule.get(key, "0s"))) for key in ("for", "keep_firing_for"))
                    yield Rule("ALERTS", rule["expr"], labels, rule["alert"], *times)


def _seconds(text: str) -> float:
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhd])", text))


def evaluate(prometheus: Prometheus, rules: Sequence[Rule], start: float, end: float, step: float) -> None:
    """The series that the rules would have recorded, and when alerts would have fired. Rules on rules and on alerts come after these.

    A rule that reads its own past is evaluated without a past.
    """
    waiting = list(rules)
    while waiting:
        unmade = {rule.name for rule in waiting}
        ready = [rule for rule in waiting if not any(name in rule.expr for name in unmade - {rule.name})]
        assert ready, f"rules that depend on each other: {unmade}"
        place = prometheus.data.with_name(f"rules-{len(waiting)}.om")
        prometheus.start()
        try:
            made = [line for rule in ready for line in _made(prometheus, rule, start, end, step)]
        finally:
            prometheus.stop()
        place.write_text("\n".join([*made, "# EOF\n"]), encoding="utf-8")
        if made:
            prometheus.backfill(place)
        waiting = [rule for rule in waiting if rule not in ready]


def _made(prometheus: Prometheus, rule: Rule, start: float, end: float, step: float) -> Iterator[str]:
    for labels, samples in prometheus.over(rule.expr, start, end, step):
        own = {name: value for name, value in labels.items() if name != "__name__"} | rule.labels
        if rule.alert:
            own |= {"alertname": rule.alert}
            fired = list(_firing([at for at, _ in samples], rule, end, step))
            yield from _written("ALERTS", own | {"alertstate": "firing"}, [(at, 1.0) for at, _ in fired])
            yield from _written("ALERTS_FOR_STATE", own, fired)
        else:
            yield from _written(rule.name, own, samples)


def _written(name: str, labels: dict[str, str], samples: Iterable[tuple[float, float]]) -> Iterator[str]:
    written = ",".join(f'{label}="{value}"' for label, value in labels.items())
    yield from (f"{name}{{{written}}} {value} {at:.3f}" for at, value in samples)


def _firing(held: list[float], rule: Rule, end: float, step: float) -> Iterator[tuple[float, float]]:
    """When an alert fires whose condition held at these times, and since when it has been active: `ALERTS_FOR_STATE`."""
    times, since, fired, firing, active = set(held), math.inf, -math.inf, False, math.inf
    for number in range(round((end - held[0]) / step) + 1):
        at = held[0] + number * step
        since = min(since, at) if at in times else math.inf
        if at in times and (firing or at - since >= rule.wait):
            fired = at
        firing = at - fired <= (0 if at in times else rule.keep)
        active = min(active, since) if firing else math.inf
        if firing:
            yield at, active
