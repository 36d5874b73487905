"""The chart, the manifests and discovery.yml with a real kube-apiserver on etcd: stored, validated, admitted, discovered."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_servers import prometheus, vmagent
from deploy_tools import DEPLOY, ROOT, ran
from fleet_targets import PORT, Host, hosts, job_of, targets_of
from kubernetes_api import (
    NAMESPACE,
    READER,
    Refused,
    define_the_operators_kinds,
    documents,
    kubernetes,
    kustomized,
)
from tools import need
from waiting import wait_until
from write_chart import CHART, PARTS, RULES, neutral, parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kubernetes_api import Kubernetes, Object

pytestmark = pytest.mark.nightly

RELEASE = "demo"
NAME = f"{RELEASE}-roce-exporter"
CASES = [path.stem for path in sorted((CHART / "ci").glob("*.yaml"))]
COMPONENTS = [part for part in PARTS if part != "base"]
BUILDS = {"base": [], **{part: [part] for part in COMPONENTS}, "all components": COMPONENTS}
MANIFESTS = [*(ROOT / "dashboards/kubernetes").glob("*.yml"), ROOT / "alerts/roce.prometheusrule.yml"]
LEVELS = re.findall(
    r"^\| (\S+) \| (DaemonSet|Deployment) \| (.*) \| (.*) \|$",
    (ROOT / "docs/operating.md").read_text(),
    re.MULTILINE,
)
"""The rows of the table of Pod Security levels: values, the kind that the pod is of, and what baseline and restricted refuse."""
IMAGE = "--set=image.repository=registry.example.com/roce-exporter"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """An API server that also has the operator's kinds."""
    with kubernetes(tmp_path_factory.mktemp("kubernetes")) as api:
        define_the_operators_kinds(api)
        yield api


def values_of(case: str) -> str:
    """The flag for the values of a file in the chart's folder ci."""
    return f"--values={CHART}/ci/{case}.yaml"


def rendered(server: Kubernetes, *flags: str) -> list[Object]:
    """The objects that Helm renders of the chart for the version of this API server."""
    version = server.get("/version")["gitVersion"]
    return documents(server.helm("template", RELEASE, str(CHART), f"--kube-version={version}", *flags))


def wanted(objects: dict[str, Object]) -> Object:
    """What the chart sets of its objects: no status, no version, and none of Helm's own Secrets."""
    return {
        name: {key: value for key, value in one.items() if key not in ("metadata", "status")}
        | {"labels": one["metadata"].get("labels")}
        for name, one in objects.items()
        if not name.startswith("Secret/sh.helm.release")
    }


def namespace(server: Kubernetes, name: str, level: str = "privileged") -> str:
    """A namespace that enforces a level of Pod Security."""
    metadata = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return name


@pytest.mark.parametrize("case", CASES)
def test_helm_installs_upgrades_rolls_back_and_uninstalls(server: Kubernetes, case: str) -> None:
    place = namespace(server, f"release-{case}")

    def run(*words: str) -> Object:
        server.helm(*words, namespace=place)
        return wanted(server.stored(place))

    first = run("install", RELEASE, str(CHART), values_of(case))
    manifest = documents(server.helm("get", "manifest", RELEASE, namespace=place))
    assert first.keys() == {f"{one['kind']}/{one['metadata']['name']}" for one in manifest}
    policy = f"NetworkPolicy/{NAME}"
    toggled = f"--set=networkPolicy.enabled={str(policy not in first).lower()},port=20123"
    second = run("upgrade", RELEASE, str(CHART), values_of(case), toggled)
    (container,) = second[f"DaemonSet/{NAME}"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 20123, "protocol": "TCP"}]
    assert (policy in second) is not (policy in first)
    assert run("rollback", RELEASE, "1") == first
    assert run("uninstall", RELEASE) == {}
    assert server.stored(place) == {}, "no Secret of Helm is left either"
    for document in rendered(server, values_of(case)):
        server.dry_run(document)


