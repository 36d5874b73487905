"""A release of the chart in a real API server of Kubernetes with etcd: installed, upgraded, rolled back, removed.

There is no kubelet, scheduler or controller: objects are checked, admitted and stored, and no pod runs; `test_container.py` runs the image. The servers
live in a network namespace of their own, where every port is free: this file is also the program that runs there.
"""

import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from deploy_tools import need_root, ran
from tools import need
from waiting import wait_until
from write_chart import CHART

import roce_exporter

VALUES = {
    "image": {"repository": "registry.example.com/roce-exporter"},
    "flags": ["--metrics.set=lean"],
    "dashboards": {"enabled": True},
    "privileges": {"optics": True},
}
AUTHORITY, CONTEXT = trustme.CA(), ssl.create_default_context()
ETCD, SERVER = "http://127.0.0.1:2379", "https://127.0.0.1:6443"
KINDS = ("apis/apps/v1/daemonsets", "api/v1/configmaps", "api/v1/services", "api/v1/serviceaccounts")
NAME = "roce"
OWN = f"app.kubernetes.io%2Finstance%3D{NAME}"
USER, ADDRESS = "admin", "192.0.2.1"
"""Who asks, and where the server says that it is: it refuses to be on a loopback alone."""


def answer(path: str) -> Any:
    """What the server says of a path."""
    request = urllib.request.Request(f"{SERVER}/{path}", headers={"Authorization": f"Bearer {USER}"})
    with urllib.request.urlopen(request, context=CONTEXT) as reply:
        return reply.read()


def objects() -> dict[str, Any]:
    """The objects of the release, by kind."""
    found = {kind: json.loads(answer(f"{kind}?labelSelector={OWN}"))["items"] for kind in KINDS}
    return {kind.rpartition("/")[2]: items for kind, items in found.items() if items}


@contextmanager
def started(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program until the end."""
    with subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr) as program:
        try:
            yield program
        finally:
            program.kill()


def live(given: dict[str, str]) -> None:
    """Install, upgrade with what was set, go back, remove; print a line of JSON per step: its name, and the objects of the release."""
    folder = Path(given["folder"])
    certificate, tokens, config, root = (
        folder / name for name in ("server.pem", "tokens", "config", "ca.pem")
    )
    AUTHORITY.configure_trust(CONTEXT)
    AUTHORITY.cert_pem.write_to_path(root)
    AUTHORITY.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    tokens.write_text(f"{USER},{USER},{USER},system:masters\n")
    cluster = {"name": "it", "cluster": {"server": SERVER, "certificate-authority": str(root)}}
    user = {"name": "it", "user": {"token": USER}}
    context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
    content = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "it"}
    config.write_text(json.dumps(content))
    environment = os.environ | {"KUBECONFIG": str(config), "HOME": str(folder)}

    def ran(step: str, *words: str) -> None:
        subprocess.run([given["helm"], *words], check=True, env=environment, stdout=sys.stderr)
        sys.stdout.write(json.dumps([step, objects()]) + "\n")

    def ready() -> bool:
        assert api.poll() is None, "the API server has ended"
        return bool(answer("readyz") and answer("api/v1/namespaces/default"))

    for words in ("link set lo up", f"address add {ADDRESS}/32 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    etcd = [given["etcd"], f"--data-dir={folder}/etcd"]
    server = [
        given["kube-apiserver"],
        f"--etcd-servers={ETCD}",
        "--bind-address=127.0.0.1",
        f"--advertise-address={ADDRESS}",
        "--authorization-mode=RBAC",
    ]
    server += [
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={certificate}",
        f"--token-auth-file={tokens}",
    ]
    server += [f"--service-account-{name}-file={certificate}" for name in ("key", "signing-key")]
    with started(*etcd), started(*server, "--service-account-issuer=https://test") as api:
        wait_until(ready)
        ran("install", "install", NAME, given["old"], f"--values={given['values']}")
        ran("upgrade", "upgrade", NAME, given["new"], "--reset-then-reuse-values")
        ran("rollback", "rollback", NAME, "1")
        ran("remove", "uninstall", NAME)


@pytest.mark.nightly
@pytest.mark.release("chart", "upgrade", "rollback", "remove")
def test_an_upgrade_keeps_what_was_set_and_a_removal_leaves_nothing(tmp_path: Path) -> None:
    """The release before is this chart under a lower version: none is published yet."""
    need_root()
    old = tmp_path / "old"
    shutil.copytree(CHART, old)
    metadata = yaml.safe_load((old / "Chart.yaml").read_text())
    (old / "Chart.yaml").write_text(yaml.safe_dump(metadata | {"version": "0.0.1", "appVersion": "0.0.1"}))
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    given = {name: need(name) for name in ("etcd", "kube-apiserver", "helm")}
    given |= {"folder": str(tmp_path), "old": str(old), "new": str(CHART), "values": str(values)}
    tests = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = ran("unshare", "--net", sys.executable, __file__, json.dumps(given), env=tests)
    assert done.returncode == 0, done.stderr[-2000:]
    steps = dict(map(json.loads, done.stdout.splitlines()))

    def image(step: str) -> str:
        (daemon_set,) = steps[step]["daemonsets"]
        (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
        assert "--metrics.set=lean" in container["args"]
        assert container["securityContext"]["capabilities"]["add"] == ["NET_ADMIN"]
        assert len(steps[step]["configmaps"]) == len([*CHART.glob("files/dashboards/*")])
        return str(container["image"]).rpartition(":")[2]

    assert [image(step) for step in ("install", "upgrade", "rollback")] == [
        "0.0.1",
        roce_exporter.__version__,
        "0.0.1",
    ]
    assert steps["remove"] == {}


if __name__ == "__main__":
    live(json.loads(sys.argv[1]))
