"""Service discovery and sharding: realistic targets get cluster, instance, rack and role, and each host is scraped by exactly one agent.

promtool discovers and relabels by itself: from files, and from an inventory over HTTP. DNS, Consul and Kubernetes are not run here: their jobs
get targets with the labels that Prometheus documents for them, from a file.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from deploy_tools import DEPLOY, fetch, fetch_json, printed, ran
from http_answers import answering
from servers import prometheus
from tools import need
from waiting import wait_until

pytestmark = pytest.mark.ci

PORT = 10123
FOLDER = DEPLOY / "prometheus"
NODES_PER_RACK = 40
LONGEST = 60
"""Seconds for which promtool may discover at most: it always takes all the time that it is given."""

Labels = dict[str, str]


class Host(NamedTuple):
    """A host of the inventory."""

    rack: int
    node: int

    @property
    def name(self) -> str:
        """The name without its domain."""
        return f"gpu-r{self.rack:03}-n{self.node:02}"

    @property
    def domain_name(self) -> str:
        """The name with its domain."""
        return f"{self.name}.example.com"

    @property
    def address(self) -> str:
        """The IPv4 address."""
        return f"10.{self.rack // 200}.{self.rack % 200}.{self.node + 1}"

    def labels(self, cluster: str = "fabric-a") -> Labels:
        """The four labels that every target must have."""
        return {"cluster": cluster, "instance": self.name, "rack": f"r{self.rack:03}", "role": "gpu"}


def hosts(count: int) -> list[Host]:
    """The first hosts of the fleet, in racks of forty."""
    return [Host(number // NODES_PER_RACK, number % NODES_PER_RACK) for number in range(count)]


def job_of(file: str, name: str) -> dict[str, Any]:
    """A scrape job of one of our configurations."""
    config = yaml.safe_load((FOLDER / file).read_text())
    return next(job for job in config["scrape_configs"] if job["job_name"] == name)


def from_file(job: dict[str, Any], groups: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The same job with these targets from a file, in place of its own discovery."""
    place = folder / f"{job['job_name']}-targets.json"
    place.write_text(json.dumps(groups))
    own = {key: value for key, value in job.items() if not key.endswith("_sd_configs")}
    return own | {"file_sd_configs": [{"files": [str(place)]}]}


class Found(NamedTuple):
    """A discovered target and its labels after relabelling; none if it was dropped."""

    discovered: Labels
    labels: Labels

    @property
    def shown(self) -> Labels:
        """The labels of its series, without the job."""
        return {key: value for key, value in self.labels.items() if not key.startswith("__") and key != "job"}


def relabelled(job: dict[str, Any], folder: Path, count: int) -> list[Found]:
    """What `promtool check service-discovery` prints for a job: all of `count` targets.

    promtool stops after its timeout, no matter what has been found, so it gets more time until nothing is missing.
    """
    place = folder / "discovered.yml"
    place.write_text(yaml.safe_dump({"scrape_configs": [job]}))
    seconds = 1
    while True:
        flags = ("check", "service-discovery", f"--timeout={seconds}s", place, job["job_name"])
        done = ran(need("promtool"), *flags)
        assert done.returncode == 0, done.stderr[-2000:]
        found = [
            Found(one["discoveredLabels"], one.get("labels") or {}) for one in json.loads(done.stdout) or ()
        ]
        if len(found) >= count or seconds >= LONGEST:
            assert len(found) == count, done.stderr[-2000:]
            return found
        seconds *= 3


def targets_of(url: str) -> list[Found]:
    """The targets that a running Prometheus or vmagent scrapes."""
    active = fetch_json(f"{url}/api/v1/targets?state=active")["data"]["activeTargets"]
    return [Found(one["discoveredLabels"], one["labels"]) for one in active]


FLEET = hosts(10_000)
FEW = hosts(90)


def netbox(host: Host, status: str = "active", *without: str) -> dict[str, Any]:
    """A device as netbox-plugin-prometheus-sd serves it: one group of one target, a name without a port."""
    facts = {
        "id": str(host.rack * 100 + host.node),
        "name": host.domain_name,
        "status": status,
        "model": "Device",
        "role": "GPU",
        "role_slug": "gpu",
        "site": "Fabric A",
        "site_slug": "fabric-a",
        "rack": f"r{host.rack:03}",
        "primary_ip4": host.address,
    }
    labels = {f"__meta_netbox_{key}": value for key, value in facts.items() if key not in without}
    return {"targets": [host.domain_name], "labels": labels}


def dns(host: Host) -> dict[str, Any]:
    labels = {
        "__meta_dns_name": "_roce-exporter._tcp.fabric-a.example.com",
        "__meta_dns_srv_record_target": f"{host.domain_name}.",
    }
    return {"targets": [f"{host.domain_name}:{PORT}"], "labels": labels}


