"""What a restart of Prometheus does to alerts, with a real Prometheus and a real Alertmanager.

One constructed host serves a page that the test changes. The rules are ours, of the groups storm and exporter, with other durations.
Alerts that have been active for a while are given to Prometheus as its own series ALERTS_FOR_STATE, so that no test has to wait.
Prometheus restores an alert if it is active at its second evaluation, which is before the first scrape here: samples from before the
restart count for five minutes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import servers
import yaml
from alert_hooks import ALERTS, answers, need
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from alert_hooks import Alertmanager

pytestmark = pytest.mark.ci

GROUPS = ("roce-storm", "roce-exporter")
"""With the rules that can wait, here at every evaluation."""
PORT = 'device="mlx5_0",port="1",netdev="ens1f0np0"'
QUEUE = f'{PORT},priority="3",direction="transmit"'
BROKEN = f'roce_exporter_source_up{{{PORT},source="hw_counters"}} 0\n'
STORM = f"roce_pfc_storm_active{{{QUEUE}}} 1\nroce_pfc_storms_total{{{QUEUE}}} 1\n"
CALM = STORM.replace("} 1\n", "} 0\n", 1)
MINUTES = 60.0
SHORT_RESEND = "--rules.alert.resend-delay=5s"
"""Alertmanager resolves an alert that was not sent for four of these."""
RESEND = "--rules.alert.resend-delay=20s"
"""A minute by default. The first alerts after a start get lost, because Prometheus discovers Alertmanager seconds later."""


class Page(BaseHTTPRequestHandler):
    """What the host serves."""

    text = ""

    def do_GET(self) -> None:
        """Reply with the page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *words: object) -> None:
        """Log nothing."""


@dataclass
class Site:
    """A folder with the configuration and the data of one Prometheus, and the host that it scrapes."""

    folder: Path
    page: type[Page]
    cluster: str
    alertmanager: Alertmanager

    @contextmanager
    def prometheus(self, *flags: str) -> Iterator[Running]:
        """A Prometheus that is ready; it is stopped as systemd stops it, and its data remain."""
        began = time.time()
        with servers.prometheus(self.folder, self.folder / "prometheus.yml", *flags) as running:
            yield Running(running.url, began)
            running.stop()

    def messages(self, receiver: str, status: str) -> list[dict[str, Any]]:
        """The messages to a receiver about the alerts of this site."""
        sent = self.alertmanager.hooks.of(receiver, self.cluster)
        return [message for message in sent if message["status"] == status]

    def settle(self, receiver: str) -> None:
        """Wait until Alertmanager has sent two later messages, one after the other: longer than its interval for one group."""
        severity = {"pager": "page", "tickets": "ticket"}[receiver]
        for number in range(2):
            later = f"{self.cluster}-{receiver}-later-{number}-{len(self.alertmanager.hooks.sent)}"
            labels = {"alertname": "RoceLater", "severity": severity, "cluster": later}
            now = datetime.now(UTC).isoformat()
            self.alertmanager.ask("/api/v2/alerts", [{"labels": labels, "startsAt": now}])
            wait_until(lambda later=later: self.alertmanager.hooks.of(receiver, later))


@dataclass(frozen=True)
class Running:
    """A running Prometheus."""

    url: str
    began: float

    def ask(self, path: str) -> Any:
        """The data of a reply."""
        return json.loads(answers(f"{self.url}/api/v1/{path}")())["data"]

    def alert(self, name: str) -> dict[str, Any] | None:
        """The alert of this name, if it is pending or firing."""
        found = [one for one in self.ask("alerts")["alerts"] if one["labels"]["alertname"] == name]
        assert len(found) <= 1
        return found[0] if found else None

    def in_state(self, name: str, state: str) -> dict[str, Any]:
        """The alert, once it has this state."""
        wait_until(lambda: (self.alert(name) or {}).get("state") == state)
        return self.alert(name) or {}

    def restored(self, group: str) -> None:
        """Wait until a group has been evaluated four times: it restores alerts after the second."""
        wait_until(lambda: self.evaluations(group) >= 4)

    def evaluations(self, group: str) -> float:
        """How often a group has been evaluated by this process."""
        text = answers(f"{self.url}/metrics")().decode()
        lines = [line for line in text.splitlines() if line.startswith("prometheus_rule_evaluations_total")]
        rules = next(one["rules"] for one in self.ask("rules")["groups"] if one["name"] == group)
        return sum(float(line.split()[-1]) for line in lines if f';{group}"' in line) / len(rules)

    def condition(self, name: str) -> list[Any]:
        """What the alert's expression returns now."""
        rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
        expression = next(rule["query"] for rule in rules if rule["name"] == name)
        return list(self.ask("query?query=" + urllib.parse.quote(expression))["result"])

    def sent(self) -> float:
        """Alerts that this process has sent to Alertmanager."""
        text = answers(f"{self.url}/metrics")().decode()
        lines = [line for line in text.splitlines() if line.startswith("prometheus_notifications_sent_total")]
        return sum(float(line.split()[-1]) for line in lines)


