"""Prometheus with our rules and the exporter: it scrapes and evaluates every two seconds."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.parse
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from daemon import Exporter, get, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ALERTS = Path(__file__).parents[3] / "alerts"
TOOLS = Path(os.environ.get("ROCELAB_TOOLS", "/nowhere"))
PROMETHEUS = "127.0.0.1:9090"
ALERTMANAGER = "127.0.0.1:9093"


@contextmanager
def server(folder: Path, name: str, *flags: str) -> Iterator[None]:
    """A server of $ROCELAB_TOOLS that runs during the block; its log is in the folder."""
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen((str(TOOLS / name), *flags), stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def prometheus(folder: Path, exporter: Exporter) -> Iterator[None]:
    """Prometheus with our rules, which scrapes this exporter and notifies Alertmanager; ready after its first scrape."""
    target = {"targets": [exporter.address], "labels": {"instance": "lab", "cluster": "guest"}}
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [ALERTMANAGER]}]}]},
        "scrape_configs": [{"job_name": "roce", "static_configs": [target]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    rules = yaml.safe_load((ALERTS / "roce.rules.yml").read_text())
    for group in rules["groups"]:
        group.pop("interval", None)
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    flags = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    with server(folder, "prometheus", *flags, f"--web.listen-address={PROMETHEUS}"):
        wait_until(lambda: query("roce_port_up"), 100)
        yield


def query(expression: str) -> list[dict[str, Any]]:
    """The series of an instant query; empty without a reply."""
    text = urllib.parse.quote(expression)
    try:
        answer = json.loads(get(f"http://{PROMETHEUS}/api/v1/query?query={text}"))
    except OSError:
        return []
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def alerts() -> set[tuple[str, str]]:
    """The conditions that are true now, firing or pending: names, each with the RDMA device."""
    found = [series["metric"] for series in query("ALERTS")]
    return {(labels["alertname"], labels.get("device", "")) for labels in found}
