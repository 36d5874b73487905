"""The configurations for Prometheus: valid, and their relabelling does what their comments describe."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_servers import prometheus
from deploy_tools import DEPLOY, ROOT, need, wait_until
from ports import free_port

from roce_exporter.cli.wire_flags import WIRE_PORT

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from deploy_servers import Server

FOLDER = DEPLOY / "prometheus"
UNKNOWN_TO_DEBIAN = ("consul_sd_configs", "kubernetes_sd_configs")
"""Debian builds Prometheus without the clients of these; their own keys are not checked here, everything around them is."""


@pytest.mark.parametrize(
    ("name", "flags"), [("prometheus.yml", ()), ("agent.yml", ("--agent",)), ("sharding.yml", ())]
)
def test_promtool_finds_nothing_wrong(name: str, flags: tuple[str, ...]) -> None:
    command = [need("promtool", "prometheus"), "check", "config", *flags, FOLDER / name]
    verdict = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verdict.returncode == 0, verdict.stderr
    assert "WARN" not in verdict.stdout + verdict.stderr


def test_every_way_of_discovery_is_valid(tmp_path: Path) -> None:
    config = yaml.safe_load((FOLDER / "discovery.yml").read_text())
    ways = {key for job in config["scrape_configs"] for key in job if key.endswith("_sd_configs")}
    assert len(ways) >= 5
    for job in config["scrape_configs"]:
        assert job["job_name"].startswith("roce")
        for unknown in UNKNOWN_TO_DEBIAN:
            job.pop(unknown, None)
        for path in ("ca_file", "password_file"):
            for section in ("tls_config", "basic_auth"):
                if path in job.get(section, {}):
                    job[section][path] = str(tmp_path / path)
                    (tmp_path / path).touch()
    (tmp_path / "p.yml").write_text(yaml.safe_dump(config))
    command = [need("promtool", "prometheus"), "check", "config", "--syntax-only", tmp_path / "p.yml"]
    verdict = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verdict.returncode == 0, verdict.stderr


def in_place(folder: Path) -> Path:
    """prometheus.yml with rules and example targets in the places that it refers to."""
    shutil.copy(FOLDER / "prometheus.yml", folder)
    (folder / "targets").mkdir()
    (folder / "rules").mkdir()
    shutil.copy(FOLDER / "targets/roce.example.yml", folder / "targets/roce.yml")
    for rules in (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml"):
        shutil.copy(rules, folder / "rules")
    return folder / "prometheus.yml"


def test_switches_are_probed_by_their_names(tmp_path: Path) -> None:
    """By a real Prometheus; nothing answers at the exporter's address."""
    config = in_place(tmp_path)
    shutil.copy(FOLDER / "targets/switches.example.yml", tmp_path / "targets/switches.yml")
    with prometheus(need("prometheus", "prometheus"), config, tmp_path) as server:
        wait_until(lambda: len(server.ask("/api/v1/targets")["activeTargets"]) == 5, "five targets")
        found = {
            target["labels"]["instance"]: (target["scrapeUrl"], target["labels"])
            for target in server.ask("/api/v1/targets")["activeTargets"]
            if target["scrapePool"] == "roce-switches"
        }
    assert {name: url for name, (url, _) in found.items()} == {
        name: f"http://localhost:10124/probe?target={name}" for name in ("leaf1", "spine1")
    }
    assert found["leaf1"][1]["cluster"] == "fabric-a"


def test_captures_are_scraped_under_the_name_of_their_machine(tmp_path: Path) -> None:
    """By a real Prometheus, in the job that the alerts on captures expect; the example's machine need not exist."""
    config = in_place(tmp_path)
    shutil.copy(FOLDER / "targets/wire.example.yml", tmp_path / "targets/wire.yml")
    with prometheus(need("prometheus", "prometheus"), config, tmp_path) as server:
        wait_until(lambda: len(server.ask("/api/v1/targets")["activeTargets"]) == 4, "four targets")
        (found,) = (
            target
            for target in server.ask("/api/v1/targets")["activeTargets"]
            if target["scrapePool"] == "roce-wire"
        )
    assert found["scrapeUrl"] == f"http://probe-r07.example.com:{WIRE_PORT}/metrics"
    assert found["labels"] == {"cluster": "fabric-a", "instance": "probe-r07", "job": "roce-wire"}
    jobs = yaml.safe_load((ROOT / "alerts/thresholds.yml").read_text())["shared"]["wire_jobs"]
    assert re.fullmatch(jobs, "roce-wire")


def labels_of_targets(told: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {
        target["discoveredLabels"]["__address__"]: {
            key: value for key, value in target["labels"].items() if key != "job"
        }
        for target in told["activeTargets"]
    }


def test_hosts_are_labelled_as_documented(tmp_path: Path) -> None:
    """By a real Prometheus; the example's hosts need not exist."""
    with prometheus(need("prometheus", "prometheus"), in_place(tmp_path), tmp_path) as server:
        wait_until(lambda: len(server.ask("/api/v1/targets")["activeTargets"]) == 3, "three targets")
        assert labels_of_targets(server.ask("/api/v1/targets")) == {
            "gpu-r07-n01:10123": {
                "instance": "gpu-r07-n01",
                "cluster": "fabric-a",
                "role": "gpu",
                "rack": "r07",
            },
            "gpu-r07-n02:10123": {
                "instance": "gpu-r07-n02",
                "cluster": "fabric-a",
                "role": "gpu",
                "rack": "r07",
            },
            "stor-01.example.com:10123": {
                "instance": "stor-01",
                "cluster": "fabric-a",
                "role": "stor",
                "rack": "r01",
            },
        }
        groups = {group["name"] for group in server.ask("/api/v1/rules")["groups"]}
        assert {"roce-storm", "roce-dashboards"} <= groups


def test_four_agents_share_the_hosts_without_gap_or_overlap(tmp_path: Path) -> None:
    addresses = [f"gpu-r{rack:02}-n{node:02}:10123" for rack in range(8) for node in range(10)]
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets/roce.yml").write_text(yaml.safe_dump([{"targets": addresses}]))
    with ExitStack() as stack:
        agents = [stack.enter_context(agent(tmp_path, number)) for number in range(4)]
        for server in agents:
            wait_until(
                lambda server=server: count_of_targets(server) == len(addresses), "all hosts are known"
            )
        shares = [set(labels_of_targets(server.ask("/api/v1/targets"))) for server in agents]
    assert sorted(address for share in shares for address in share) == addresses
    assert min(map(len, shares)) > 8


def agent(folder: Path, number: int) -> AbstractContextManager[Server]:
    """The agent of this number."""
    config = yaml.safe_load((FOLDER / "agent.yml").read_text())
    rules = config["scrape_configs"][0]["relabel_configs"]
    next(rule for rule in rules if rule.get("action") == "keep")["regex"] = str(number)
    config["remote_write"][0]["url"] = f"http://127.0.0.1:{free_port()}/"
    path = folder / f"agent-{number}.yml"
    path.write_text(yaml.safe_dump(config))
    own = folder / str(number)
    own.mkdir()
    program = need("prometheus", "prometheus")
    return prometheus(program, path, own, storage="agent")


def count_of_targets(server: Server) -> int:
    """How many hosts an agent scrapes or leaves to others."""
    told = server.ask("/api/v1/targets")
    return len(told["activeTargets"]) + len(told["droppedTargets"])