def seconds(alert: dict[str, Any]) -> float:
    """When an alert became active, as Unix time; Prometheus writes nanoseconds, which Python does not read."""
    whole, _, fraction = alert["activeAt"].removesuffix("Z").partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{fraction or 0}")


def write_rules(folder: Path, source_for: str, keep: str) -> None:
    """Our rules by our generator, with these durations for RoceSourceBroken and RocePfcStormTransmitted."""
    shutil.copytree(ALERTS, folder / "alerts")
    place = folder / "alerts/thresholds.yml"
    thresholds = yaml.safe_load(place.read_text())
    thresholds["shared"] |= {"short": "10s", "medium": "15s", "long": "30s"}
    thresholds["alerts"]["RoceSourceBroken"]["for"] = source_for
    thresholds["alerts"]["RocePfcStormTransmitted"]["keep_firing_for"] = keep
    place.write_text(yaml.safe_dump(thresholds))
    subprocess.run([sys.executable, folder / "alerts/generate.py"], check=True)
    rules = yaml.safe_load((folder / "alerts/roce.rules.yml").read_text())
    kept = [
        {
            "name": name,
            "rules": [
                rule
                for one in rules["groups"]
                if one["name"] in (name, f"{name}-slow", f"{name}-rare")
                for rule in one["rules"]
            ],
        }
        for name in GROUPS
    ]
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": kept}))


@contextmanager
def site(
    folder: Path, alertmanager: Alertmanager, page: str, source_for: str = "10m", keep: str = "1h"
) -> Iterator[Site]:
    """A site whose host serves a page."""
    own = type("OwnPage", (Page,), {"text": page})
    cluster = folder.name
    write_rules(folder, source_for, keep)
    with ThreadingHTTPServer(("127.0.0.1", 0), own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        labels = {"cluster": cluster, "instance": "gpu-r07-n12"}
        targets = [{"targets": [f"127.0.0.1:{server.server_port}"], "labels": labels}]
        address = alertmanager.url.removeprefix("http://")
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [address]}]}]},
            "scrape_configs": [{"job_name": "roce", "static_configs": targets}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        yield Site(folder, own, cluster, alertmanager)
        server.shutdown()


def active_since(place: Site, age: float) -> float:
    """Give Prometheus the history of a source that is broken since `age` seconds; the Unix time of that.

    It has the series and Prometheus' own record of the alert, until a few seconds ago. A first Prometheus shows the labels; its data
    are removed.
    """
    with place.prometheus() as first:
        alert = wait_until(lambda: first.alert("RoceSourceBroken"))["labels"]
    shutil.rmtree(place.folder / "data")
    series = {key: value for key, value in alert.items() if key not in ("alertname", "scope", "severity")}
    now = int(time.time())
    began = int(now - age)
    whens = range(began, now - 5, 15)
    lines = ["# TYPE ALERTS_FOR_STATE gauge"]
    lines += [f"ALERTS_FOR_STATE{written(alert)} {began} {when}" for when in whens]
    lines += ["# TYPE roce_exporter_source_up gauge"]
    lines += [f"roce_exporter_source_up{written(series)} 0 {when}" for when in whens]
    history = place.folder / "history.om"
    history.write_text("\n".join([*lines, "# EOF\n"]))
    command = [need("promtool"), "tsdb", "create-blocks-from", "openmetrics", history, place.folder / "data"]
    subprocess.run(command, check=True, capture_output=True)
    return began


def written(labels: dict[str, str]) -> str:
    """Labels as in a page of metrics."""
    return "{" + ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items()) + "}"


def test_a_pending_alert_keeps_its_time(tmp_path: Path, alertmanager: Alertmanager) -> None:
    """Only the time in which Prometheus did not run is added: 20 minutes of one hour stay 20 minutes."""
    with site(tmp_path, alertmanager, BROKEN, source_for="1h") as place:
        before = active_since(place, 20 * MINUTES)
        for _ in range(2):
            with place.prometheus() as running:
                running.restored("roce-exporter")
                alert = running.in_state("RoceSourceBroken", "pending")
                assert before <= seconds(alert) < running.began - 10 * MINUTES
                before = seconds(alert)
    assert not alertmanager.hooks.of("tickets", place.cluster)


