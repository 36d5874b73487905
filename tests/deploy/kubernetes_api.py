"""A real kube-apiserver on etcd, and what Helm, Kustomize and the Prometheus operator's module give to it.

There is no controller manager, scheduler or kubelet: no controller makes the pods of a DaemonSet, and no pod runs.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from deploy_tools import DEPLOY, fetch, printed, ran
from ports import free_port
from tools import lacking, need
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAMESPACE = "monitoring"
TOKEN = "a-token-of-these-tests"  # noqa: S105 - of no system
READER = "a-token-that-may-only-read"
"""Of the user prometheus, who has the rights that discovery.yml names: get, list and watch of pods and nodes."""
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
KINDS = ("podmonitors", "probes", "prometheusrules", "servicemonitors")
"""Those of the operator that the chart and the manifests have."""
PROGRAMS = {
    "etcd": (
        "--data-dir={folder}/etcd --listen-client-urls={store} --advertise-client-urls={store} "
        "--listen-peer-urls={peers}"
    ),
    "kube-apiserver": (
        "--etcd-servers={store} --secure-port={port} --bind-address=127.0.0.1 --cert-dir={folder}/certs "
        "--service-account-key-file={folder}/sa.key --service-account-signing-key-file={folder}/sa.key "
        "--service-account-issuer=https://tests.example.com --token-auth-file={folder}/tokens.csv "
        # as kubeadm sets it
        "--authorization-mode=RBAC --allow-privileged=true --service-cluster-ip-range=10.0.0.0/24"
    ),
}
Object = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What the API server returns: the body, and the header of each warning (RFC 7234, section 5.5)."""

    content: Any
    warnings: tuple[str, ...]


class Refused(OSError):  # noqa: N818 - it is no error of the server
    """The API server refuses a request."""

    def __init__(self, body: str) -> None:
        """From the body: a Status object, or text of a server that is not ready."""
        self.message = str(json.loads(body)["message"]) if body.startswith("{") else body
        super().__init__(self.message)


