"""What the tests give to an API server of Kubernetes: objects that Helm and Kustomize make, and the kinds of the Prometheus operator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from deploy_tools import DEPLOY, helm_program, wait_until
from kubernetes_api import NAMESPACE, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubernetes_api import Object, RealKubernetes, Reply

CHART = DEPLOY / "helm/roce-exporter"
CASES = [path.stem for path in sorted((CHART / "ci").glob("*.yaml"))]
RELEASE = "demo"
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
KINDS = ("podmonitors", "probes", "prometheusrules", "servicemonitors")
"""Those of the operator that the chart and the manifests have."""


def helm(server: RealKubernetes, folder: Path, *words: str, namespace: str = NAMESPACE) -> str:
    """What a command of Helm prints, as the administrator of the cluster. Helm's own files are in the folder.

    Raises:
        subprocess.CalledProcessError: the chart or the API server refuses it; the reason is in `stderr`.
    """
    access = folder / "kubeconfig"
    access.write_text(yaml.safe_dump(kubeconfig(server)))
    places = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    command = [helm_program(), f"--kubeconfig={access}", f"--namespace={namespace}", *words]
    environment = {**os.environ, **places}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def kubeconfig(server: RealKubernetes) -> Object:
    """The configuration of a client that is the administrator."""
    cluster = {"server": server.url, "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "tests", "user": {"token": TOKEN}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "current-context": "tests",
    }


def documents(text: str) -> list[Object]:
    """The objects of a stream of YAML documents."""
    return [document for document in yaml.safe_load_all(text) if document]


def values_of(case: str) -> str:
    """The flag for the values of a file in the chart's folder ci."""
    return f"--values={CHART}/ci/{case}.yaml"


def rendered(server: RealKubernetes, folder: Path, *flags: str) -> list[Object]:
    """The objects that Helm renders of the chart for the version of this API server."""
    version = server.ask("GET", "/version").content["gitVersion"]
    words = ("template", RELEASE, str(CHART), f"--kube-version={version}", *flags)
    return documents(helm(server, folder, *words))


def kustomized(components: Iterable[str], folder: Path) -> list[Object]:
    """What Kustomize builds of the base with these components; without Kustomize the test is skipped."""
    program = shutil.which("kustomize")
    if not program:
        pytest.skip("no kustomize is on the PATH; Debian 12 has no package of it")
    below = Path(os.path.relpath(DEPLOY / "kustomize", folder))
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [str(below / "base")],
        "components": [str(below / "components" / name) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    built = subprocess.run([program, "build", folder], stdout=subprocess.PIPE, text=True, check=True)
    return documents(built.stdout)


def operator_definitions() -> list[Object]:
    """The definitions of the Prometheus operator's kinds, from its Go module; without Go the test is skipped."""
    if not (go := shutil.which("go")):
        pytest.skip("go, which fetches the definitions of the Prometheus operator's kinds, is not installed")
    command = [go, "mod", "download", "-json", OPERATOR]
    # outside of any module
    done = subprocess.run(command, cwd="/", stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{OPERATOR} cannot be fetched: {json.loads(done.stdout or '{}').get('Error', '')}")
    folder = Path(json.loads(done.stdout)["Dir"]) / "example/prometheus-operator-crd"
    paths = [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in KINDS]
    return [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in paths]


def define(server: RealKubernetes, definitions: Iterable[Object]) -> None:
    """Add kinds to the API server, and wait until it accepts objects of them."""
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for definition in definitions:
        server.ask("POST", place, definition)
        wait_until(
            lambda definition=definition: server.ask("GET", place_of(server, example(definition))),
            f"{definition['metadata']['name']} is served",
        )


def example(definition: Object) -> Object:
    """The version and kind of the objects that a definition is for."""
    spec = definition["spec"]
    return {"apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}", "kind": spec["names"]["kind"]}


def place_of(server: RealKubernetes, document: Object, namespace: str = NAMESPACE) -> str:
    """Where objects of this kind are.

    Raises:
        OSError: the server does not serve the kind.
    """
    version = document["apiVersion"]
    base = f"/{'apis' if '/' in version else 'api'}/{version}"
    for found in server.ask("GET", base).content["resources"]:
        if found["kind"] == document["kind"] and "/" not in found["name"]:
            inside = f"/namespaces/{namespace}" if found["namespaced"] else ""
            return f"{base}{inside}/{found['name']}"
    raise OSError(f"{document['kind']} is not served")


def dry_run(server: RealKubernetes, document: Object, namespace: str = NAMESPACE) -> Reply:
    """Whether the server would create the object: its reply, after conversion, validation and admission.

    Raises:
        Refused: it would not, or the object has an unknown or a repeated field.
    """
    metadata = {**document["metadata"], "namespace": namespace}
    place = place_of(server, document, namespace)
    wanted = {**document, "metadata": metadata} if f"/namespaces/{namespace}/" in place else document
    return server.ask("POST", f"{place}?dryRun=All&fieldValidation=Strict", wanted)


def stored(server: RealKubernetes, namespace: str) -> dict[str, Object]:
    """All objects in a namespace, of every kind that the server has: by kind and name."""
    groups = server.ask("GET", "/apis").content["groups"]
    bases = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    found = {}
    for base in bases:
        for kind in server.ask("GET", base).content["resources"]:
            if kind["namespaced"] and "list" in kind["verbs"]:
                items = server.ask("GET", f"{base}/namespaces/{namespace}/{kind['name']}").content["items"]
                found |= {f"{kind['kind']}/{item['metadata']['name']}": item for item in items}
    return found


def pod_of(workload: Object, name: str = "one") -> Object:
    """The pod that a controller would make for a DaemonSet or Deployment."""
    template = workload["spec"]["template"]
    metadata = {**template["metadata"], "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
