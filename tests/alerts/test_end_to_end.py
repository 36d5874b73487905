"""Simulated hosts, Prometheus with our rules, Alertmanager with our routes: a storm, from NIC to page."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import servers
from alert_hooks import Alertmanager, rules_with
from waiting import wait_until

pytestmark = pytest.mark.timeout(
    300
)  # the simulated storm begins after 20 s, and its alert ends 15 s after it

SOON = "--host.simulate-seed=57"
"""With this seed a storm begins after 20 s and lasts 3.3 s."""


def hasty_rules(folder: Path) -> Path:
    """Our rules, of which pages and the victims do not wait: simulated storms last for seconds."""
    hasty = ("RocePfcStorm", "RocePfcStormWithoutCulprit", "RoceSwitchWatchdogTripped", "RocePortVictim")
    return rules_with(folder, {name: {"for": "0s", "keep_firing_for": "10s"} for name in hasty})


def target(address: str, cluster: str, instance: str) -> dict[str, Any]:
    return {"targets": [address], "labels": {"cluster": cluster, "instance": instance}}


def configuration(rules: Path, alertmanager: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """A Prometheus that does everything each second."""
    receiver = {"targets": [alertmanager.removeprefix("http://")]}
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "alerting": {"alertmanagers": [{"static_configs": [receiver]}]},
        "scrape_configs": jobs,
    }


@pytest.fixture(scope="module")
def prometheus(alertmanager, tmp_path_factory) -> Iterator[servers.Running]:
    """A Prometheus that scrapes a storming host, the same and three paused ones in another cluster, and a quiet one.

    One simulated victim is scraped as three hosts, which are therefore paused at the same moment.
    """
    folder = tmp_path_factory.mktemp("end-to-end")
    with ExitStack() as running:
        exporters = {
            scenario: running.enter_context(
                servers.exporter(folder / scenario, f"--host.simulate={scenario}", SOON)
            ).address
            for scenario in ("pfc-storm", "victim", "quiet")
        }
        targets = [
            target(exporters["pfc-storm"], "one", "storming"),
            target(exporters["pfc-storm"], "many", "storming"),
            *(target(exporters["victim"], "many", f"held{number}") for number in (1, 2, 3)),
            target(exporters["quiet"], "calm", "quiet"),
        ]
        jobs = [{"job_name": "roce", "static_configs": targets}]
        config = configuration(hasty_rules(folder), alertmanager.url, jobs)
        yield running.enter_context(servers.prometheus(folder, config))


def firing(alertmanager: Alertmanager, cluster: str) -> list[dict[str, Any]]:
    """All firing pages about a cluster."""
    return [page for page in alertmanager.hooks.of("pager", cluster) if page["status"] == "firing"]


def alerts_of(pages: list[dict[str, Any]]) -> set[str]:
    return {alert["labels"]["alertname"] for page in pages for alert in page["alerts"]}


def failing_rules(prometheus: servers.Running) -> list[tuple[str, str]]:
    """The rules whose evaluation fails, after all have been evaluated."""

    def evaluated() -> list[dict[str, Any]]:
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        return rules if rules and all(rule["health"] != "unknown" for rule in rules) else []

    return [(rule["name"], rule.get("lastError")) for rule in wait_until(evaluated) if rule["health"] != "ok"]


def test_no_rule_fails_on_the_series_that_the_exporter_serves(prometheus) -> None:
    assert not failing_rules(prometheus)


def test_a_storm_on_one_host_is_one_page_that_names_all_and_ends(prometheus, alertmanager) -> None:
    pages = wait_until(lambda: firing(alertmanager, "one"))
    (alert,) = pages[0]["alerts"]
    assert alert["labels"]["alertname"] == "RocePfcStorm"
    text = alert["annotations"]["summary"] + alert["annotations"]["description"]
    for part in ("storming mlx5_0/1", "priority 3", "Hint: receiver_overwhelmed"):
        assert part in text
    ended = wait_until(
        lambda: [page for page in alertmanager.hooks.of("pager", "one") if page["status"] == "resolved"]
    )
    assert alerts_of(ended) == {"RocePfcStorm"}


def test_a_storm_across_hosts_is_one_page_of_the_culprit(prometheus, alertmanager) -> None:
    """Its victims fire, and notify nobody. Their storms do not begin with that of the culprit here, so for a while no culprit is known."""
    wait_until(
        lambda: "RocePortVictim" in {one["labels"]["alertname"] for one in alertmanager.alerts("many")}
    )
    wait_until(lambda: "RocePfcStorm" in alerts_of(firing(alertmanager, "many")))
    pages = firing(alertmanager, "many")
    assert alerts_of(pages) <= {"RocePfcStorm", "RocePfcStormWithoutCulprit"}
    named = {alert["labels"].get("instance") for page in pages for alert in page["alerts"]}
    assert named - {None} == {"storming"}
    assert "RocePortVictim" not in alerts_of(alertmanager.hooks.of("tickets", "many"))


def test_a_quiet_host_next_to_them_stays_silent(prometheus, alertmanager) -> None:
    """Checked after the storms of the other hosts, so that there was enough time."""
    assert firing(alertmanager, "one")
    assert not alertmanager.hooks.of("pager", "calm")
    assert not alertmanager.hooks.of("tickets", "calm")
    assert not [
        alert["labels"] for alert in alertmanager.alerts("calm") if alert["labels"]["severity"] != "info"
    ]
