"""The compose demonstration, without an engine: its files are valid, the mounted files exist, and its chain works.

Not tested: that the public images can be fetched, and Grafana's start (no package has it).
"""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_servers import running
from deploy_tools import COMMAND, DEPLOY, ROOT, printed, tool_environment
from servers import prometheus
from tools import need
from waiting import wait_until

from roce_exporter.cli.options import parse_options
from roce_exporter.switches.targets import read_switches_file

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


@pytest.mark.ci
def test_the_compose_specification_is_kept() -> None:
    checker = tool_environment("compose") / "check-jsonschema"
    printed(checker, "--builtin-schema=vendor.compose-spec", COMPOSE)


def test_everything_mounted_exists_and_what_is_published_is_on_loopback_only() -> None:
    sources = [source for name in SERVICES if "volumes" in SERVICES[name] for source in mounts(name).values()]
    assert len(sources) >= 4
    assert all(source.exists() and source.is_relative_to(ROOT) for source in sources)
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
    file = mounts("switches")[str(Path(options.switches_config).parent)] / Path(options.switches_config).name
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


@pytest.mark.ci
def test_the_chain_works(tmp_path: Path) -> None:
    """The same commands and files on this machine, on free ports: every host is scraped, and the storm pages."""
    for service, root in (("alertmanager", "/etc/alertmanager"), ("prometheus", "/etc/prometheus")):
        for place, source in mounts(service).items():
            target = tmp_path / service / Path(place).relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    printed(need("amtool"), "check-config", tmp_path / "alertmanager/alertmanager.yml")
    file = tmp_path / "prometheus/prometheus.yml"
    config = yaml.safe_load(file.read_text())
    config["global"] |= {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"}
    config["alerting"] = {}
    file.write_text(yaml.safe_dump(config))
    (rules,) = file.parent.rglob("roce.rules.yml")
    rules.write_text(
        rules.read_text().replace("for: 1m\n", "for: 0s\n")
    )  # a simulated storm lasts for seconds
    with ExitStack() as stack:
        groups = []
        for group in TARGETS:
            flags = EXPORTERS[group["labels"]["instance"]]["command"][1:-1]
            daemon = stack.enter_context(running([str(COMMAND)], flags=flags))
            groups.append({"targets": [f"127.0.0.1:{daemon.port}"], "labels": group["labels"]})
        (file.parent / "targets/roce.yml").write_text(yaml.safe_dump(groups))
        server = stack.enter_context(prometheus(file.parent, file))
        wait_until(lambda: sum(server.values("up").values()) == len(EXPORTERS))
        roles = server.values("count by (role, rack, cluster) (up)")
        assert {tuple(value for _, value in sorted(labels)) for labels in roles} == {
            ("simulated", "r01", "gpu"),
            ("simulated", "r02", "stor"),
        }
        storm = 'ALERTS{alertname="RocePfcStorm",alertstate="firing",instance="gpu-r01-n01"}'
        wait_until(lambda: server.values(storm))
