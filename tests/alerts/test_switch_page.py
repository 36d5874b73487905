"""Both ends of a link: a simulated host and its simulated switch, the exporters, Prometheus, Alertmanager: one storm, one page."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import servers
from alert_hooks import Alertmanager
from sonic_server import sonic_server
from test_end_to_end import alerts_of, configuration, failing_rules, firing, hasty_rules
from waiting import wait_until

pytestmark = pytest.mark.ci

SEED = 57
"""Its first storm begins after 20 s and lasts 3.3 s."""

BOTH, ALONE, CALM = "both-ends", "switch-alone", "calm-link"
"""Clusters: one with the host and its switch, one where the host has no exporter, and one without a storm."""


def of_cluster(cluster: str, instance: str, address: str, target: str = "") -> dict[str, Any]:
    """What Prometheus scrapes; with `target` it is a probe."""
    labels = {"cluster": cluster, "instance": instance} | ({"__param_target": target} if target else {})
    return {"targets": [address], "labels": labels}


def jobs(storming: str, quiet: str, switches: str) -> list[dict[str, Any]]:
    hosts = [of_cluster(BOTH, "gpu-057", storming), of_cluster(CALM, "gpu-001", quiet)]
    probes = [
        of_cluster(BOTH, "leaf-057", switches, "storming"),
        of_cluster(ALONE, "leaf-057", switches, "storming"),
        of_cluster(CALM, "leaf-001", switches, "quiet"),
    ]
    return [
        {"job_name": "roce", "static_configs": hosts},
        {"job_name": "roce-switches", "metrics_path": "/probe", "static_configs": probes},
    ]


@pytest.fixture(scope="module")
def monitored(alertmanager, tmp_path_factory) -> Iterator[servers.Running]:
    """A Prometheus that scrapes a storming host and its switch."""
    folder = tmp_path_factory.mktemp("switch-page")
    with ExitStack() as running:

        def serve(name: str, *flags: str, command: str = "serve") -> str:
            return running.enter_context(servers.exporter(folder / name, *flags, command=command)).address

        hosts, targets = {}, {}
        for name, scenario, seed in (("storming", "pfc-storm", SEED), ("quiet", "quiet", 1)):
            hosts[name] = serve(name, f"--host.simulate={scenario}", f"--host.simulate-seed={seed}")
            socket = running.enter_context(sonic_server(scenario, seed=seed))
            targets[name] = {"module": "sonic", "address": f"unix://{socket}"}
        file = folder / "switches.yml"
        file.write_text(json.dumps({"targets": targets, "limits": {"cache": "0"}}))
        switches = serve("switches", "--no-host", f"--switches.config={file}")
        rules = hasty_rules(folder)
        config = configuration(rules, alertmanager.url, jobs(hosts["storming"], hosts["quiet"], switches))
        prometheus = servers.prometheus(folder, config, "--rules.alert.resend-delay=1s")
        yield running.enter_context(prometheus)


def test_one_storm_seen_from_both_ends_is_one_page(monitored, alertmanager) -> None:
    """The host's alert has the reason. That of the switch fires as well, and is muted."""
    wait_until(lambda: "RocePfcStorm" in alerts_of(firing(alertmanager, BOTH)))
    wait_until(lambda: "RoceSwitchWatchdogTripped" in alertmanager.names(BOTH, "suppressed"))
    pages = firing(alertmanager, BOTH)
    assert len({page["groupKey"] for page in pages}) == 1
    assert {page["receiver"] for page in pages} == {"pager"}
    named = "Its switch port is leaf-057 Ethernet0. It tripped its PFC watchdog"
    wait_until(lambda: named in storm_text(alertmanager))


def storm_text(alertmanager: Alertmanager) -> str:
    """What Alertmanager shows of the storm; the text follows what becomes known after the alert began."""
    return " ".join(
        alert["annotations"]["summary"] + alert["annotations"]["description"]
        for alert in alertmanager.alerts(BOTH)
        if alert["labels"]["alertname"] == "RocePfcStorm"
    )


def test_where_the_host_has_no_exporter_the_page_names_the_neighbour(monitored, alertmanager) -> None:
    pages = wait_until(lambda: firing(alertmanager, ALONE))
    assert alerts_of(pages) == {"RoceSwitchWatchdogTripped"}
    assert len({page["groupKey"] for page in pages}) == 1
    (alert,) = pages[0]["alerts"]
    assert "leaf-057 Ethernet0" in alert["annotations"]["summary"]
    # The text follows what becomes known after the alert began.
    wait_until(lambda: "gpu-057" in told(alertmanager))


def told(alertmanager: Alertmanager) -> str:
    """The descriptions of the alerts on the switch whose host has no exporter."""
    return " ".join(alert["annotations"]["description"] for alert in alertmanager.alerts(ALONE))


def test_a_quiet_switch_next_to_them_has_no_alert(monitored, alertmanager) -> None:
    """Checked after the storms, so that there was enough time."""
    assert firing(alertmanager, BOTH)
    (links,) = monitored.query(f"count(link:roce_host_port:info{{cluster='{CALM}'}})")
    assert links["value"][1] == "4"
    assert not [
        alert["labels"] for alert in alertmanager.alerts(CALM) if alert["labels"]["severity"] != "info"
    ]


def test_no_rule_fails_on_the_series_of_a_switch(monitored) -> None:
    assert not failing_rules(monitored)
