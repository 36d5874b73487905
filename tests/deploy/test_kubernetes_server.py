"""The chart and the manifests in a real kube-apiserver on etcd: stored, validated and admitted.

There is no controller manager, scheduler or kubelet: no controller makes the pods of a DaemonSet, and no pod runs. The tests post the
pods themselves. They are skipped where kube-apiserver, etcd or Helm are missing; the definitions of the Prometheus operator's kinds
come from its Go module.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT
from kubernetes_api import NAMESPACE, Refused, real_kubernetes
from kubernetes_manifests import (
    CASES,
    CHART,
    RELEASE,
    define,
    documents,
    dry_run,
    helm,
    kustomized,
    operator_definitions,
    pod_of,
    rendered,
    stored,
    values_of,
)
from write_kustomize import CASES as KUSTOMIZATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kubernetes_api import Object, RealKubernetes

pytestmark = pytest.mark.nightly

NAME = f"{RELEASE}-roce-exporter"
COMPONENTS = [case for case in KUSTOMIZATIONS if case != "base"]
BUILDS = {
    "base": [],
    **{case: [case] for case in COMPONENTS},
    "all components": COMPONENTS,
}
MANIFESTS = [*(ROOT / "dashboards/kubernetes").glob("*.yml"), ROOT / "alerts/roce.prometheusrule.yml"]
OPERATING = (ROOT / "docs/operating.md").read_text()
LEVELS = re.findall(r"^\| (\S+) \| (DaemonSet|Deployment) \| (.*) \| (.*) \|$", OPERATING, re.MULTILINE)
"""The rows of the table of Pod Security levels: values, the kind that the pod is of, and what baseline and restricted refuse."""
IMAGE = "--set=image.repository=registry.example.com/roce-exporter"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKubernetes]:
    """An API server, for objects of the kinds of Kubernetes."""
    with real_kubernetes(tmp_path_factory.mktemp("kubernetes")) as api:
        yield api


@pytest.fixture(scope="module")
def server(bare: RealKubernetes) -> RealKubernetes:
    """An API server that also has the operator's kinds."""
    define(bare, operator_definitions())
    return bare


def wanted(objects: dict[str, Object]) -> Object:
    """What the chart sets of its objects: no status, no version, and none of Helm's own Secrets."""
    return {
        name: {key: value for key, value in one.items() if key not in ("metadata", "status")}
        | {"labels": one["metadata"].get("labels")}
        for name, one in objects.items()
        if not name.startswith("Secret/sh.helm.release")
    }


@pytest.mark.parametrize("case", CASES)
def test_helm_installs_upgrades_rolls_back_and_uninstalls(
    server: RealKubernetes, tmp_path: Path, case: str
) -> None:
    place = f"release-{case}"
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": place}})

    def run(*words: str) -> Object:
        helm(server, tmp_path, *words, namespace=place)
        return wanted(stored(server, place))

    first = run("install", RELEASE, str(CHART), values_of(case))
    manifest = documents(helm(server, tmp_path, "get", "manifest", RELEASE, namespace=place))
    assert first.keys() == {f"{one['kind']}/{one['metadata']['name']}" for one in manifest}
    policy = f"NetworkPolicy/{NAME}"
    toggled = f"--set=networkPolicy.enabled={str(policy not in first).lower()},port=20123"
    second = run("upgrade", RELEASE, str(CHART), values_of(case), toggled)
    (container,) = second[f"DaemonSet/{NAME}"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 20123, "protocol": "TCP"}]
    assert (policy in second) is not (policy in first)
    assert run("rollback", RELEASE, "1") == first
    assert run("uninstall", RELEASE) == {}
    assert stored(server, place) == {}, "no Secret of Helm is left either"


@pytest.mark.parametrize("case", CASES)
def test_the_server_accepts_what_the_chart_renders(server: RealKubernetes, tmp_path: Path, case: str) -> None:
    for document in rendered(server, tmp_path, values_of(case)):
        dry_run(server, document)


@pytest.mark.parametrize("build", BUILDS)
def test_the_server_accepts_what_kustomize_builds(server: RealKubernetes, tmp_path: Path, build: str) -> None:
    for document in kustomized(BUILDS[build], tmp_path):
        dry_run(server, document)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_server_accepts_the_generated_manifests(server: RealKubernetes, path: Path) -> None:
    found = documents(path.read_text())
    assert found
    for document in found:
        dry_run(server, document)


