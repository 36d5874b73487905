"""Simulated hosts, a switch, Prometheus with our rules, Alertmanager with our routes: a storm, from NIC and switch to page."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import servers
import yaml
from alert_hooks import ALERTS, answers
from alert_switch import Switch
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from alert_hooks import Alertmanager

PAGES = {"RocePfcStormFabricWide", "RocePfcStormTransmitted"}


def hasty_rules(folder: Path) -> Path:
    """Our rules with windows of seconds, made by our generator, so that a storm ends within the test."""
    for name in ("generate.py", "thresholds.yml"):
        shutil.copy(ALERTS / name, folder)
    shutil.copytree(ALERTS / "rules", folder / "rules")
    thresholds = yaml.safe_load((folder / "thresholds.yml").read_text())
    thresholds["shared"] |= {
        "short": "10s",
        "medium": "15s",
        "long": "30s",
        "slow_interval": "1s",
        "rare_interval": "1s",
    }
    thresholds["alerts"]["RocePfcStormReceived"]["keep_firing_for"] = "1s"
    for alert in PAGES:
        thresholds["alerts"][alert]["keep_firing_for"] = "10s"
    thresholds["alerts"]["RoceSwitchWatchdogTripped"] |= {"for": "5s", "keep_firing_for": "1s"}
    thresholds["alerts"]["RoceLosslessPriorityDrops"] |= {"window": "15s", "keep_firing_for": "1s"}
    (folder / "thresholds.yml").write_text(yaml.safe_dump(thresholds))
    subprocess.run([sys.executable, str(folder / "generate.py")], check=True)
    return folder / "roce.rules.yml"


def target(address: str, cluster: str, instance: str) -> dict[str, Any]:
    return {"targets": [address], "labels": {"cluster": cluster, "instance": instance}}


def configuration(rules: Path, alertmanager: str, exporters: dict[str, str], switch: str) -> dict[str, Any]:
    """One storming host in cluster one, with its switch; a storming host and three paused ones in many; a quiet one in calm.

    In cluster bare only the switch is scraped, so that the host behind its port is unknown.

    One simulated victim is scraped as three hosts, which are therefore paused at the same moment.
    """
    targets = [
        target(exporters["pfc-storm"], "one", "storming"),
        target(exporters["pfc-storm"], "many", "storming"),
        *(target(exporters["victim"], "many", f"held{number}") for number in (1, 2, 3)),
        target(exporters["quiet"], "calm", "quiet"),
    ]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}]
        },
        "scrape_configs": [
            {"job_name": "roce", "static_configs": targets},
            {
                "job_name": "roce-switch",
                "metrics_path": "/probe",
                "static_configs": [target(switch, "one", "leaf1"), target(switch, "bare", "leaf1")],
            },
        ],
    }


@pytest.fixture(scope="module")
def prometheus(alertmanager: Alertmanager, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus that scrapes the simulated hosts."""
    folder = tmp_path_factory.mktemp("end-to-end")
    rules = hasty_rules(folder)
    with ExitStack() as running:
        exporters = {
            scenario: running.enter_context(
                servers.exporter(folder / scenario, f"--host.simulate={scenario}")
            ).address
            for scenario in ("pfc-storm", "victim", "quiet")
        }
        switch = Switch(exporters["pfc-storm"])
        running.callback(switch.close)
        config = configuration(rules, alertmanager.url, exporters, switch.address)
        yield running.enter_context(servers.prometheus(folder, config)).url


def firing(alertmanager: Alertmanager, cluster: str) -> list[dict[str, Any]]:
    """All firing pages about a cluster."""
    return [page for page in alertmanager.hooks.of("pager", cluster) if page["status"] == "firing"]


TRIPPED = "Its switch port leaf1 Ethernet0 tripped its PFC watchdog"


def alerts_of(pages: list[dict[str, Any]]) -> set[str]:
    return {alert["labels"]["alertname"] for page in pages for alert in page["alerts"]}