def consul(host: Host, **metadata: str) -> dict[str, Any]:
    labels = {"__meta_consul_node": host.domain_name, "__meta_consul_dc": "fabric-a"}
    labels |= {f"__meta_consul_service_metadata_{key}": value for key, value in metadata.items()}
    return {"targets": [f"{host.address}:{PORT}"], "labels": labels}


def kubernetes(host: Host, port: str = "metrics", phase: str = "Running", **labels: str) -> dict[str, Any]:
    """A port of a pod of the chart; `role: pod` makes a target of each port of each container."""
    facts = {
        "namespace": "monitoring",
        "pod_name": f"roce-exporter-{host.name}",
        "pod_phase": phase,
        "pod_node_name": host.domain_name,
        "pod_host_ip": host.address,
        "pod_container_port_name": port,
        "pod_container_port_number": str(PORT),
        "pod_label_app_kubernetes_io_name": "roce-exporter",
        **{f"node_label_{key}": value for key, value in labels.items()},
    }
    meta = {f"__meta_kubernetes_{key}": value for key, value in facts.items()}
    return {"targets": [f"{host.address}:{PORT}"], "labels": meta}


def test_pods_of_kubernetes(tmp_path) -> None:
    """Not a sidecar's port, nor a pod that was evicted; the labels of the node where it has them."""
    labels = {"topology_kubernetes_io_rack": "r001", "example_com_role": "gpu"}
    groups = [kubernetes(host, **(labels if host.rack == 1 else {})) for host in FEW]
    groups += [kubernetes(Host(900, 0), port="admin"), kubernetes(Host(900, 1), phase="Failed")]
    found = relabelled(
        from_file(job_of("discovery.yml", "roce-kubernetes"), groups, tmp_path), tmp_path, len(groups)
    )
    shown = {one.labels["__address__"]: one.shown for one in found if one.labels}
    assert shown == {f"{host.address}:{PORT}": host.labels() for host in FEW}


def test_hosts_of_an_inventory(tmp_path) -> None:
    """What is planned or offline is not scraped. The request is the one that Prometheus documents."""
    idle = [netbox(Host(900, node), status) for node, status in enumerate(("planned", "offline"))]
    groups = [netbox(host) for host in FEW] + idle
    job = job_of("discovery.yml", "roce-http")
    with answering(lambda _: (200, groups)) as inventory:
        inventory.headers["Content-Type"] = "application/json"
        job["http_sd_configs"][0]["url"] = inventory.url
        found = relabelled(job, tmp_path, len(groups))
        assert inventory.requests[0].headers["X-Prometheus-Refresh-Interval-Seconds"]
    scraped = {one.labels["__address__"]: one.shown for one in found if one.labels}
    assert scraped == {f"{host.domain_name}:{PORT}": host.labels() for host in FEW}
    dropped = {one.discovered["__meta_netbox_status"] for one in found if not one.labels}
    assert dropped == {"planned", "offline"}


@pytest.mark.parametrize(
    ("job", "groups"),
    [
        ("roce-http", [netbox(host, "active", "rack", "role_slug") for host in FEW]),
        ("roce-dns", [dns(host) for host in FEW]),
        ("roce-consul", [consul(host, rack=f"r{host.rack:03}", role="gpu") for host in FEW]),
        ("roce-consul", [consul(host) for host in FEW]),
    ],
    ids=["an inventory without racks", "service records", "Consul", "Consul without metadata"],
)
def test_what_a_discovery_does_not_say_is_in_the_names(tmp_path, job, groups) -> None:
    found = relabelled(from_file(job_of("discovery.yml", job), groups, tmp_path), tmp_path, len(FEW))
    shown = sorted((one.shown for one in found), key=lambda labels: labels["instance"])
    assert shown == [host.labels() for host in FEW]


@pytest.mark.parametrize(
    ("file", "job"), [("prometheus.yml", "roce"), ("discovery.yml", "roce-tls"), ("agent.yml", "roce")]
)
def test_hosts_of_a_file(tmp_path, file, job) -> None:
    """By their names; one rack sets its own labels, and a host without a cluster belongs to `default`."""
    named = [host for host in FEW if host.rack]
    own = {"cluster": "fabric-b", "rack": "cage-1", "role": "stor"}
    groups: list[dict[str, Any]] = [
        {"targets": [f"{host.domain_name}:{PORT}" for host in named], "labels": {"cluster": "fabric-a"}},
        {"targets": [f"{host.address}:{PORT}" for host in FEW if not host.rack], "labels": own},
        {"targets": [f"login-01:{PORT}"]},
    ]
    config = from_file(job_of(file, job), groups, tmp_path)
    for secret in ("tls_config", "basic_auth"):
        config.pop(secret, None)
    for rule in config["relabel_configs"]:
        if rule.get("action") == "hashmod":
            rule["modulus"] = 1
    labels = {one.labels["__address__"]: one.shown for one in relabelled(config, tmp_path, len(FEW) + 1)}
    assert len(labels) == len(FEW) + 1
    assert all(labels[f"{host.domain_name}:{PORT}"] == host.labels() for host in named)
    assert labels[f"10.0.0.1:{PORT}"].items() >= own.items()
    assert labels[f"login-01:{PORT}"] == {"cluster": "default", "instance": "login-01", "role": "login"}