def test_a_firing_alert_is_neither_resolved_nor_sent_again(
    tmp_path: Path, alertmanager: Alertmanager
) -> None:
    with site(tmp_path, alertmanager, BROKEN) as place:
        active_since(place, 20 * MINUTES)
        with place.prometheus(RESEND):
            wait_until(lambda: place.messages("tickets", "firing"))
        with place.prometheus(RESEND) as running:
            running.in_state("RoceSourceBroken", "firing")
            wait_until(lambda: running.sent() >= 1)
            place.settle("tickets")
    assert len(alertmanager.hooks.of("tickets", place.cluster)) == 1


@pytest.mark.parametrize(
    ("flags", "state"), [((), "pending"), (("--rules.alert.for-grace-period=1m",), "firing")]
)
def test_a_for_shorter_than_the_grace_period_starts_again(
    tmp_path: Path, alertmanager: Alertmanager, flags: tuple[str, ...], state: str
) -> None:
    """By default that is every alert with a `for` below ten minutes; the documented flag keeps those from a minute on."""
    with site(tmp_path, alertmanager, BROKEN, source_for="5m") as place:
        before = active_since(place, 20 * MINUTES)
        with place.prometheus(*flags) as running:
            running.restored("roce-exporter")
            alert = running.in_state("RoceSourceBroken", state)
            assert (seconds(alert) >= running.began) == (state == "pending")
            assert seconds(alert) >= before


def test_a_storm_is_one_page_across_a_restart(tmp_path: Path, alertmanager: Alertmanager) -> None:
    """It has no `for`: it fires at the first evaluation after the restart, and Alertmanager knows it already."""
    with site(tmp_path, alertmanager, STORM) as place:
        with place.prometheus(RESEND):
            wait_until(lambda: place.messages("pager", "firing"))
        with place.prometheus(RESEND) as running:
            running.in_state("RocePfcStormTransmitted", "firing")
            wait_until(lambda: running.sent() >= 1)
            place.settle("pager")
            assert len(alertmanager.hooks.of("pager", place.cluster)) == 1


@pytest.mark.parametrize("long", [False, True])
def test_a_storm_that_ends_while_prometheus_is_down_is_resolved(
    tmp_path: Path, alertmanager: Alertmanager, *, long: bool
) -> None:
    """After a short downtime it fires until the first scrape, by the samples from before, and then for `keep_firing_for`.

    After a long one (the data are removed here) Alertmanager resolves it, four times the resend delay after it was last sent.
    """
    with site(tmp_path, alertmanager, STORM, keep="2s") as place:
        with place.prometheus(SHORT_RESEND):
            wait_until(lambda: place.messages("pager", "firing"))
        place.page.text = CALM
        if long:
            shutil.rmtree(place.folder / "data")
        with place.prometheus(SHORT_RESEND) as running:
            # Longer than the five minutes in which a storm is recent: a busy machine may lose scrapes around its begin.
            wait_until(lambda: place.messages("pager", "resolved"), 600)
            assert running.alert("RocePfcStormTransmitted") is None
            assert (running.sent() == 0) == long


def test_a_kept_alert_bridges_a_gap_and_is_forgotten_by_a_restart(
    tmp_path: Path, alertmanager: Alertmanager
) -> None:
    """Two storms within `keep_firing_for` are one page. Prometheus does not save since when it keeps an alert."""
    name = "RocePfcStormTransmitted"
    with site(tmp_path, alertmanager, STORM) as place:
        with place.prometheus(SHORT_RESEND) as running:
            first = running.in_state(name, "firing")
            wait_until(lambda: place.messages("pager", "firing"))
            for page, active in ((CALM, False), (STORM, True), (CALM, False)):
                place.page.text = page
                wait_until(lambda active=active, running=running: bool(running.condition(name)) == active)
                assert running.in_state(name, "firing")["activeAt"] == first["activeAt"]
            assert not place.messages("pager", "resolved")
        with place.prometheus(SHORT_RESEND) as running:
            running.restored("roce-storm")
            assert running.alert(name) is None
            wait_until(lambda: place.messages("pager", "resolved"))
    assert len(place.messages("pager", "firing")) == 1