def test_the_server_accepts_the_plugin_of_node_problem_detector(bare: RealKubernetes) -> None:
    """As `kubectl create configmap --from-file` makes it of the folder."""
    data = {path.name: path.read_text() for path in (DEPLOY / "node-problem-detector").iterdir()}
    metadata = {"name": "roce-port-monitor"}
    dry_run(bare, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def test_the_server_accepts_the_taint_of_the_example(bare: RealKubernetes) -> None:
    """The folder examples has no manifest, but a script that gives a node a taint and an annotation of this name."""
    script = (DEPLOY / "examples/taint-node.sh").read_text()
    (name,) = re.findall(r"ROCE_TAINT:-(\S+)}", script)
    (effect,) = re.findall(r'taint node "\$node" "\$taint=:(\w+)"', script)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-1", "annotations": {name: "mlx5_0 port 1: link down"}},
        "spec": {"taints": [{"key": name, "effect": effect}]},
    }
    assert dry_run(bare, node).content["spec"]["taints"][0] == {"key": name, "effect": effect}
    node["spec"] = {"taints": [{"key": name, "effect": "NoSchedul"}]}
    with pytest.raises(Refused) as refused:
        dry_run(bare, node)
    assert "NoSchedul" in refused.value.message


def test_a_dry_run_stores_nothing_and_refuses_unknown_fields_and_wrong_values(
    bare: RealKubernetes, tmp_path: Path
) -> None:
    """Otherwise the tests before would prove nothing."""
    right = rendered(bare, tmp_path, values_of("default-values"))
    (daemon_set,) = (one for one in right if one["kind"] == "DaemonSet")
    before = stored(bare, NAMESPACE).keys()
    dry_run(bare, daemon_set)
    assert stored(bare, NAMESPACE).keys() == before
    unknown, selecting = copy.deepcopy(daemon_set), copy.deepcopy(daemon_set)
    unknown["spec"]["template"]["spec"]["tolerations"] = [{"operater": "Exists"}]
    with pytest.raises(Refused, match="unknown field") as refused:
        dry_run(bare, unknown)
    assert "spec.template.spec.tolerations[0].operater" in refused.value.message
    selecting["spec"]["selector"] = {"matchLabels": {"app": "another"}}
    with pytest.raises(Refused, match="does not match template") as refused:
        dry_run(bare, selecting)


