"""Service discovery: realistic targets get the labels cluster, instance, rack and role, and keep their addresses.

promtool discovers and relabels by itself: from files, and from an inventory over HTTP. DNS and Consul are not run here: their jobs
get targets with the labels that Prometheus documents for them, from a file. Kubernetes: test_kubernetes_discovery.py. promtool compares every target with every other, so only one test has ten thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deploy_tools import need
from fleet_targets import (
    PORT,
    Found,
    Host,
    Labels,
    from_file,
    hosts,
    inventory,
    job_of,
    netbox_group,
    relabelled,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci

FLEET = hosts(10_000)
FEW = hosts(90)
SOME = hosts(1_000)


def in_order(found: list[Found]) -> list[Labels]:
    return sorted((one.shown for one in found), key=lambda labels: labels["instance"])


@pytest.fixture(scope="module")
def promtool() -> str:
    return need("promtool", "prometheus")


def test_ten_thousand_hosts_of_an_inventory(promtool: str, tmp_path: Path) -> None:
    """Of an inventory over HTTP; what is planned or offline is not scraped."""
    idle = [netbox_group(Host(900, node), status) for node, status in enumerate(("planned", "offline"))]
    with inventory([netbox_group(host) for host in FLEET] + idle) as url:
        job = job_of("discovery.yml", "roce-http")
        job["http_sd_configs"][0]["url"] = url
        found = relabelled(promtool, job, tmp_path, len(FLEET) + len(idle))
    scraped = {one.labels["__address__"]: one.shown for one in found if one.labels}
    assert scraped == {f"{host.domain_name}:{PORT}": host.labels() for host in FLEET}
    dropped = {one.discovered["__meta_netbox_status"] for one in found if not one.labels}
    assert dropped == {"planned", "offline"}


def test_an_inventory_without_racks_leaves_them_to_the_names(promtool: str, tmp_path: Path) -> None:
    groups = [netbox_group(host) for host in FEW]
    for group in groups:
        for absent in ("rack", "role_slug"):
            del group["labels"][f"__meta_netbox_{absent}"]
    job = from_file(job_of("discovery.yml", "roce-http"), groups, tmp_path)
    found = relabelled(promtool, job, tmp_path, len(FEW))
    assert in_order(found) == [host.labels() for host in FEW]


@pytest.mark.parametrize(
    ("file", "job"), [("prometheus.yml", "roce"), ("discovery.yml", "roce-tls"), ("agent.yml", "roce")]
)
def test_hosts_of_a_file(promtool: str, tmp_path: Path, file: str, job: str) -> None:
    """By their names; one rack sets its own labels, and a host without a cluster belongs to `default`."""
    named = [host for host in SOME if host.rack]
    own = {"cluster": "fabric-b", "rack": "cage-1", "role": "stor"}
    groups: list[dict[str, Any]] = [
        {"targets": [f"{host.domain_name}:{PORT}" for host in named], "labels": {"cluster": "fabric-a"}},
        {"targets": [f"{host.address}:{PORT}" for host in SOME if not host.rack], "labels": own},
        {"targets": [f"login-01:{PORT}"]},
    ]
    config = from_file(job_of(file, job), groups, tmp_path)
    config.pop("tls_config", None)
    config.pop("basic_auth", None)
    for rule in config["relabel_configs"]:
        if rule.get("action") == "hashmod":
            rule["modulus"] = 1
    found = relabelled(promtool, config, tmp_path, len(SOME) + 1)
    labels = {one.labels["__address__"]: one.shown for one in found}
    assert len(labels) == len(SOME) + 1
    assert all(labels[f"{host.domain_name}:{PORT}"] == host.labels() for host in named)
    assert labels[f"10.0.0.1:{PORT}"].items() >= own.items()
    assert labels[f"login-01:{PORT}"] == {"cluster": "default", "instance": "login-01", "role": "login"}


def test_hosts_of_service_records(promtool: str, tmp_path: Path) -> None:
    record = "_roce-exporter._tcp.fabric-a.example.com"
    groups = [
        {
            "targets": [f"{host.domain_name}:{PORT}"],
            "labels": {"__meta_dns_name": record, "__meta_dns_srv_record_target": f"{host.domain_name}."},
        }
        for host in FEW
    ]
    job = job_of("discovery.yml", "roce-dns")
    assert job["dns_sd_configs"][0]["names"] == [record]
    found = relabelled(promtool, from_file(job, groups, tmp_path), tmp_path, len(FEW))
    assert in_order(found) == [host.labels() for host in FEW]


@pytest.mark.parametrize("metadata", [True, False])
def test_hosts_of_consul(promtool: str, tmp_path: Path, metadata: bool) -> None:
    def group(host: Host) -> dict[str, Any]:
        labels = {"__meta_consul_node": host.domain_name, "__meta_consul_dc": "fabric-a"}
        if metadata:
            labels["__meta_consul_service_metadata_rack"] = f"r{host.rack:03}"
            labels["__meta_consul_service_metadata_role"] = "gpu"
        return {"targets": [f"{host.address}:{PORT}"], "labels": labels}

    job = from_file(job_of("discovery.yml", "roce-consul"), [group(host) for host in FEW], tmp_path)
    found = relabelled(promtool, job, tmp_path, len(FEW))
    assert in_order(found) == [host.labels() for host in FEW]
