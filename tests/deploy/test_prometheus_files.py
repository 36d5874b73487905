"""The configurations for Prometheus: valid, and their relabelling does what their comments describe."""

import re
import shutil

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, ran
from servers import Running, prometheus
from tools import need
from waiting import wait_until

FOLDER = DEPLOY / "prometheus"
UNKNOWN_TO_DEBIAN = ("consul_sd_configs", "kubernetes_sd_configs")
"""Debian builds Prometheus without the clients of these; their own keys are not checked here, everything around them is."""


@pytest.mark.parametrize(
    "name",
    [
        *("prometheus.yml", "agent.yml", "sharding.yml", "switches-sharding.yml"),
        *("thanos/agent.yml", "cortex/agent.yml"),
    ],
)
def test_promtool_finds_nothing_wrong(name) -> None:
    flags = ["--agent"] if name.endswith("agent.yml") else []
    flags += ["--syntax-only"] if "/" in name else []  # there are no targets next to them
    done = ran(need("promtool"), "check", "config", *flags, FOLDER / name)
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stdout + done.stderr


def test_every_way_of_discovery_is_valid(tmp_path) -> None:
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
    done = ran(need("promtool"), "check", "config", "--syntax-only", tmp_path / "p.yml")
    assert done.returncode == 0, done.stderr


def labels_of_targets(server: Running, job: str = "roce") -> dict[str, dict[str, str]]:
    """The labels of each target of a job, by its address."""
    targets = server.ask("targets")["activeTargets"]
    return {
        one["discoveredLabels"]["__address__"]: {
            key: text for key, text in one["labels"].items() if key != "job"
        }
        for one in targets
        if one["scrapePool"] == job
    }


@pytest.mark.ci
def test_targets_are_labelled_and_scraped_as_documented(tmp_path) -> None:
    """By a real Prometheus; the examples' hosts, switches and machines with captures need not exist."""
    for folder in ("targets", "rules"):
        (tmp_path / folder).mkdir()
    for name in ("roce", "switches", "wire", "probe"):
        shutil.copy(FOLDER / f"targets/{name}.example.yml", tmp_path / f"targets/{name}.yml")
    for rules in (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml"):
        shutil.copy(rules, tmp_path / "rules")
    with prometheus(tmp_path, tmp_path / shutil.copy(FOLDER / "prometheus.yml", tmp_path)) as server:
        wait_until(lambda: len(server.ask("targets")["activeTargets"]) == 8)
        cluster = {"cluster": "fabric-a"}
        assert labels_of_targets(server) == {
            "gpu-r07-n01:10123": {"instance": "gpu-r07-n01", "role": "gpu", "rack": "r07", **cluster},
            "gpu-r07-n02:10123": {"instance": "gpu-r07-n02", "role": "gpu", "rack": "r07", **cluster},
            "stor-01.example.com:10123": {"instance": "stor-01", "role": "stor", "rack": "r01", **cluster},
        }
        assert {
            one["instance"]: one["cluster"] for one in labels_of_targets(server, "roce-switches").values()
        } == {"leaf1": "fabric-a", "spine1": "fabric-a"}
        assert list(labels_of_targets(server, "roce-wire").values()) == [{"instance": "probe-r07", **cluster}]
        probers = labels_of_targets(server, "roce-probe").values()
        assert sorted(probers, key=lambda one: one["instance"]) == [
            {"instance": f"gpu-r07-n0{number}", **cluster} for number in (1, 2)
        ]
        urls = {one["labels"]["instance"]: one["scrapeUrl"] for one in server.ask("targets")["activeTargets"]}
        assert urls["leaf1"] == "http://localhost:10124/probe?target=leaf1"
        assert urls["spine1"] == "http://localhost:10124/probe?target=spine1"
        assert urls["probe-r07"] == "http://probe-r07.example.com:10125/metrics"
        groups = {group["name"] for group in server.ask("rules")["groups"]}
        assert {"roce-storm", "roce-dashboards"} <= groups
    shared = yaml.safe_load((ROOT / "alerts/thresholds.yml").read_text())["shared"]
    for job in ("roce-wire", "roce-probe"):
        assert re.fullmatch(shared[f"{job[5:]}_jobs"], job), "the alerts expect this job"


@pytest.mark.ci
def test_each_switch_has_one_of_the_processes(tmp_path) -> None:
    names = [f"leaf{number}" for number in range(40)]
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets/switches.yml").write_text(yaml.safe_dump([{"targets": names}]))
    path = tmp_path / shutil.copy(FOLDER / "switches-sharding.yml", tmp_path)
    with prometheus(tmp_path, path) as server:
        wait_until(lambda: len(server.ask("targets")["activeTargets"]) == 2 * len(names))
        targets = server.ask("targets")["activeTargets"]
    for job, processes in (("roce-switches-two", 2), ("roce-switches-four", 4)):
        urls = {one["labels"]["instance"]: one["scrapeUrl"] for one in targets if one["scrapePool"] == job}
        assert sorted(urls) == sorted(names)
        places = {url.removesuffix(f"/probe?target={name}") for name, url in urls.items()}
        assert places == {f"http://switches-{number}.example.com:10124" for number in range(processes)}
