"""Simulated hosts and switches, Prometheus with our rules, Alertmanager with our routes: a storm, from NIC and switch port to page."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import servers
import yaml
from alert_hooks import Alertmanager, rules_with
from alert_promtool import delivered, needed
from sonic_server import began, sonic_server
from waiting import wait_until

SEED = 1627
"""With this seed storms of 5 s and more begin after 23, 85, 156, 240 and 339 s."""


def hasty_rules(folder: Path) -> Path:
    """Our rules, of which pages and the victims do not wait: simulated storms last for seconds. What these do not build on is evaluated less often."""
    hasty = ("RocePfcStorm", "RocePfcStormWithoutCulprit", "RoceSwitchWatchdogTripped", "RocePortVictim")
    rules = rules_with(folder, {name: {"for": "0s", "keep_firing_for": "10s"} for name in hasty})
    whole, wanted = delivered(rules), needed(hasty, delivered(rules))
    quick = {id(rule) for group in wanted for rule in group["rules"]}
    groups = [group | {"interval": "1s"} for group in wanted]
    for group in whole:
        others = [rule for rule in group["rules"] if id(rule) not in quick]
        groups.append({"name": f"{group['name']}, others", "interval": "10s", "rules": others})
    rules.write_text(json.dumps({"groups": [group for group in groups if group["rules"]]}))
    return rules


ONE, MANY, BOTH, ALONE, CALM = "one", "many", "both-ends", "switch-alone", "calm"
"""Clusters: a host that storms, the same and three paused ones, a host with its switch, a switch whose host has no exporter, and quiet ones."""


def target(address: str, cluster: str, instance: str, probed: str = "") -> dict[str, Any]:
    """What Prometheus scrapes; with `probed` it is a probe of this target."""
    labels = {"cluster": cluster, "instance": instance} | ({"__param_target": probed} if probed else {})
    return {"targets": [address], "labels": labels}


def configuration(rules: Path, alertmanager: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """A Prometheus that evaluates each second. A scrape may take three, and yet none of the simulated storms is between two."""
    receiver = {"targets": [alertmanager.removeprefix("http://")]}
    return {
        "global": {"scrape_interval": "3s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "alerting": {"alertmanagers": [{"static_configs": [receiver]}]},
        "scrape_configs": jobs,
    }


@pytest.fixture(scope="module")
def prometheus(alertmanager, tmp_path_factory) -> Iterator[servers.Running]:
    """A Prometheus that scrapes all clusters. One simulated victim is scraped as three hosts, which are therefore paused at the same moment."""
    folder = tmp_path_factory.mktemp("end-to-end")
    with ExitStack() as running:

        def serve(name: str, *flags: str) -> servers.Running:
            return running.enter_context(servers.exporter(folder / name, *flags))

        hosts, leaves = {}, {}
        for scenario, seed in (("pfc-storm", SEED), ("victim", SEED), ("quiet", 1)):
            host = serve(scenario, f"--host.simulate={scenario}", f"--host.simulate-seed={seed}")
            hosts[scenario] = host.address
            if scenario != "victim":
                both = sonic_server(scenario, seed=seed, start=began(host, scenario, seed))
                leaves[scenario] = {"module": "sonic", "address": f"unix://{running.enter_context(both)}"}
        file = folder / "switches.yml"
        file.write_text(json.dumps({"targets": leaves, "limits": {"cache": "0"}}))
        switches = serve("switches", "--no-host", f"--switches.config={file}").address
        scraped = [
            target(hosts["pfc-storm"], ONE, "storming"),
            target(hosts["pfc-storm"], MANY, "storming"),
            *(target(hosts["victim"], MANY, f"held{number}") for number in (1, 2, 3)),
            target(hosts["pfc-storm"], BOTH, "gpu-1627"),
            target(hosts["quiet"], CALM, "gpu-001"),
        ]
        probed = [
            target(switches, BOTH, "leaf-1627", "pfc-storm"),
            target(switches, ALONE, "leaf-1627", "pfc-storm"),
            target(switches, CALM, "leaf-001", "quiet"),
        ]
        jobs = [
            {"job_name": "roce", "static_configs": scraped},
            {"job_name": "roce-switches", "metrics_path": "/probe", "static_configs": probed},
        ]
        config = configuration(hasty_rules(folder), alertmanager.url, jobs)
        yield started(running, folder, config)


def started(running: ExitStack, folder: Path, config: dict[str, Any]) -> servers.Running:
    """A Prometheus that knows the link before any alert can fire, like one that runs when a storm begins.

    Alerts that do not wait would otherwise name the switch alone at first where Prometheus starts slower than the simulated storm.
    """
    (rules,) = map(Path, config["rule_files"])
    whole = rules.read_text()
    groups = yaml.safe_load(whole)["groups"]
    for group in groups:
        group["rules"] = [rule for rule in group["rules"] if "record" in rule]
    rules.write_text(json.dumps({"groups": groups}))
    prometheus = running.enter_context(servers.prometheus(folder, config, "--rules.alert.resend-delay=1s"))
    wait_until(lambda: prometheus.query(f"link:roce_host:info{{cluster='{BOTH}'}}"))
    rules.write_text(whole)
    prometheus.process.send_signal(signal.SIGHUP)
    return prometheus


def firing(alertmanager: Alertmanager, cluster: str) -> list[dict[str, Any]]:
    """All firing pages about a cluster."""
    return [page for page in alertmanager.hooks.of("pager", cluster) if page["status"] == "firing"]


def alerts_of(pages: list[dict[str, Any]]) -> set[str]:
    return {alert["labels"]["alertname"] for page in pages for alert in page["alerts"]}


def test_no_rule_fails_on_the_series_that_the_exporters_serve(prometheus) -> None:
    def evaluated() -> list[dict[str, Any]]:
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        whole = any(rule["type"] == "alerting" for rule in rules)
        return rules if whole and all(rule["health"] != "unknown" for rule in rules) else []

    failing = [rule for rule in wait_until(evaluated) if rule["health"] != "ok"]
    assert [(rule["name"], rule.get("lastError")) for rule in failing] == []


def test_a_storm_on_one_host_is_one_page_that_names_all_and_ends(prometheus, alertmanager) -> None:
    pages = wait_until(lambda: firing(alertmanager, ONE))
    (alert,) = pages[0]["alerts"]
    assert alert["labels"]["alertname"] == "RocePfcStorm"
    text = alert["annotations"]["summary"] + alert["annotations"]["description"]
    for part in ("storming mlx5_0/1", "priority 3", "Hint: receiver_overwhelmed"):
        assert part in text
    ended = wait_until(
        lambda: [page for page in alertmanager.hooks.of("pager", ONE) if page["status"] == "resolved"]
    )
    assert alerts_of(ended) == {"RocePfcStorm"}


def test_a_storm_across_hosts_is_one_page_of_the_culprit(prometheus, alertmanager) -> None:
    """Its victims fire, and notify nobody. Their storms do not begin with that of the culprit here, so for a while no culprit is known."""
    wait_until(lambda: "RocePortVictim" in {one["labels"]["alertname"] for one in alertmanager.alerts(MANY)})
    wait_until(lambda: "RocePfcStorm" in alerts_of(firing(alertmanager, MANY)))
    pages = firing(alertmanager, MANY)
    assert alerts_of(pages) <= {"RocePfcStorm", "RocePfcStormWithoutCulprit"}
    named = {alert["labels"].get("instance") for page in pages for alert in page["alerts"]}
    assert named - {None} == {"storming"}
    assert "RocePortVictim" not in alerts_of(alertmanager.hooks.of("tickets", MANY))


def texts(alertmanager: Alertmanager, cluster: str, name: str) -> str:
    """What Alertmanager shows of an alert; the text follows what becomes known after the alert began."""
    return " ".join(
        alert["annotations"]["summary"] + alert["annotations"]["description"]
        for alert in alertmanager.alerts(cluster)
        if alert["labels"]["alertname"] == name
    )


def test_one_storm_seen_from_both_ends_is_one_page(prometheus, alertmanager) -> None:
    """The host's alert has the reason. That of the switch fires as well, and is muted."""
    wait_until(lambda: "RocePfcStorm" in alerts_of(firing(alertmanager, BOTH)))
    wait_until(lambda: "RoceSwitchWatchdogTripped" in alertmanager.names(BOTH, "suppressed"))
    pages = firing(alertmanager, BOTH)
    assert len({page["groupKey"] for page in pages}) == 1
    assert {page["receiver"] for page in pages} == {"pager"}
    named = "Its switch port is leaf-1627 Ethernet0. It tripped its PFC watchdog"
    wait_until(lambda: named in texts(alertmanager, BOTH, "RocePfcStorm"))


def test_where_the_host_has_no_exporter_the_page_names_the_neighbour(prometheus, alertmanager) -> None:
    pages = wait_until(lambda: firing(alertmanager, ALONE))
    assert alerts_of(pages) == {"RoceSwitchWatchdogTripped"}
    assert len({page["groupKey"] for page in pages}) == 1
    (alert,) = pages[0]["alerts"]
    assert "leaf-1627 Ethernet0" in alert["annotations"]["summary"]
    wait_until(lambda: "gpu-1627" in texts(alertmanager, ALONE, "RoceSwitchWatchdogTripped"))


def test_a_quiet_host_and_its_switch_next_to_them_stay_silent(prometheus, alertmanager) -> None:
    """Checked after the storms of the other hosts, so that there was enough time."""
    assert firing(alertmanager, ONE)
    assert firing(alertmanager, BOTH)
    (links,) = prometheus.query(f"count(link:roce_host_port:info{{cluster='{CALM}'}})")
    assert links["value"][1] == "4"
    assert not alertmanager.hooks.of("pager", CALM)
    assert not alertmanager.hooks.of("tickets", CALM)
    assert not [
        alert["labels"] for alert in alertmanager.alerts(CALM) if alert["labels"]["severity"] != "info"
    ]
