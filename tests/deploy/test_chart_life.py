"""A release of the chart in a real API server of Kubernetes with etcd: installed, tested, upgraded, rolled back, removed; and with the Prometheus operator.

There is no kubelet, scheduler or controller: objects are checked, admitted and stored, and no pod runs; `test_container.py` runs the image. For the pod
of `helm test` this file is the kubelet: it runs what the pod would run, with this Python, next to an exporter or none, and reports how it ended. The servers live in a network namespace of their own, where every port is free: this file is also the program that runs there.
"""

import base64
import gzip
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from deploy_tools import need_root, ran
from tools import cache_folder, need
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
EXPORTER = "http://127.0.0.1:10123/-/ready"
KINDS = ("apis/apps/v1/daemonsets", "api/v1/configmaps", "api/v1/services", "api/v1/serviceaccounts")
NAME = "roce"
OWN = f"app.kubernetes.io%2Finstance%3D{NAME}"
LONG_NAME = "a-release-with-a-name-as-long-as-helm-takes-it-53-here"[:53]
GROUP = "apis/monitoring.coreos.com/v1"
USER, ADDRESS = "admin", "192.0.2.1"
"""Who asks, and where the server says that it is: it refuses to be on a loopback alone."""


def answer(path: str, document: str | None = None, kind: str = "yaml", method: str | None = None) -> Any:
    """What the server says of a path, or of a document that is created there."""
    headers = {"Authorization": f"Bearer {USER}", "Content-Type": f"application/{kind}"}
    request = urllib.request.Request(
        f"{SERVER}/{path}", document and document.encode(), headers, method=method
    )
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


@contextmanager
def kubernetes(given: dict[str, str]) -> Iterator[Path]:
    """The servers; the file for clients. Their certificates are next to it."""
    folder = Path(given["folder"])
    certificate, tokens, config, root = (
        folder / name for name in ("server.pem", "tokens", "config", "ca.pem")
    )
    AUTHORITY.configure_trust(CONTEXT)
    AUTHORITY.cert_pem.write_to_path(root)
    AUTHORITY.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    client = AUTHORITY.issue_cert("it.example", common_name=USER, organization_name="system:masters")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    tokens.write_text(f"{USER},{USER},{USER},system:masters\n")
    cluster = {"name": "it", "cluster": {"server": SERVER, "certificate-authority": str(root)}}
    user = {"name": "it", "user": {"token": USER}}
    context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
    content = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "it"}
    config.write_text(json.dumps(content))

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
        f"--client-ca-file={root}",
    ]
    server += [
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={certificate}",
        f"--token-auth-file={tokens}",
    ]
    server += [f"--service-account-{name}-file={certificate}" for name in ("key", "signing-key")]
    with started(*etcd), started(*server, "--service-account-issuer=https://test") as api:
        wait_until(ready)
        os.environ.update(KUBECONFIG=str(config), HOME=str(folder))
        yield folder


def helm_test(given: dict[str, str]) -> list[str | int]:
    """What the pod of `helm test` prints, and the exit code of helm."""
    pods = "api/v1/namespaces/default/pods"

    def pod() -> Any:
        assert helm.poll() is None, "helm test has ended"
        found = json.loads(answer(pods))["items"]
        return [one for one in found if one.get("status", {}).get("phase") == "Pending"]

    with started(given["helm"], "test", NAME, "--timeout=300s") as helm:
        (one,) = wait_until(pod)
        (container,) = one["spec"]["containers"]
        done = ran(sys.executable, *container["command"][1:], *container["args"])
        status = {"status": {"phase": "Failed" if done.returncode else "Succeeded"}}
        place = f"{pods}/{one['metadata']['name']}/status"
        answer(place, json.dumps(status), "merge-patch+json", "PATCH")
        return [done.stdout, helm.wait()]