@dataclass(frozen=True)
class Kubernetes:
    """A running API server; the requests are those of its administrator."""

    url: str
    folder: Path

    def request(self, method: str, path: str, content: Object | None = None) -> Reply:
        """One request.

        Raises:
            Refused: the server refuses it.
            OSError: no reply.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        context = ssl.create_default_context()  # the server has made its certificate itself
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
                text, warnings = answer.read().decode(), answer.headers.get_all("Warning", [])
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode()) from error
        return Reply(json.loads(text) if text.startswith(("{", "[")) else text, tuple(warnings))

    def get(self, path: str) -> Any:
        """The content at a path."""
        return self.request("GET", path).content

    def place(self, document: Object, namespace: str = NAMESPACE) -> str:
        """Where objects of the kind of this one are.

        Raises:
            OSError: the server does not serve the kind.
        """
        version = document["apiVersion"]
        base = f"/{'apis' if '/' in version else 'api'}/{version}"
        for found in self.get(base)["resources"]:
            if found["kind"] == document["kind"] and "/" not in found["name"]:
                return f"{base}{f'/namespaces/{namespace}' if found['namespaced'] else ''}/{found['name']}"
        raise OSError(f"{document['kind']} is not served")

    def create(self, document: Object, namespace: str = NAMESPACE) -> None:
        """Create an object, then set its status, which creation ignores."""
        place = self.place(document, namespace)
        self.request("POST", place, document)
        if "status" in document:
            name = document["metadata"]["name"]
            self.request("PATCH", f"{place}/{name}/status", {"status": document["status"]})

    def delete(self, document: Object) -> None:
        """Delete an object without a grace period: no kubelet confirms it."""
        name = document["metadata"]["name"]
        self.request("DELETE", f"{self.place(document)}/{name}?gracePeriodSeconds=0")

    def dry_run(self, document: Object, namespace: str = NAMESPACE) -> Reply:
        """Whether the server would create the object: its reply, after conversion, validation and admission.

        Raises:
            Refused: it would not, or the object has an unknown or a repeated field.
        """
        place = self.place(document, namespace)
        metadata = {**document["metadata"], "namespace": namespace}
        wanted = {**document, "metadata": metadata} if f"/namespaces/{namespace}/" in place else document
        return self.request("POST", f"{place}?dryRun=All&fieldValidation=Strict", wanted)

    def stored(self, namespace: str) -> dict[str, Object]:
        """All objects in a namespace, of every kind that the server has: by kind and name."""
        groups = self.get("/apis")["groups"]
        bases = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        return {
            f"{kind['kind']}/{item['metadata']['name']}": item
            for base in bases
            for kind in self.get(base)["resources"]
            if kind["namespaced"] and "list" in kind["verbs"]
            for item in self.get(f"{base}/namespaces/{namespace}/{kind['name']}")["items"]
        }

    def helm(self, *words: str, namespace: str = NAMESPACE) -> str:
        """What a command of Helm prints, as the administrator of the cluster. Helm's own files are in the folder."""
        access = self.folder / "kubeconfig"
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "tests", "user": {"token": TOKEN}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
            "current-context": "tests",
        }
        access.write_text(yaml.safe_dump(content))
        places = {f"HELM_{kind}_HOME": str(self.folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        flags = (f"--kubeconfig={access}", f"--namespace={namespace}")
        return printed(need("helm"), *flags, *words, env={**os.environ, **places})


def documents(text: str) -> list[Object]:
    """The objects of a stream of YAML documents."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def kustomized(components: Iterable[str], folder: Path) -> list[Object]:
    """What Kustomize builds of the base with these components."""
    below = Path(os.path.relpath(DEPLOY / "kustomize", folder))
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [str(below / "base")],
        "components": [str(below / "components" / name) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return documents(printed(need("kustomize"), "build", folder))


def define_the_operators_kinds(server: Kubernetes) -> None:
    """Add the definitions of the Prometheus operator's kinds, from its Go module, and wait until their objects are accepted."""
    done = ran(need("go"), "mod", "download", "-json", OPERATOR, cwd="/")  # outside of any module
    if done.returncode:
        lacking(f"{OPERATOR} cannot be fetched: {json.loads(done.stdout or '{}').get('Error', '')}")
    folder = Path(json.loads(done.stdout)["Dir"]) / "example/prometheus-operator-crd"
    for kind in KINDS:
        text = (folder / f"monitoring.coreos.com_{kind}.yaml").read_bytes()
        definition = yaml.load(text, yaml.CSafeLoader)
        server.create(definition)
        spec = definition["spec"]
        example = {
            "apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}",
            "kind": spec["names"]["kind"],
        }
        wait_until(lambda example=example: server.get(server.place(example)))


@contextmanager
def kubernetes(folder: Path) -> Iterator[Kubernetes]:
    """A running API server, with a namespace, the account that pods in it have, and a user who may read pods and nodes."""
    programs = [need(program) for program in PROGRAMS]
    subprocess.run(["openssl", "genrsa", "-out", folder / "sa.key", "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(
        f"{TOKEN},admin,admin,system:masters\n{READER},prometheus,prometheus\n"
    )
    store, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    places = {"folder": folder, "store": store, "peers": peers, "port": free_port()}
    server = Kubernetes(f"https://127.0.0.1:{places['port']}", folder)
    with (folder / "log").open("wb") as log:
        running = [
            subprocess.Popen([program, *flags.format(**places).split()], stdout=log, stderr=log)
            for program, flags in zip(programs, PROGRAMS.values(), strict=True)
        ]
        try:
            wait_until(lambda: fetch(f"{store}/health"))
            wait_until(lambda: server.get("/readyz") and server.get("/api/v1/namespaces/default"))
            prepare(server)
            yield server
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()


def prepare(server: Kubernetes) -> None:
    """The namespace with its account, and the rights that discovery needs and no others."""
    group, name = "rbac.authorization.k8s.io", {"name": "roce-discovery"}
    core, rights = {"apiVersion": "v1"}, {"apiVersion": f"{group}/v1", "metadata": name}
    server.create({**core, "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    server.create({**core, "kind": "ServiceAccount", "metadata": {"name": "default"}})
    rules = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}]
    server.create({**rights, "kind": "ClusterRole", "rules": rules})
    user = {"kind": "User", "name": "prometheus", "apiGroup": group}
    role = {"kind": "ClusterRole", "apiGroup": group, **name}
    server.create({**rights, "kind": "ClusterRoleBinding", "subjects": [user], "roleRef": role})
