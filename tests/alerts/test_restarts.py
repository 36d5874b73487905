"""What a restart of Prometheus does to a storm, with a real Prometheus and a real Alertmanager.

One constructed host serves a page that the test changes. Prometheus is stopped as systemd stops it, and its data remain.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import servers
import yaml
from alert_hooks import Alertmanager, rules_with
from http_answers import Answers, answering
from waiting import wait_until

pytestmark = pytest.mark.ci

NAME = "RocePfcStorm"
QUEUE = 'device="mlx5_0",port="1",netdev="ens1f0np0",priority="3",direction="transmit"'
STORM = f"roce_pfc_storm_active{{{QUEUE}}} 1\nroce_pfc_storms_total{{{QUEUE}}} 1\n"
CALM = STORM.replace("} 1\n", "} 0\n", 1)
RESEND = "--rules.alert.resend-delay=5s"
"""Alertmanager resolves an alert that was not sent for four of these."""


class Site:
    """One host, its Prometheus with our rules on storms, and what Alertmanager sends about it."""

    def __init__(self, folder: Path, alertmanager: Alertmanager, host: Answers, keep: str) -> None:
        self.cluster, self.alertmanager, self.folder = folder.name, alertmanager, folder
        self.serve(host, STORM)
        host.headers["Content-Type"] = "text/plain; version=0.0.4"
        rules = yaml.safe_load(rules_with(folder, {NAME: {"for": "0s", "keep_firing_for": keep}}).read_text())
        kept = [group for group in rules["groups"] if group["name"] == "roce-storm"]
        (folder / "storm.yml").write_text(yaml.safe_dump({"groups": kept}))
        target = {"targets": [host.url.removeprefix("http://")], "labels": {"cluster": self.cluster}}
        receiver = {"targets": [alertmanager.url.removeprefix("http://")]}
        self.config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(folder / "storm.yml")],
            "alerting": {"alertmanagers": [{"static_configs": [receiver]}]},
            "scrape_configs": [{"job_name": "roce", "static_configs": [target]}],
        }

    def serve(self, host: Answers, text: str) -> None:
        """The host's page from now on."""
        host.reply = lambda _: (200, text.encode())

    @contextmanager
    def prometheus(self) -> Iterator[servers.Running]:
        """A Prometheus that is ready."""
        with servers.prometheus(self.folder, self.config, RESEND) as running:
            yield running
            running.stop()

    def messages(self, status: str) -> list[dict[str, Any]]:
        """The pages about the alerts of this site."""
        return [one for one in self.alertmanager.hooks.of("pager", self.cluster) if one["status"] == status]

    def settle(self) -> None:
        """Wait until Alertmanager has sent two later pages, one after the other: longer than its interval for one group."""
        for number in range(2):
            later = f"{self.cluster}-later-{number}"
            labels = {"alertname": "RoceLater", "severity": "critical", "cluster": later}
            sent = {"labels": labels, "startsAt": datetime.now(UTC).isoformat()}
            self.alertmanager.ask("/api/v2/alerts", [sent])
            wait_until(lambda later=later: self.alertmanager.hooks.of("pager", later))


@contextmanager
def site(folder: Path, alertmanager: Alertmanager, keep: str = "1h") -> Iterator[tuple[Site, Answers]]:
    """A site whose host has a storm."""
    with answering(lambda _: (200, b"")) as host:
        yield Site(folder, alertmanager, host, keep), host


def alert(running: servers.Running) -> dict[str, Any]:
    """The alert, if it fires."""
    found = [one for one in running.ask("alerts")["alerts"] if one["labels"]["alertname"] == NAME]
    assert len(found) <= 1
    return found[0] if found and found[0]["state"] == "firing" else {}


def sent(running: servers.Running) -> float:
    """Alerts that this process has sent to Alertmanager."""
    lines = running.get().decode().splitlines()
    return sum(
        float(line.split()[-1]) for line in lines if line.startswith("prometheus_notifications_sent_total")
    )


def active(running: servers.Running) -> bool:
    """Whether the condition of the alert is true now."""
    rules = [rule for group in running.ask("rules")["groups"] for rule in group["rules"]]
    return bool(running.query(next(rule["query"] for rule in rules if rule["name"] == NAME)))


def test_a_storm_is_one_page_across_a_restart(tmp_path: Path, alertmanager: Alertmanager) -> None:
    """It fires after the restart as before, and Alertmanager knows it already."""
    with site(tmp_path, alertmanager) as (place, _):
        with place.prometheus():
            wait_until(lambda: place.messages("firing"))
        with place.prometheus() as running:
            wait_until(lambda: alert(running) and sent(running) >= 1)
            place.settle()
            assert len(place.messages("firing")) == 1
            assert not place.messages("resolved")


def test_a_storm_that_ends_while_prometheus_is_down_is_resolved(
    tmp_path: Path, alertmanager: Alertmanager
) -> None:
    """It fires until the first scrape, by the samples from before, and then for `keep_firing_for`."""
    with site(tmp_path, alertmanager, keep="2s") as (place, host):
        with place.prometheus():
            wait_until(lambda: place.messages("firing"))
        place.serve(host, CALM)
        with place.prometheus() as running:
            # longer than the five minutes in which a storm is recent: a busy machine may lose scrapes around its begin
            wait_until(lambda: place.messages("resolved"), 600)
            assert not alert(running)


def test_a_kept_alert_bridges_a_gap_and_is_forgotten_by_a_restart(
    tmp_path: Path, alertmanager: Alertmanager
) -> None:
    """Two storms within `keep_firing_for` are one page. Prometheus does not save since when it keeps an alert."""
    with site(tmp_path, alertmanager) as (place, host):
        with place.prometheus() as running:
            first = wait_until(lambda: alert(running))
            wait_until(lambda: place.messages("firing"))
            for page, state in ((CALM, False), (STORM, True), (CALM, False)):
                place.serve(host, page)
                wait_until(lambda state=state: active(running) == state)
                assert alert(running)["activeAt"] == first["activeAt"]
            assert not place.messages("resolved")
        with place.prometheus() as running:
            wait_until(lambda: place.messages("resolved"))
            assert not alert(running)
    assert len(place.messages("firing")) == 1