def live(given: dict[str, str]) -> None:
    """Install, test without an exporter and with one, upgrade with what was set, go back, remove.

    Prints a line of JSON per step: its name, and the objects of the release or what the test printed and its exit code.
    """

    def stepped(step: str, *words: str) -> None:
        subprocess.run([given["helm"], *words], check=True, stdout=sys.stderr)
        sys.stdout.write(json.dumps([step, objects()]) + "\n")

    with kubernetes(given):
        stepped("install", "install", NAME, given["old"], f"--values={given['values']}")
        sys.stdout.write(json.dumps(["test without", helm_test(given)]) + "\n")
        with started(sys.executable, "-m", "roce_exporter", "serve", "--host.simulate=incast") as exporter:
            wait_until(lambda: exporter.poll() is None and urllib.request.urlopen(EXPORTER).read())
            sys.stdout.write(json.dumps(["test", helm_test(given)]) + "\n")
        stepped("upgrade", "upgrade", NAME, given["new"], "--reset-then-reuse-values")
        stepped("rollback", "rollback", NAME, "1")
        stepped("remove", "uninstall", NAME)


def create_definitions(given: dict[str, str]) -> None:
    """Those of the Prometheus operator."""
    for place in sorted(Path(given["definitions"]).glob("*.yaml")):
        answer("apis/apiextensions.k8s.io/v1/customresourcedefinitions", place.read_text())
    for kind in ("prometheuses", "podmonitors", "prometheusrules"):
        wait_until(partial(answer, f"{GROUP}/namespaces/default/{kind}"))


def operated(given: dict[str, str]) -> None:
    """Install the chart under a long name next to the operator; print the configuration that it makes for a Prometheus."""
    made = f"{GROUP}/namespaces/default/prometheuses"

    def configuration() -> Any:
        data = json.loads(answer("api/v1/namespaces/default/secrets/prometheus-it"))["data"]
        text = gzip.decompress(base64.b64decode(data["prometheus.yaml.gz"])).decode()
        return yaml.safe_load(text)["scrape_configs"] and text

    with kubernetes(given) as folder:
        create_definitions(given)
        values = [f"--values={CHART}/ci/{case}-values.yaml" for case in ("everything", "sharded")]
        subprocess.run([given["helm"], "install", LONG_NAME, CHART, *values], check=True, stdout=sys.stderr)
        selectors = {f"{kind}Selector": {} for kind in ("probe", "podMonitor", "serviceMonitor", "rule")}
        wanted = {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": {"name": "it"}}
        answer(f"{made}?fieldValidation=Strict", json.dumps(wanted | {"spec": selectors}))
        own = [f"--apiserver={SERVER}", f"--ca-file={folder}/ca.pem", "--kubelet-endpoints=false"]
        own += [f"--{kind}-file={folder}/client.pem" for kind in ("cert", "key")]
        with started(given["prometheus-operator"], *own):
            sys.stdout.write(wait_until(configuration))


def paged(given: dict[str, str]) -> None:
    """Run the lines of the page in their order; print after each what the namespace has: images of DaemonSets, and numbers of the other kinds."""
    kinds = (
        ("apis/apps/v1", "daemonsets"),
        ("api/v1", "configmaps"),
        (GROUP, "podmonitors"),
        (GROUP, "prometheusrules"),
    )

    def there() -> list[Any]:
        items = [
            json.loads(answer(f"{group}/namespaces/monitoring/{kind}"))["items"] for group, kind in kinds
        ]
        pods = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in items[0]]
        return [pods, *map(len, items[1:])]

    with kubernetes(given):
        create_definitions(given)
        os.environ["PATH"] = f"{Path(given['helm']).parent}:{os.environ['PATH']}"
        for line in json.loads(given["lines"]):
            subprocess.run(["sh", "-c", line], check=True, stdout=sys.stderr, cwd=CHART.parents[2])
            sys.stdout.write(json.dumps([line, there()]) + "\n")


def in_a_network_of_its_own(folder: Path, programs: tuple[str, ...], **more: str) -> str:
    """What this file prints as a program."""
    need_root()
    given = {name: need(name) for name in ("etcd", "kube-apiserver", "helm", *programs)}
    given |= {"folder": str(folder), **more}
    tests = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = ran("unshare", "--net", sys.executable, __file__, json.dumps(given), env=tests)
    assert done.returncode == 0, done.stderr[-2000:]
    return str(done.stdout)