def test_no_rule_fails_on_the_series_that_the_exporter_serves(prometheus: str) -> None:
    """Each rule has been evaluated without an error."""

    def evaluated() -> list[dict[str, Any]]:
        groups = json.loads(answers(f"{prometheus}/api/v1/rules")())["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if rules and all(rule["health"] != "unknown" for rule in rules) else []

    rules = wait_until(evaluated, 300)
    assert not [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"]


def test_the_switch_that_tripped_is_part_of_that_page(prometheus: str, alertmanager: Alertmanager) -> None:
    """The alert on the watchdog fires and is muted; drops of a tripped queue are no ticket."""
    wait_until(lambda: "RoceSwitchWatchdogTripped" in alertmanager.names("one", "suppressed"), 300)
    assert alerts_of(firing(alertmanager, "one")) == {"RocePfcStormTransmitted"}
    # The notification has this text if the trip was scraped before it was sent; the alert itself has it in any case.
    wait_until(lambda: TRIPPED in answers(f"{prometheus}/api/v1/alerts")().decode(), 300)
    assert "RoceSwitchLosslessQueueDrops" not in alerts_of(alertmanager.hooks.of("tickets", "one"))


def test_a_switch_alone_is_one_page_too(prometheus: str, alertmanager: Alertmanager) -> None:
    """The host behind the port has no exporter: the page names the switch port and its neighbour."""
    pages = wait_until(lambda: firing(alertmanager, "bare"), 300)
    assert alerts_of(pages) == {"RoceSwitchWatchdogTripped"}
    text = pages[0]["alerts"][0]["annotations"]
    assert text["summary"] == "The PFC watchdog of leaf1 Ethernet0 tripped on queue 3."
    assert "Its neighbour is gpu-1" in text["description"]


def test_a_storm_on_one_host_is_one_page_that_names_all_and_ends(
    prometheus: str, alertmanager: Alertmanager
) -> None:
    pages = wait_until(lambda: firing(alertmanager, "one"), 300)
    (alert,) = pages[0]["alerts"]
    assert alert["labels"]["alertname"] == "RocePfcStormTransmitted"
    text = alert["annotations"]["summary"] + alert["annotations"]["description"]
    for part in ("storming mlx5_0/1", "priority 3", "Hint: receiver_overwhelmed"):
        assert part in text
    ended = wait_until(
        lambda: [page for page in alertmanager.hooks.of("pager", "one") if page["status"] == "resolved"], 120
    )
    assert alerts_of(ended) == {"RocePfcStormTransmitted"}


def test_a_storm_across_hosts_is_one_incident_that_shows_the_culprit(
    prometheus: str, alertmanager: Alertmanager
) -> None:
    """The tickets of its victims are muted."""
    wait_until(lambda: alerts_of(firing(alertmanager, "many")) == PAGES, 300)
    pages = firing(alertmanager, "many")
    assert len({page["groupKey"] for page in pages}) == 1
    culprits = {
        alert["labels"]["instance"]
        for page in pages
        for alert in page["alerts"]
        if alert["labels"]["alertname"] == "RocePfcStormTransmitted"
    }
    assert culprits == {"storming"}
    tickets = [page for page in alertmanager.hooks.of("tickets", "many") if page["status"] == "firing"]
    assert "RocePfcStormReceived" not in alerts_of(tickets)


def test_a_quiet_host_next_to_them_stays_silent(prometheus: str, alertmanager: Alertmanager) -> None:
    """Checked after the storms of the other hosts, so that there was enough time."""
    assert firing(alertmanager, "one")
    assert not alertmanager.hooks.of("pager", "calm")
    assert not alertmanager.hooks.of("tickets", "calm")
    assert not [
        alert["labels"] for alert in alertmanager.alerts("calm") if alert["labels"]["severity"] != "info"
    ]
