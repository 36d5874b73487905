"""An API server of Kubernetes for service discovery: a real one where it is installed, and a fake of its list and watch.

The fake follows https://kubernetes.io/docs/reference/using-api/api-concepts/ (efficient detection of changes): a list has a resource
version, and a watch from that version streams every later change as one JSON object per line.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from deploy_tools import fetch, wait_until
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMESPACE = "monitoring"
TOKEN = "a-token-of-these-tests"  # noqa: S105 - of no system
READER = "a-token-that-may-only-read"
"""Of the user prometheus, who has the rights that discovery.yml names: get, list and watch of pods and nodes."""
Object = dict[str, Any]


class Kubernetes(Protocol):
    """An API server."""

    url: str

    def create(self, resource: str, content: Object) -> None:
        """Create a node or pod; its status is set too."""

    def delete(self, resource: str, name: str) -> None:
        """Delete it at once."""


@dataclass
class FakeKubernetes:
    """Objects in memory, and all changes of them in order: the resource version is the number of changes."""

    url: str = ""
    objects: dict[str, dict[str, Object]] = field(default_factory=lambda: {"pods": {}, "nodes": {}})
    changes: list[tuple[str, str, Object]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def create(self, resource: str, content: Object) -> None:
        """Create an object."""
        with self.changed:
            version = {"resourceVersion": str(len(self.changes) + 1)}
            kept = {**content, "metadata": {**content["metadata"], **version}}
            self.objects[resource][content["metadata"]["name"]] = kept
            self.changes.append((resource, "ADDED", kept))
            self.changed.notify_all()

    def delete(self, resource: str, name: str) -> None:
        """Delete an object."""
        with self.changed:
            self.changes.append((resource, "DELETED", self.objects[resource].pop(name)))
            self.changed.notify_all()

    def listed(self, resource: str, selector: str) -> Object:
        """The reply to a list."""
        kind = {"pods": "PodList", "nodes": "NodeList"}[resource]
        with self.changed:
            items = [one for one in self.objects[resource].values() if selected(one, selector)]
            version = str(len(self.changes))
        return {
            "kind": kind,
            "apiVersion": "v1",
            "metadata": {"resourceVersion": version},
            "items": items,
        }

    def watched(self, resource: str, selector: str, version: int) -> Iterator[Object]:
        """Every change after a version, without end."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda version=version: len(self.changes) > version)
                later = self.changes[version:]
            version += len(later)
            for of, change, content in later:
                if of == resource and selected(content, selector):
                    yield {
                        "type": change,
                        "object": {"kind": resource[:-1].title(), "apiVersion": "v1", **content},
                    }