@pytest.mark.parametrize("build", BUILDS)
def test_kustomize_builds_what_helm_renders_and_the_server_accepts_it(
    server: Kubernetes, tmp_path: Path, build: str
) -> None:
    found = kustomized(BUILDS[build], tmp_path)
    for document in found:
        server.dry_run(document)
    assert {document["metadata"]["namespace"] for document in found} == {NAMESPACE}
    made = {f"{one['kind']}/{one['metadata']['name']}": neutral(one) for one in found}
    if build in PARTS:
        expected = dict(parts()[build])
        # the same rules, under the name and the labels that alerts/ gives them
        ours, theirs = made.pop("PrometheusRule/roce-exporter", None), expected.pop(RULES, None)
        assert (ours and ours["spec"]) == (theirs and theirs["spec"])
        assert made == expected
    else:
        assert made["DaemonSet/roce-exporter"]["spec"]["template"]["spec"]["hostPID"] is True
        assert {"PodMonitor/roce-exporter", "Deployment/roce-exporter-switches"} <= made.keys()


def test_the_server_accepts_the_other_manifests(server: Kubernetes) -> None:
    """The generated ones, and the plugin of Node Problem Detector as `kubectl create configmap --from-file` makes it of the folder."""
    found = [document for path in MANIFESTS for document in documents(path.read_text())]
    assert len(found) >= len(MANIFESTS)
    data = {path.name: path.read_text() for path in (DEPLOY / "node-problem-detector").iterdir()}
    metadata = {"name": "roce-port-monitor"}
    found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for document in found:
        server.dry_run(document)


@pytest.mark.parametrize("wrong", ["", "ule"])
def test_the_taint_of_the_example_is_valid(server: Kubernetes, wrong: str) -> None:
    """deploy/examples has no manifest, but a script that gives a node a taint and an annotation of this name."""
    script = (DEPLOY / "examples/taint-node.sh").read_text()
    (name,) = re.findall(r"ROCE_TAINT:-(\S+)}", script)
    (effect,) = re.findall(r'taint node "\$node" "\$taint=:(\w+)"', script)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-1", "annotations": {name: "mlx5_0 port 1: link down"}},
        "spec": {"taints": [{"key": name, "effect": effect.removesuffix(wrong)}]},
    }
    if wrong:
        with pytest.raises(Refused, match="NoSched"):
            server.dry_run(node)
    else:
        assert server.dry_run(node).content["spec"]["taints"][0] == {"key": name, "effect": effect}


def test_a_dry_run_stores_nothing_and_refuses_unknown_fields_and_wrong_values(server: Kubernetes) -> None:
    """Otherwise the tests before would prove nothing."""
    (daemon_set,) = (
        one for one in rendered(server, values_of("default-values")) if one["kind"] == "DaemonSet"
    )
    before = server.stored(NAMESPACE).keys()
    server.dry_run(daemon_set)
    assert server.stored(NAMESPACE).keys() == before
    unknown, selecting = copy.deepcopy(daemon_set), copy.deepcopy(daemon_set)
    unknown["spec"]["template"]["spec"]["tolerations"] = [{"operater": "Exists"}]
    with pytest.raises(Refused, match=r"unknown field .*spec\.template\.spec\.tolerations\[0\]\.operater"):
        server.dry_run(unknown)
    selecting["spec"]["selector"] = {"matchLabels": {"app": "another"}}
    with pytest.raises(Refused, match="does not match template"):
        server.dry_run(selecting)


@pytest.fixture(scope="module")
def levels(server: Kubernetes) -> dict[str, str]:
    """Per level of Pod Security a namespace that enforces it, with the account that pods of the chart have."""
    found = {level: namespace(server, level, level) for level in ("privileged", "baseline", "restricted")}
    for place in found.values():
        server.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}}, place)
    return found


