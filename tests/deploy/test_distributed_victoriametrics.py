"""Two vmagents, a store, two vmalerts and Alertmanager, with the files of deploy/prometheus/victoriametrics: the store is killed in a storm.

The programs are those of tests/newest.sh. Debian 12's are older than `keep_firing_for`, which our rules need (vmalert 1.91).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
import yaml
from deploy_storm import (
    FIRST,
    SECOND,
    Clusters,
    Process,
    all_ready,
    hasty_rules,
    placed,
    scene,
    storm_alerts,
)
from deploy_tools import DEPLOY, ROOT, fetch, need, wait_until
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.nightly

FOLDER = DEPLOY / "prometheus/victoriametrics"
SCRAPE = 2
SHIPPED_STORE = "http://victoria-metrics:8428"


def program(name: str) -> str:
    """A program of VictoriaMetrics."""
    return need(name, "victoria-metrics")


@pytest.fixture(scope="module")
def vmalert() -> str:
    """A vmalert that accepts our rules; an older one skips the tests, except in tests/newest.sh."""
    found = program("vmalert")
    command = [found, "-dryRun", f"-rule={ROOT / 'alerts/roce.rules.yml'}"]
    verdict = subprocess.run(command, capture_output=True, text=True, check=False)
    if verdict.returncode and not os.environ.get("ROCE_NEWEST"):
        pytest.skip(
            f"this vmalert is older than 1.91 (tests/newest.sh has a newer one): {verdict.stderr[-300:]}"
        )
    assert verdict.returncode == 0, verdict.stderr
    return found


def shipped(folder: Path, name: str, program: str, places: Mapping[str, str]) -> Process:
    """A server with its file of flags, as a unit of systemd starts it."""
    port = free_port()
    text = placed((FOLDER / f"{name}.env").read_text(), places)
    flags = dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))
    flags["httpListenAddr"] = f"127.0.0.1:{port}"
    log = folder / f"{name}-{port}.log"
    return Process([program, "-envflag.enable"], port, log, "/health", flags)


def store(folder: Path) -> Process:
    """The storage."""
    places = {
        "/var/lib/victoria-metrics": str(folder / "store"),
        "minScrapeInterval=15s": f"minScrapeInterval={SCRAPE}s",
    }
    return shipped(folder, "victoria-metrics", program("victoria-metrics"), places)


def agents(folder: Path, store: Process, clusters: Clusters) -> tuple[Process, ...]:
    """Two vmagents that scrape all hosts every two seconds."""
    (folder / "targets").mkdir()
    (folder / "targets/roce.yml").write_text(yaml.safe_dump(clusters.targets()))
    config = folder / "scrape.yml"
    haste = {"interval: 15s": f"interval: {SCRAPE}s", "timeout: 10s": f"timeout: {SCRAPE}s"}
    config.write_text(placed((FOLDER / "scrape.yml").read_text(), haste))

    def agent(name: str) -> Process:
        places = {
            "/etc/vmagent/scrape.yml": str(config),
            "cluster_name=a": f"cluster_name={name}",
            SHIPPED_STORE: store.server.url,
            "/var/lib/vmagent": str(folder / f"agent-{name}"),
        }
        return shipped(folder, "vmagent", program("vmagent"), places)

    return agent("a"), agent("b")


def rulers(folder: Path, vmalert: str, store: Process, alertmanager: str) -> tuple[Process, ...]:
    """Two vmalerts with all our rules."""
    places = {
        "/etc/vmalert/rules": str(hasty_rules(folder)),
        "evaluationInterval=15s": "evaluationInterval=5s",
        SHIPPED_STORE: store.server.url,
        "http://alertmanager:9093": alertmanager,
    }
    return tuple(shipped(folder, "vmalert", vmalert, places) for _ in range(2))


def sample_times(store: Process, selector: str, begin: float, end: float) -> list[float]:
    """When the samples of one series were scraped."""
    query = {"match[]": selector, "start": f"{begin:.3f}", "end": f"{end:.3f}"}
    text = fetch(f"{store.server.url}/api/v1/export?{urlencode(query)}")
    (line,) = text.splitlines()
    return [milliseconds / 1000 for milliseconds in json.loads(line)["timestamps"]]


@pytest.mark.timeout(2400)  # the alerts of both storms must end, on a machine that may be busy
def test_a_store_that_is_killed_in_a_storm_loses_no_page_and_sends_none_twice(
    tmp_path: Path, vmalert: str
) -> None:
    """One storm is paged before the store is killed; another begins while it is away."""
    with scene(tmp_path) as storms, ExitStack() as stack:
        storage = store(tmp_path)
        stack.enter_context(all_ready(storage))
        both_agents = agents(tmp_path, storage, storms.clusters)
        both_rulers = rulers(tmp_path, vmalert, storage, storms.alertmanager.url)
        stack.enter_context(all_ready(*both_agents, *both_rulers))
        storms.clusters.start_storm(FIRST)
        storms.page(FIRST, "firing")
        killed = time.time()
        storage.kill()
        storms.clusters.start_storm(SECOND)
        wait_until(lambda: storms.clusters.storm_has_begun(SECOND), "the second storm begins")
        back = time.time()
        storage.start()
        storage.wait()

        storms.page(SECOND, "firing")
        storms.end(lambda: any(map(storm_alerts, both_rulers)))
        check_samples(storage, killed, back)


def check_samples(store: Process, killed: float, back: float) -> None:
    """The agents delivered what they scraped while the store was away, and the store keeps one copy of what both scraped."""
    times = sample_times(store, f'up{{instance="{FIRST}-quiet"}}', killed, back)
    assert len(times) > (back - killed) / SCRAPE / 2, "what was scraped meanwhile is missing"
    intervals = [int(at / SCRAPE) for at in times]
    assert len(intervals) == len(set(intervals)), "two samples of one interval"
