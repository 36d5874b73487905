"""discovery.yml in Kubernetes: the pods of the chart on 10,000 nodes, with labels of their nodes; hosts come and go.

The clients are vmagent, and Prometheus with its promtool if they were built with Kubernetes (Debian's 2.42 was not, 3.5 is). The server
is a fake, and a real one in addition if kube-apiserver and etcd are on the PATH, with fewer nodes.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_servers import started
from deploy_tools import DEPLOY, need, wait_until
from fleet_targets import PORT, Host, Labels, hosts, job_of, relabelled, targets_of
from kubernetes_api import NAMESPACE, READER, fake_kubernetes, real_kubernetes
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kubernetes_api import Kubernetes, Object

pytestmark = pytest.mark.nightly

NAME = "roce-exporter"
SIZES = {"fake": 10_000, "real": 100}


def node(host: Host) -> Object:
    """A node with the labels of its rack and role; those of the first rack have none."""
    labels = {"topology.kubernetes.io/rack": f"r{host.rack:03}", "example.com/role": "gpu"}
    return {"metadata": {"name": host.domain_name, "labels": labels if host.rack else {}}}


def pod(host: Host, name: str = NAME, phase: str = "Running", suffix: str = "x") -> Object:
    """A pod of the chart with a sidecar that has a port of its own."""
    containers = [
        {"name": NAME, "image": "x", "ports": [{"name": "metrics", "containerPort": PORT}]},
        {"name": "sidecar", "image": "x", "ports": [{"name": "admin", "containerPort": 15000}]},
    ]
    return {
        "metadata": {
            "name": f"{name}-{host.name}-{suffix}",
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": name},
        },
        "spec": {"nodeName": host.domain_name, "hostNetwork": True, "containers": containers},
        "status": {
            "phase": phase,
            "hostIP": host.address,
            "podIP": host.address,
            "podIPs": [{"ip": host.address}],
            "hostIPs": [{"ip": host.address}],
        },
    }


def populate(cluster: Kubernetes, fleet: list[Host]) -> None:
    """A pod per node; in addition an evicted pod, and the pod of the chart that queries switches."""
    for host in fleet:
        cluster.create("nodes", node(host))
        cluster.create("pods", pod(host))
    cluster.create("pods", pod(fleet[0], phase="Failed", suffix="evicted"))
    cluster.create("pods", pod(fleet[1], name=f"{NAME}-switches"))


@pytest.fixture(scope="module", params=["fake", "real"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Kubernetes, list[Host]]]:
    """A running API server and the hosts in it."""
    fleet = hosts(SIZES[request.param])
    if request.param == "fake":
        server: Any = fake_kubernetes()
    else:
        server = real_kubernetes(tmp_path_factory.mktemp("kubernetes"))
    with server as api:
        populate(api, fleet)
        yield api, fleet


def job(api: Kubernetes) -> dict[str, Any]:
    """The job of discovery.yml, for this API server."""
    own = job_of("discovery.yml", "roce-kubernetes")
    access = {"authorization": {"credentials": READER}, "tls_config": {"insecure_skip_verify": True}}
    (discovery,) = own["kubernetes_sd_configs"]
    own["kubernetes_sd_configs"] = [{**discovery, "api_server": api.url, **access}]
    return own


def configuration(folder: Path, api: Kubernetes) -> Path:
    """A file with the job that scrapes no host in the time of a test."""
    place = folder / "scrape.yml"
    place.write_text(yaml.safe_dump({"global": {"scrape_interval": "1d"}, "scrape_configs": [job(api)]}))
    return place


@contextmanager
def vmagent(folder: Path, api: Kubernetes) -> Iterator[str]:
    """The URL of a vmagent; it writes nowhere."""
    port = free_port()
    command = [
        need("vmagent", "victoria-metrics"),
        f"-promscrape.config={configuration(folder, api)}",
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-remoteWrite.url=http://127.0.0.1:{free_port()}/",
        f"-remoteWrite.tmpDataPath={folder / 'queue'}",
        "-promscrape.kubernetesSDCheckInterval=1s",
    ]
    with started(command, port, folder / "log", ready="/health") as server:
        yield server.url


@contextmanager
def prometheus(folder: Path, api: Kubernetes) -> Iterator[str]:
    """The URL of a Prometheus."""
    need_kubernetes(folder)
    port = free_port()
    command = [
        need("prometheus", "prometheus"),
        f"--config.file={configuration(folder, api)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with started(command, port, folder / "log", ready="/-/ready") as server:
        yield server.url


def shown(url: str) -> dict[str, Labels]:
    return {one.labels["instance"]: one.shown for one in targets_of(url)}


def labelled(fleet: list[Host]) -> dict[str, Labels]:
    return {host.name: host.labels() for host in fleet}


def test_the_chart_has_the_names_that_the_job_selects() -> None:
    template = (DEPLOY / "helm/roce-exporter/templates/daemonset.yaml").read_text()
    assert "- name: metrics\n              containerPort: {{ .Values.port }}" in template
    (discovery,) = job_of("discovery.yml", "roce-kubernetes")["kubernetes_sd_configs"]
    assert discovery["selectors"] == [{"role": "pod", "label": f"app.kubernetes.io/name={NAME}"}]


@pytest.mark.parametrize("client", [vmagent, prometheus])
def test_hosts_come_and_go(
    client: Callable[[Path, Kubernetes], AbstractContextManager[str]],
    cluster: tuple[Kubernetes, list[Host]],
    tmp_path: Path,
) -> None:
    api, fleet = cluster
    new = Host(300, 7)
    with client(tmp_path, api) as url:
        wait_until(lambda: shown(url) == labelled(fleet), "all hosts have their labels")
        assert {one.discovered["__address__"] for one in targets_of(url)} == {
            f"{host.address}:{PORT}" for host in fleet
        }
        api.create("nodes", node(new))
        api.create("pods", pod(new))
        wait_until(lambda: shown(url) == labelled([*fleet, new]), "a new host is scraped")
        api.delete("pods", pod(new)["metadata"]["name"])
        api.delete("nodes", new.domain_name)
        wait_until(lambda: shown(url) == labelled(fleet), "a host that is gone is not scraped")


def test_promtool_sees_the_same(cluster: tuple[Kubernetes, list[Host]], tmp_path: Path) -> None:
    api, fleet = cluster
    promtool = need_kubernetes(tmp_path)
    # per pod two ports, and the evicted pod
    count = 2 * (len(fleet) + 1)
    found = relabelled(promtool, job(api), tmp_path, count)
    assert {one.shown["instance"]: one.shown for one in found if one.labels} == labelled(fleet)
    assert {one.labels["__address__"] for one in found if one.labels} == {
        f"{host.address}:{PORT}" for host in fleet
    }


def need_kubernetes(folder: Path) -> str:
    """The path of a promtool that can read the configuration of this discovery; Prometheus was built alike."""
    promtool = need("promtool", "prometheus")
    place = folder / "has.yml"
    config = {"scrape_configs": [{"job_name": "x", "kubernetes_sd_configs": [{"role": "pod"}]}]}
    place.write_text(yaml.safe_dump(config))
    command = [promtool, "check", "config", "--syntax-only", place]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this Prometheus was built without Kubernetes, as Debian's 2.42 is; vmagent is tested")
    return promtool