def selected(content: Object, selector: str) -> bool:
    """Whether an object has the labels of a selector `key=value,...`."""
    wanted = [part.partition("=")[::2] for part in selector.split(",") if part]
    labels = content["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in wanted)


@contextmanager
def fake_kubernetes() -> Iterator[FakeKubernetes]:
    """A running fake."""
    fake = FakeKubernetes()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            asked = dict(urllib.parse.parse_qsl(address.query))
            resource = address.path.rpartition("/")[2]
            granted = self.headers.get("Authorization") == f"Bearer {READER}"
            self.send_response(200 if granted and resource in fake.objects else 403)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            if granted and resource in fake.objects:
                self.reply(resource, asked)

        def reply(self, resource: str, asked: dict[str, str]) -> None:
            selector = asked.get("labelSelector", "")
            if asked.get("watch") not in ("1", "true"):
                self.wfile.write(json.dumps(fake.listed(resource, selector)).encode())
                return
            for event in fake.watched(resource, selector, int(asked["resourceVersion"])):
                try:
                    self.wfile.write(json.dumps(event).encode() + b"\n")
                except OSError:  # the client has gone
                    return

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fake.url = f"http://127.0.0.1:{server.server_port}"
        yield fake
        server.shutdown()


@dataclass
class RealKubernetes:
    """kube-apiserver over HTTPS."""

    url: str

    def create(self, resource: str, content: Object) -> None:
        """Create an object, then set its status, which creation ignores."""
        self.ask("POST", path_of(resource), content)
        if "status" in content:
            place = f"{path_of(resource)}/{content['metadata']['name']}/status"
            self.ask("PATCH", place, {"status": content["status"]})

    def delete(self, resource: str, name: str) -> None:
        """Delete an object without a grace period: no kubelet confirms it."""
        self.ask("DELETE", f"{path_of(resource)}/{name}?gracePeriodSeconds=0")

    def ask(self, method: str, path: str, content: Object | None = None) -> Reply:
        """One request.

        Raises:
            Refused: the server refuses it.
            OSError: no reply.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=untested()) as answer:
                return Reply(answer.read().decode(), tuple(answer.headers.get_all("Warning", [])))
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode()) from error


@dataclass(frozen=True)
class Reply:
    """What the API server returns: the body, and the header of each warning (RFC 7234, section 5.5)."""

    text: str
    warnings: tuple[str, ...]

    @property
    def content(self) -> Object:
        """The object in the body."""
        return dict(json.loads(self.text))


class Refused(OSError):  # noqa: N818 - it is no error of the server
    """The API server refuses a request."""

    def __init__(self, body: str) -> None:
        """From the body: a Status object, or text of a server that is not ready."""
        self.message = str(json.loads(body)["message"]) if body.startswith("{") else body
        super().__init__(self.message)


def path_of(resource: str) -> str:
    """Where objects of a kind are."""
    return "/api/v1/nodes" if resource == "nodes" else f"/api/v1/namespaces/{NAMESPACE}/{resource}"


def untested() -> ssl.SSLContext:
    """TLS without a check of the certificate, which the server has made itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def grant_reading(server: RealKubernetes) -> None:
    """Give the user prometheus the rights that discovery needs, and no others."""
    group, name = "rbac.authorization.k8s.io", {"name": "roce-discovery"}
    rules = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}]
    user = {"kind": "User", "name": "prometheus", "apiGroup": group}
    role = {"kind": "ClusterRole", "apiGroup": group, **name}
    server.ask("POST", f"/apis/{group}/v1/clusterroles", {"metadata": name, "rules": rules})
    server.ask(
        "POST",
        f"/apis/{group}/v1/clusterrolebindings",
        {"metadata": name, "subjects": [user], "roleRef": role},
    )


def server_programs() -> list[str]:
    """The paths of kube-apiserver and etcd; without both the test is skipped, also in CI: Debian has only etcd."""
    programs = [shutil.which(program) for program in ("kube-apiserver", "etcd")]
    found = [program for program in programs if program]
    if len(found) < len(programs):
        pytest.skip("kube-apiserver and etcd are not on the PATH")
    return found


def etcd_command(program: str, folder: Path, client_url: str, peer_url: str) -> list[str]:
    """How to start etcd."""
    return [
        program,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
    ]


def apiserver_command(program: str, folder: Path, store: str, port: int) -> list[str]:
    """How to start the API server."""
    key = folder / "sa.key"
    return [
        program,
        f"--etcd-servers={store}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder / 'certs'}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://tests.example.com",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",  # as kubeadm sets it
        "--service-cluster-ip-range=10.0.0.0/24",
    ]


@contextmanager
def real_kubernetes(folder: Path) -> Iterator[RealKubernetes]:
    """A running kube-apiserver on etcd, with a namespace and the account that pods in it have."""
    apiserver, etcd = server_programs()
    made = ["openssl", "genrsa", "-out", folder / "sa.key", "2048"]
    subprocess.run(made, check=True, capture_output=True)
    (folder / "tokens.csv").write_text(
        f"{TOKEN},admin,admin,system:masters\n{READER},prometheus,prometheus\n"
    )
    client_url, peer_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    port = free_port()
    commands = [
        etcd_command(etcd, folder, client_url, peer_url),
        apiserver_command(apiserver, folder, client_url, port),
    ]
    server = RealKubernetes(f"https://127.0.0.1:{port}")
    with (folder / "kubernetes.log").open("wb") as log:
        running = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
        try:
            wait_until(lambda: fetch(f"{client_url}/health"), "etcd answers")
            wait_until(lambda: server.ask("GET", "/readyz"), "the API server is ready")
            wait_until(lambda: server.ask("GET", "/api/v1/namespaces/default"), "it has namespaces")
            server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            server.ask("POST", path_of("serviceaccounts"), {"metadata": {"name": "default"}})
            grant_reading(server)
            yield server
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()