# --- agents that divide the hosts

AGENTS = 4
Shares = dict[str, frozenset[str]]


def addresses() -> list[str]:
    return [f"{host.domain_name}:{PORT}" for host in FLEET]


def ranges(job: str) -> list[str]:
    """The buckets of each agent, from the rule of agent 0 and the comment above it."""
    text = (FOLDER / "sharding.yml").read_text()
    comment = re.search(rf"# agent 0 of \d: ([^\n]*)\n  - job_name: {job}\n", text)
    first = job_of("sharding.yml", job)["relabel_configs"][-1]["regex"]
    assert comment
    return [first, *re.findall(r"\d\S*\\d\S*(?<!,)|\d\[\S*(?<!,)", comment[1])]


def agent_job(number: int, prefix: str, agents: int = AGENTS) -> dict[str, Any]:
    """The scrape job of an agent, from agent.yml by the command that it documents for the other agents."""
    text = (FOLDER / "agent.yml").read_text()
    command = re.search(r"sed '(s/regex: .*?)' agent\.yml", text)
    assert command
    made = printed("sed", command[1].replace('"3"', f'"{number}"'), FOLDER / "agent.yml")
    (job,) = yaml.safe_load(made)["scrape_configs"]
    next(rule for rule in job["relabel_configs"] if "modulus" in rule)["modulus"] = agents
    return {**job, "job_name": f"{prefix}{number}"}


def bucket_jobs(job: str) -> list[dict[str, Any]]:
    jobs = []
    for number, buckets in enumerate(ranges(job)):
        copy = job_of("sharding.yml", job)
        copy["relabel_configs"][-1]["regex"] = buckets
        jobs.append({**copy, "job_name": f"{job}{number}"})
    return jobs


def shares_of(
    folder: Path, jobs: list[dict[str, Any]], targets: list[str], count: int, **labels: str
) -> Shares:
    """What each job scrapes of these targets, by a real Prometheus, once these are as many as `count`.

    No host is scraped in the time of a test.
    """
    (folder / "targets").mkdir()
    (folder / "targets/roce.yml").write_text(yaml.safe_dump([{"targets": targets, "labels": labels}]))
    config = {"global": {"scrape_interval": "1d", "scrape_timeout": "10s"}, "scrape_configs": jobs}
    (folder / "shards.yml").write_text(yaml.safe_dump(config))
    with prometheus(folder, folder / "shards.yml") as server:
        # from its own metrics: the list of them is long
        pool = re.compile(r"^prometheus_target_scrape_pool_targets\{.*\} (\d+)", re.MULTILINE)
        wait_until(lambda: sum(map(int, pool.findall(fetch(f"{server.url}/metrics")))) >= count)
        found = targets_of(server.url)
    return {
        job["job_name"]: frozenset(
            one.discovered["__address__"] for one in found if one.labels.get("job") == job["job_name"]
        )
        for job in jobs
    }


@pytest.fixture(scope="module")
def shares(tmp_path_factory) -> Shares:
    """The addresses that each job scrapes: one Prometheus has the rules of every agent as a job of its own."""
    jobs = [agent_job(number, "a") for number in range(AGENTS)]
    jobs += [agent_job(number, "of-5-", 5) for number in range(5)]
    jobs += [job for name in ("roce-four", "roce-five") for job in bucket_jobs(name)]
    return shares_of(tmp_path_factory.mktemp("shares"), jobs, addresses(), 4 * len(FLEET))


def group(shares: Shares, prefix: str) -> list[frozenset[str]]:
    return [share for job, share in shares.items() if job.startswith(prefix)]


@pytest.mark.nightly
@pytest.mark.parametrize(("prefix", "agents"), [("a", 4), ("of-5-", 5), ("roce-four", 4), ("roce-five", 5)])
def test_each_host_is_scraped_by_one_agent(shares, prefix, agents) -> None:
    """Shares differ from their mean by at most a tenth."""
    parts = group(shares, prefix)
    assert len(parts) == agents
    assert Counter(address for part in parts for address in part) == dict.fromkeys(addresses(), 1)
    assert [len(part) for part in parts] == pytest.approx([len(FLEET) / agents] * agents, rel=0.1)