@pytest.mark.nightly
def test_the_operator_sends_each_switch_to_one_of_the_pods(tmp_path: Path) -> None:
    """Every pod gets switches, whatever number of shards the Prometheus has, and the pods are those of the StatefulSet."""
    config = yaml.safe_load(
        in_a_network_of_its_own(
            tmp_path, ("prometheus-operator",), definitions=str(cache_folder() / "operator")
        )
    )
    jobs = {job["job_name"].partition("/")[0]: job for job in config["scrape_configs"]}
    assert set(jobs) == {"podMonitor", "probe"}
    switches, found = [f"leaf{number}" for number in range(64)], []
    for shard in ("0", "1"):
        job = json.loads(json.dumps(jobs["probe"]).replace("$(SHARD)", shard))
        (static,) = job["static_configs"]
        static["targets"] = switches
        for rule in job["relabel_configs"]:
            if rule.get("action") == "hashmod" and rule["modulus"] == 1:
                rule["modulus"] = 2
        place = tmp_path / "prometheus.yml"
        kept = ("job_name", "metrics_path", "static_configs", "relabel_configs")
        place.write_text(yaml.safe_dump({"scrape_configs": [{key: job[key] for key in kept}]}))
        done = ran(need("promtool"), "check", "service-discovery", "--timeout=2s", place, job["job_name"])
        assert done.returncode == 0, done.stderr[-2000:]
        found += [one["labels"] for one in json.loads(done.stdout) if one.get("labels")]
    name = re.escape(LONG_NAME[:43].rstrip("-")) + "-switches"
    form = rf"{name}-([0-3])\.{name}-pods\.default\.svc:\d+"
    assert {match[1] for one in found if (match := re.fullmatch(form, one["__address__"]))} == set("0123")
    assert sorted(one["__param_target"] for one in found) == sorted(switches)
    assert {one["job"] for one in found} == {"roce-switches"}


@pytest.mark.nightly
@pytest.mark.release("chart", "metric", "upgrade", "rollback", "remove")
def test_an_upgrade_keeps_what_was_set_and_a_removal_leaves_nothing(tmp_path: Path) -> None:
    """The release before is this chart under a lower version: none is published yet."""
    old = tmp_path / "old"
    shutil.copytree(CHART, old)
    metadata = yaml.safe_load((old / "Chart.yaml").read_text())
    (old / "Chart.yaml").write_text(yaml.safe_dump(metadata | {"version": "0.0.1", "appVersion": "0.0.1"}))
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    printed = in_a_network_of_its_own(tmp_path, (), old=str(old), new=str(CHART), values=str(values))
    steps = dict(map(json.loads, printed.splitlines()))

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
    assert steps["test without"] == ["", 1]
    metric, code = steps["test"]
    assert (metric.partition("{")[0], code) == ("roce_exporter_build_info", 0)
    assert steps["remove"] == {}


ELSEWHERE = re.compile(r"^podman |NODE:| exec |check health")
"""Lines of docs/kubernetes.md that need a registry, a pod or a Prometheus."""


@pytest.mark.nightly
def test_the_page_for_kubernetes_works_line_by_line(tmp_path: Path) -> None:
    """The API server admits all that the page installs; no pod runs."""
    page = (CHART.parents[2] / "docs/kubernetes.md").read_text()
    blocks = "".join(re.findall(r"```shell\n(.*?)```", page, re.DOTALL)).replace("\\\n", "")
    lines = [line for line in blocks.splitlines() if not ELSEWHERE.search(line)]
    definitions = str(cache_folder() / "operator")
    printed = in_a_network_of_its_own(
        tmp_path, ("kubectl",), definitions=definitions, lines=json.dumps(lines)
    )
    there = dict(map(json.loads, printed.splitlines()))
    assert [line.split()[:2] for line in there if line.startswith("helm")] == [
        ["helm", verb] for verb in ("install", "upgrade", "uninstall")
    ]
    image = "registry.example.com/roce-exporter"
    installed, upgraded, removed = (there[line] for line in there if line.startswith("helm"))
    boards = len([*CHART.glob("files/dashboards/*")])
    assert installed == [[f"{image}:0.1.0"], boards, 1, installed[3]]
    assert installed[3] > 0
    assert upgraded == [[f"{image}:0.2.0"], *installed[1:]]
    assert removed == [[], 0, 0, 0]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    (operated if "prometheus-operator" in asked else paged if "lines" in asked else live)(asked)