def pod_of(workload: Object, name: str = "one") -> Object:
    """The pod that a controller would make for a DaemonSet or Deployment."""
    template = workload["spec"]["template"]
    metadata = {**template["metadata"], "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def violations(text: str) -> str:
    """The checks that a pod fails, as a cell of the table: their names without the fields in parentheses.

    The text is that of a refusal, or of a warning in quotes.
    """
    (_, listed) = text.replace('\\"', '"').split(':latest": ')
    names = re.sub(r" \([^()]*\)", "", listed.rstrip('"'))
    return ", ".join(f"`{name}`" for name in names.split(", "))


def test_the_table_of_pod_security_has_every_value_that_gives_privileges() -> None:
    privileges = yaml.safe_load((CHART / "values.yaml").read_text())["privileges"]
    rows = {values.strip("`").partition("=")[0] for values, *_ in LEVELS}
    assert rows >= {"none", "owners.hostPID", "hostSysfs", *(f"privileges.{name}" for name in privileges)}


@pytest.mark.parametrize("row", LEVELS, ids=lambda row: row[0])
def test_a_namespace_admits_the_pods_that_the_table_says(
    server: Kubernetes, levels: dict[str, str], row: tuple[str, ...]
) -> None:
    """A DaemonSet itself is admitted with a warning: `helm install` succeeds then, and no pod appears.

    The warning leaves out the port, which only a pod gets as a port of the host.
    """
    values, kind, *cells = row
    flags = [] if values == "none" else [f"--set={values.strip('`')}"]
    (controller,) = (one for one in rendered(server, IMAGE, *flags) if one["kind"] == kind)
    pod = pod_of(controller)
    for document in (controller, pod):
        assert not server.dry_run(document, levels["privileged"]).warnings
    for level, cell in zip(("baseline", "restricted"), cells, strict=True):
        warnings = [violations(text) for text in server.dry_run(controller, levels[level]).warnings]
        if cell == "admitted":
            assert not [*warnings, *server.dry_run(pod, levels[level]).warnings]
            continue
        with pytest.raises(Refused) as refused:
            server.dry_run(pod, levels[level])
        assert violations(refused.value.message) == cell
        assert warnings == [cell.replace(", `hostPort`", "")]


def test_network_policies_select_the_pods_that_they_are_for(server: Kubernetes) -> None:
    """Whether a network plugin applies them is not tested."""
    place = namespace(server, "policies")
    flags = (values_of("switches-values"), "--set=switches.nodeSelector=null")
    server.helm("install", RELEASE, str(CHART), *flags, namespace=place)
    objects = server.stored(place)
    pods = {
        f"NetworkPolicy/{NAME}": pod_of(objects[f"DaemonSet/{NAME}"], "host"),
        f"NetworkPolicy/{NAME}-switches": pod_of(objects[f"Deployment/{NAME}-switches"], "switches"),
    }
    assert pods.keys() == {name for name in objects if name.startswith("NetworkPolicy/")}
    for pod in pods.values():
        server.create(pod, place)
    for name, pod in pods.items():
        labels = objects[name]["spec"]["podSelector"]["matchLabels"]
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        found = server.get(f"/api/v1/namespaces/{place}/pods?labelSelector={selector}")["items"]
        assert [one["metadata"]["name"] for one in found] == [pod["metadata"]["name"]]
        ((allowed,),) = (rule["ports"] for rule in objects[name]["spec"]["ingress"])
        (port,) = (port["name"] for one in pod["spec"]["containers"] for port in one["ports"])
        assert allowed == {"port": port, "protocol": "TCP"}


WRONG_RULES = {
    "name: Required value": {"rules": []},
    "name: Invalid value": {"name": 1, "rules": []},
    "expr: Required value": {"name": "one", "rules": [{"alert": "A"}]},
    "for: Invalid value": {"name": "one", "rules": [{"alert": "A", "expr": "up == 0", "for": "5 minutes"}]},
    'unknown field "spec.groups[0].rules[0].severty"': {
        "name": "one",
        "rules": [{"alert": "A", "expr": "up == 0", "severty": "page"}],
    },
}


def test_the_operators_definition_refuses_wrong_rules(server: Kubernetes) -> None:
    """Otherwise it would prove nothing that it accepts ours."""
    rules = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "rules"},
    }
    right = {"name": "one", "rules": [{"alert": "A", "expr": "up == 0", "for": "5m"}]}
    server.dry_run({**rules, "spec": {"groups": [right]}})
    for message, group in WRONG_RULES.items():
        with pytest.raises(Refused, match=re.escape(message)):
            server.dry_run({**rules, "spec": {"groups": [group]}})