def namespace(api: RealKubernetes, name: str, level: str) -> str:
    """A namespace that enforces a level of Pod Security, with the account that pods of the chart have."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    api.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": NAME}})
    return name


@pytest.fixture(scope="module")
def levels(bare: RealKubernetes) -> dict[str, str]:
    """Per level of Pod Security a namespace that enforces it."""
    return {level: namespace(bare, level, level) for level in ("privileged", "baseline", "restricted")}


def violations(text: str) -> str:
    """The checks that a pod fails, as a cell of the table: their names without the fields in parentheses.

    The text is that of a refusal, or of a warning in quotes.
    """
    (_, listed) = text.replace('\\"', '"').split(':latest": ')
    names = re.sub(r" \([^()]*\)", "", listed.rstrip('"'))
    return ", ".join(f"`{name}`" for name in names.split(", "))


def workload(api: RealKubernetes, folder: Path, values: str, kind: str) -> Object:
    """The DaemonSet or Deployment of the chart with the values of a row."""
    flags = [] if values == "none" else [f"--set={values.strip('`')}"]
    (found,) = (one for one in rendered(api, folder, IMAGE, *flags) if one["kind"] == kind)
    return found


def test_the_table_of_pod_security_has_every_value_that_gives_privileges() -> None:
    privileges = yaml.safe_load((CHART / "values.yaml").read_text())["privileges"]
    rows = {values.strip("`").partition("=")[0] for values, *_ in LEVELS}
    assert rows >= {"none", "owners.hostPID", "hostSysfs", *(f"privileges.{name}" for name in privileges)}


@pytest.mark.parametrize("row", LEVELS, ids=lambda row: row[0])
def test_a_namespace_admits_the_pods_that_the_table_says(
    bare: RealKubernetes, levels: dict[str, str], tmp_path: Path, row: tuple[str, ...]
) -> None:
    """A DaemonSet itself is admitted with a warning: `helm install` succeeds then, and no pod appears.

    The warning leaves out the port, which only a pod gets as a port of the host.
    """
    values, kind, *cells = row
    controller = workload(bare, tmp_path, values, kind)
    pod = pod_of(controller)
    for document in (controller, pod):
        assert not dry_run(bare, document, levels["privileged"]).warnings
    for level, cell in zip(("baseline", "restricted"), cells, strict=True):
        warnings = [violations(text) for text in dry_run(bare, controller, levels[level]).warnings]
        if cell == "admitted":
            assert not warnings
            assert not dry_run(bare, pod, levels[level]).warnings
            continue
        with pytest.raises(Refused) as refused:
            dry_run(bare, pod, levels[level])
        assert violations(refused.value.message) == cell
        assert warnings == [cell.replace(", `hostPort`", "")]


def test_network_policies_select_the_pods_that_they_are_for(server: RealKubernetes, tmp_path: Path) -> None:
    """Whether a network plugin applies them is not tested."""
    place = namespace(server, "policies", "privileged")
    server.ask("DELETE", f"/api/v1/namespaces/{place}/serviceaccounts/{NAME}")  # Helm makes its own
    flags = (values_of("switches-values"), "--set=switches.nodeSelector=null")
    helm(server, tmp_path, "install", RELEASE, str(CHART), *flags, namespace=place)
    objects = stored(server, place)
    pods = {}
    for name in (f"DaemonSet/{NAME}", f"Deployment/{NAME}-switches"):
        pods[name] = pod_of(objects[name], name.lower().replace("/", "-"))
        server.ask("POST", f"/api/v1/namespaces/{place}/pods", pods[name])
    selected = {
        name: chosen(server, one) for name, one in objects.items() if name.startswith("NetworkPolicy/")
    }
    assert selected == {
        f"NetworkPolicy/{NAME}": [f"daemonset-{NAME}"],
        f"NetworkPolicy/{NAME}-switches": [f"deployment-{NAME}-switches"],
    }
    for name, pod in zip(selected, pods.values(), strict=True):
        ((allowed,),) = (rule["ports"] for rule in objects[name]["spec"]["ingress"])
        ports = [port["name"] for one in pod["spec"]["containers"] for port in one["ports"]]
        assert allowed == {"port": ports[0], "protocol": "TCP"}


def chosen(server: RealKubernetes, policy: Object) -> list[str]:
    """The names of the pods that the server finds with the policy's selector."""
    selector = ",".join(
        f"{key}={value}" for key, value in policy["spec"]["podSelector"]["matchLabels"].items()
    )
    found = server.ask(
        "GET", f"/api/v1/namespaces/{policy['metadata']['namespace']}/pods?labelSelector={selector}"
    )
    return [one["metadata"]["name"] for one in found.content["items"]]


WRONG_RULES = {
    "no name of the group": ({"rules": []}, "name: Required value"),
    "a name without quotes": ({"name": 1, "rules": []}, "name: Invalid value"),
    "no expression": ({"name": "one", "rules": [{"alert": "A"}]}, "expr: Required value"),
    "a duration without a unit": (
        {"name": "one", "rules": [{"alert": "A", "expr": "up == 0", "for": "5 minutes"}]},
        "for: Invalid value",
    ),
    "a misspelt field": (
        {"name": "one", "rules": [{"alert": "A", "expr": "up == 0", "severty": "page"}]},
        'unknown field "spec.groups[0].rules[0].severty"',
    ),
}


@pytest.mark.parametrize("case", WRONG_RULES)
def test_the_operators_definition_refuses_a_wrong_rule(server: RealKubernetes, case: str) -> None:
    group, message = WRONG_RULES[case]
    rules = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "rules"},
    }
    right = {"name": "one", "rules": [{"alert": "A", "expr": "up == 0", "for": "5m"}]}
    dry_run(server, {**rules, "spec": {"groups": [right]}})
    with pytest.raises(Refused) as refused:
        dry_run(server, {**rules, "spec": {"groups": [group]}})
    assert message in refused.value.message
