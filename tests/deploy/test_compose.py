"""The compose demonstration, without an engine: its files are valid, the mounted files exist, and its chain works.

Not tested: that the public images can be fetched, and Grafana's start (no package has it).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_daemon import running
from deploy_servers import prometheus
from deploy_tools import COMMAND, DEPLOY, ROOT, need, tool_environment, wait_until

from roce_exporter.cli.options import parse_options
from roce_exporter.switches.targets_file import read_switches_file

pytestmark = pytest.mark.ci

COMPOSE = DEPLOY / "compose/compose.yaml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
EXPORTERS = {name: service for name, service in SERVICES.items() if service.get("image") == "roce-exporter"}
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
TARGETS = yaml.safe_load((DEPLOY / "compose/targets.yml").read_text())


def mounts(service: str) -> dict[str, Path]:
    """Files and folders of this repository, by their path inside the service."""
    found = {}
    for volume in SERVICES[service]["volumes"]:
        source, place, *mode = volume.split(":")
        if source.startswith("."):
            assert mode == ["ro"]
            found[place] = (COMPOSE.parent / source).resolve()
    return found


def test_the_compose_specification_is_kept() -> None:
    checker = tool_environment("compose") / "check-jsonschema"
    command = [checker, "--builtin-schema=vendor.compose-spec", COMPOSE]
    verdict = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verdict.returncode == 0, verdict.stdout


@pytest.mark.parametrize("service", [name for name in SERVICES if "volumes" in SERVICES[name]])
def test_everything_mounted_exists(service: str) -> None:
    for source in mounts(service).values():
        assert source.exists()
        assert source.is_relative_to(ROOT)


def test_everything_is_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) >= 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_exporters_run_without_privileges() -> None:
    assert len(EXPORTERS) == 3
    for service in EXPORTERS.values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert (COMPOSE.parent / service["build"]["context"] / service["build"]["dockerfile"]).exists()


def test_the_service_for_switches_fits_prometheus_and_its_own_file() -> None:
    service = SERVICES["switches"]
    assert service["profiles"] == ["switches"]
    assert (ROOT / service["build"]["args"]["LOCK"]).exists()
    options = parse_options(service["command"])
    file = mounts("switches")[str(Path(options.config_file).parent)] / Path(options.config_file).name
    assert list(read_switches_file(str(file)).targets) == ["spine1"]
    (job,) = (one for one in PROMETHEUS["scrape_configs"] if one["job_name"] == "roce-switches")
    addresses = [
        rule["replacement"] for rule in job["relabel_configs"] if rule["target_label"] == "__address__"
    ]
    assert addresses == [f"localhost{options.web_listen_address[0]}"]


def test_prometheus_has_each_exporter_under_its_name() -> None:
    listening = {
        name: parse_options(service["command"]).web_listen_address[0].rpartition(":")[2]
        for name, service in EXPORTERS.items()
    }
    told = {group["labels"]["instance"]: group["targets"][0].rpartition(":")[2] for group in TARGETS}
    assert told == listening


def test_grafana_finds_the_dashboards_and_prometheus() -> None:
    grafana = mounts("grafana")
    provisioning = grafana["/etc/grafana/provisioning"]
    (provider,) = yaml.safe_load((provisioning / "dashboards/roce.yml").read_text())["providers"]
    folder = grafana[provider["options"]["path"]]
    assert len(list(folder.glob("roce-*.json"))) >= 5
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://localhost:9090"
    assert SERVICES["grafana"]["network_mode"] == "service:prometheus"
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert json.loads((folder / Path(home).name).read_text())["uid"] == "roce-fleet"


def test_alertmanager_accepts_its_configuration(tmp_path: Path) -> None:
    for place, source in mounts("alertmanager").items():
        target = tmp_path / Path(place).relative_to("/etc/alertmanager")
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    amtool = need("amtool", "prometheus-alertmanager")
    subprocess.run(
        [amtool, "check-config", tmp_path / "alertmanager.yml"], check=True, stdout=subprocess.PIPE
    )


def test_the_chain_works(tmp_path: Path) -> None:
    """The same commands and files on this machine, on free ports: every host is scraped, and the storm pages."""
    program = need("prometheus", "prometheus")
    for place, source in mounts("prometheus").items():
        target = tmp_path / Path(place).relative_to("/etc/prometheus")
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)
    config = yaml.safe_load((tmp_path / "prometheus.yml").read_text())
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["alerting"] = {}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    with ExitStack() as stack:
        groups = []
        for group in TARGETS:
            flags = EXPORTERS[group["labels"]["instance"]]["command"][1:-1]
            daemon = stack.enter_context(running([str(COMMAND)], flags=flags))
            groups.append({"targets": [f"127.0.0.1:{daemon.port}"], "labels": group["labels"]})
        (tmp_path / "targets/roce.yml").write_text(yaml.safe_dump(groups))
        server = stack.enter_context(prometheus(program, tmp_path / "prometheus.yml", tmp_path))
        wait_until(lambda: sum(server.values("up").values()) == len(EXPORTERS), "all hosts are up")
        roles = server.values("count by (role, rack, cluster) (up)")
        assert {tuple(value for _, value in sorted(labels)) for labels in roles} == {
            ("simulated", "r01", "gpu"),
            ("simulated", "r02", "stor"),
        }
        storm = 'ALERTS{alertname=~"RocePfcStorm.+",alertstate="firing",instance="gpu-r01-n01"}'
        wait_until(lambda: server.values(storm), "the storm of gpu-r01-n01 pages", 90)