# --- discovery.yml

FLEET = hosts(100)


def node(host: Host) -> Object:
    """A node with the labels of its rack and role; those of the first rack have none."""
    labels = {"topology.kubernetes.io/rack": f"r{host.rack:03}", "example.com/role": "gpu"}
    metadata = {"name": host.domain_name, "labels": labels if host.rack else {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def pod(host: Host, name: str = "roce-exporter", phase: str = "Running", suffix: str = "x") -> Object:
    """A pod of the chart with a sidecar that has a port of its own."""
    ports = {"exporter": {"name": "metrics", "containerPort": PORT}, "sidecar": {"containerPort": 15000}}
    containers = [{"name": key, "image": "x", "ports": [port]} for key, port in ports.items()]
    labels = {"app.kubernetes.io/name": name}
    addresses = [{"ip": host.address}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{host.name}-{suffix}", "labels": labels},
        "spec": {"nodeName": host.domain_name, "hostNetwork": True, "containers": containers},
        "status": {
            "phase": phase,
            "hostIP": host.address,
            "podIP": host.address,
            "podIPs": addresses,
            "hostIPs": addresses,
        },
    }


@pytest.fixture(scope="module")
def fleet(server: Kubernetes) -> Kubernetes:
    """A pod per node; in addition an evicted pod, and the pod of the chart that queries switches."""
    for host in FLEET:
        server.create(node(host))
        server.create(pod(host))
    server.create(pod(FLEET[0], phase="Failed", suffix="evicted"))
    server.create(pod(FLEET[1], name="roce-exporter-switches"))
    return server


def configuration(folder: Path, server: Kubernetes) -> Path:
    """The job of discovery.yml for this API server, which scrapes no host in the time of a test."""
    job: dict[str, Any] = job_of("discovery.yml", "roce-kubernetes")
    access = {"authorization": {"credentials": READER}, "tls_config": {"insecure_skip_verify": True}}
    (discovery,) = job["kubernetes_sd_configs"]
    job["kubernetes_sd_configs"] = [{**discovery, "api_server": server.url, **access}]
    place = folder / "scrape.yml"
    place.write_text(yaml.safe_dump({"global": {"scrape_interval": "1d"}, "scrape_configs": [job]}))
    return place


@pytest.mark.parametrize("client", ["vmagent", "prometheus"])
def test_hosts_come_and_go(fleet: Kubernetes, client: str, tmp_path: Path) -> None:
    config = configuration(tmp_path, fleet)
    if client == "prometheus":
        checked = ran(need("promtool"), "check", "config", "--syntax-only", config)
        if "unable to find" in checked.stderr or checked.returncode:
            pytest.skip("Debian 12 builds Prometheus without Kubernetes; tests/newest.sh has a newer one")
        running = prometheus(config, tmp_path)
    else:
        running = vmagent(config, tmp_path, "-promscrape.kubernetesSDCheckInterval=1s")
    new = Host(300, 7)

    def is_labelled(*fleet: Host) -> bool:
        shown = {one.labels["instance"]: one.shown for one in targets_of(running_server.url)}
        return shown == {host.name: host.labels() for host in fleet}

    with running as running_server:
        wait_until(lambda: is_labelled(*FLEET))
        assert {one.discovered["__address__"] for one in targets_of(running_server.url)} == {
            f"{host.address}:{PORT}" for host in FLEET
        }
        fleet.create(node(new))
        fleet.create(pod(new))
        wait_until(lambda: is_labelled(*FLEET, new))
        fleet.delete(pod(new))
        fleet.delete(node(new))
        wait_until(lambda: is_labelled(*FLEET))
