"""The chart, rendered by real Helm and checked against the schemas of Kubernetes 1.25 to 1.37 and of the Prometheus operator.

No Kubernetes runs here: admission, scheduling and the /sys that a runtime shows are not tested.
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, helm_program, need, tool_environment
from write_chart_readme import README, comments, leaves, readme

import roce_exporter
from roce_exporter.cli.options import parse_options

pytestmark = pytest.mark.ci

CHART = DEPLOY / "helm/roce-exporter"
VERSIONS = [f"1.{minor}" for minor in range(25, 38)]
IMAGE = {"image": {"repository": "registry.example.com/roce-exporter"}}
CI_CASES = {
    path.stem: yaml.safe_load(path.read_text()) or {} for path in sorted((CHART / "ci").glob("*.yaml"))
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no image": ({}, "image.repository is empty"),
    "misspelt key": ({**IMAGE, "prot": 1}, "'prot' not allowed"),
    "misspelt key below": ({**IMAGE, "podMonitor": {"enable": True}}, "'enable' not allowed"),
    "impossible port": ({**IMAGE, "port": 0}, "/port"),
    "no digest": ({"image": {"repository": "x", "digest": "latest"}}, "/image/digest"),
    "no flag": ({**IMAGE, "flags": ["collect.timeout=3"]}, "/flags/0"),
    "both monitors": (
        {**IMAGE, "serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
        "scraped twice",
    ),
    "a list without a file": ({**IMAGE, "seccompProfile": {"type": "Localhost"}}, "localhostProfile"),
    "a file that is not used": ({**IMAGE, "seccompProfile": {"localhostProfile": "x"}}, "/seccompProfile"),
    "switches without a file": ({**IMAGE, "switches": {"enabled": True}}, "switches.configSecret is empty"),
    "a probe without targets": (
        {**IMAGE, "switches": {"enabled": True, "configSecret": "x", "probe": {"enabled": True}}},
        "switches.probe.targets is empty",
    ),
}
FAULTY = {**IMAGE, "tolerations": [{"operater": "Exists"}]}
LARGEST_SECRET = 1024 * 1024

Documents = list[dict[str, Any]]


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The documents that Helm renders from the chart, and the results of the schema checks."""
    cases = CI_CASES | {name: values for name, (values, _) in REFUSED.items()} | {"faulty": FAULTY}
    request = {
        "chart": str(CHART),
        "folder": str(tmp_path_factory.mktemp("chart")),
        "versions": VERSIONS,
        "cases": cases,
    }
    command = [tool_environment("kubernetes") / "python", Path(__file__).with_name("chart_check.py")]
    answer = subprocess.run(command, input=json.dumps(request), stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(answer.stdout))


def of_kind(answers: dict[str, Any], case: str, kind: str) -> Documents:
    return [document for document in answers["cases"][case]["documents"] if document["kind"] == kind]


def pod_of(answers: dict[str, Any], case: str) -> dict[str, Any]:
    (daemon_set,) = of_kind(answers, case, "DaemonSet")
    return dict(daemon_set["spec"]["template"]["spec"])


@pytest.mark.parametrize("case", CI_CASES)
def test_every_case_is_right_for_every_kubernetes(answers: dict[str, Any], case: str) -> None:
    answer = answers["cases"][case]
    assert (answer["error"], answer["lint"], answer["problems"]) == (None, [], [])
    assert answer["documents"]


def test_a_wrong_field_is_found_in_every_version(answers: dict[str, Any]) -> None:
    """Otherwise the test before would prove nothing. Helm's schema passes tolerations through unchecked."""
    problems = answers["cases"]["faulty"]["problems"]
    assert len(problems) == len(VERSIONS)
    assert all("operater" in problem for problem in problems)


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_values_are_refused_with_the_reason(answers: dict[str, Any], case: str) -> None:
    assert REFUSED[case][1] in (answers["cases"][case]["error"] or "")


def test_the_cases_render_every_kind_and_no_kind_that_grants_rights(answers: dict[str, Any]) -> None:
    kinds = {document["kind"] for case in CI_CASES for document in answers["cases"][case]["documents"]}
    assert kinds == {
        "ConfigMap",
        "DaemonSet",
        "Deployment",
        "NetworkPolicy",
        "PodMonitor",
        "Probe",
        "PrometheusRule",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    }


def test_by_default_it_has_only_the_hosts_network(answers: dict[str, Any]) -> None:
    pod = pod_of(answers, "default-values")
    assert pod["hostNetwork"] is True
    assert pod["automountServiceAccountToken"] is False
    assert "volumes" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}


def test_the_user_is_the_images(answers: dict[str, Any]) -> None:
    context = pod_of(answers, "default-values")["securityContext"]
    user = f"USER {context['runAsUser']}:{context['runAsGroup']}\n"
    assert user in (DEPLOY / "container/Containerfile").read_text()


def test_the_exporters_own_list_of_system_calls_is_a_file_of_the_node(answers: dict[str, Any]) -> None:
    profile = pod_of(answers, "everything-values")["securityContext"]["seccompProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "profiles/roce-exporter.json"}
    assert (DEPLOY / "seccomp" / Path(profile["localhostProfile"]).name).is_file()
    comment = comments((CHART / "values.yaml").read_text())["seccompProfile"]
    assert f"/var/lib/kubelet/seccomp/{profile['localhostProfile']}" in comment


def test_privileges_are_one_capability_and_read_only_places(answers: dict[str, Any]) -> None:
    pod = pod_of(answers, "privileges-values")
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert {volume["hostPath"]["path"] for volume in pod["volumes"]} == {"/sys", "/sys/kernel/debug"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"--path.sysfs={mounts['sysfs']}" in container["args"]
    assert mounts["debugfs"] == f"{mounts['sysfs']}/kernel/debug"


def test_the_kernel_log_is_one_device_of_a_privileged_container(answers: dict[str, Any]) -> None:
    """Kubernetes refuses `privileged` together with a ban on privilege escalation."""
    pod = pod_of(answers, "kernel-log-values")
    (container,) = pod["containers"]
    assert container["securityContext"] == {"readOnlyRootFilesystem": True, "privileged": True}
    assert container["volumeMounts"] == [{"name": "kernel-log", "mountPath": "/dev/kmsg", "readOnly": True}]
    assert pod["volumes"] == [{"name": "kernel-log", "hostPath": {"path": "/dev/kmsg", "type": "CharDevice"}}]


def test_owners_need_the_hosts_processes_and_then_a_user_of_their_own(answers: dict[str, Any]) -> None:
    """The exporter must not have the user ID of other images, whose processes it could then inspect."""
    assert "hostPID" not in pod_of(answers, "default-values")
    pod = pod_of(answers, "owners-values")
    assert pod["hostPID"] is True
    usual = pod_of(answers, "default-values")["securityContext"]
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert usual["runAsUser"] != context["runAsUser"] == context["runAsGroup"] > 0
    assert context["fsGroup"] == usual["fsGroup"], "it reads the Secret by its group"
    assert parse_options(pod["containers"][0]["args"]).owners_anonymous is True


def test_without_owners_there_is_no_privilege_for_them(answers: dict[str, Any]) -> None:
    pod = pod_of(answers, "ownerless-values")
    assert "hostPID" not in pod
    assert pod["securityContext"] == pod_of(answers, "default-values")["securityContext"]
    options = parse_options(pod["containers"][0]["args"])
    assert (options.source_disable, options.owners_anonymous) == (["owners"], False)


@pytest.mark.parametrize("case", CI_CASES)
def test_the_exporter_accepts_its_arguments_and_listens_on_the_given_address(
    answers: dict[str, Any], case: str
) -> None:
    (container,) = pod_of(answers, case)["containers"]
    options = parse_options(container["args"])
    (port,) = container["ports"]
    assert options.web_listen_address == [f":{port['containerPort']}"]
    path = container["livenessProbe"].get("httpGet", {}).get("path", "/-/healthy")
    assert path == "/-/healthy"


def test_the_chart_is_of_the_exporters_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == roce_exporter.__version__


def test_the_chart_has_the_metadata_that_registries_show() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {"description", "type", "kubeVersion", "keywords", "maintainers", "annotations"} <= chart.keys()
    assert chart["annotations"]["artifacthub.io/license"] == "Apache-2.0"
    assert f">={VERSIONS[0]}.0" in chart["kubeVersion"]


def test_the_readme_has_every_value() -> None:
    """Write it again with `make generate`."""
    assert README.read_text() == readme()


def test_a_value_has_its_own_comment_and_the_first_of_a_group_also_the_groups() -> None:
    text = "# all of it\na:\n  # one\n  b: 1\n  c: 2\n\n# no key follows\n\nd: {}\n"
    assert comments(text) == {"a": "all of it", "a.b": "one", "a.c": "", "d": ""}
    schema = {"properties": {"a": {"properties": {"b": {}, "c": {}}}, "d": {"type": "object"}}}
    assert list(leaves(yaml.safe_load(text), schema)) == [("a.b", 1), ("a.c", 2), ("d", {})]


def test_nodes_are_chosen_by_the_label_that_is_given(answers: dict[str, Any]) -> None:
    label = CI_CASES["everything-values"]["rdmaNodeLabel"]
    assert pod_of(answers, "everything-values")["nodeSelector"][label] == "true"


@pytest.mark.parametrize(
    ("case", "kind", "endpoints"),
    [
        ("everything-values", "PodMonitor", "podMetricsEndpoints"),
        ("tls-values", "ServiceMonitor", "endpoints"),
    ],
)
def test_monitors_select_the_pods_and_name_the_job_as_the_alerts_want(
    answers: dict[str, Any], case: str, kind: str, endpoints: str
) -> None:
    (monitor,) = of_kind(answers, case, kind)
    (daemon_set,) = of_kind(answers, case, "DaemonSet")
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert selected <= daemon_set["spec"]["template"]["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"][endpoints]
    constant = {
        rule["targetLabel"]: rule["replacement"] for rule in endpoint["relabelings"] if "replacement" in rule
    }
    assert constant == {"job": "roce"} | ({"cluster": "fabric-a"} if kind == "PodMonitor" else {})
    assert endpoint["port"] == "metrics"


def test_the_service_selects_the_pods_and_has_the_labels_of_the_monitor(answers: dict[str, Any]) -> None:
    (service,) = of_kind(answers, "tls-values", "Service")
    (monitor,) = of_kind(answers, "tls-values", "ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"] == monitor["spec"]["selector"]["matchLabels"]


def test_the_pod_for_switches_has_no_privileges_and_accepts_its_arguments(answers: dict[str, Any]) -> None:
    (deployment,) = of_kind(answers, "switches-values", "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "hostNetwork" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == "registry.example.com/roce-exporter-switches:1"
    options = parse_options(container["args"])
    (port,) = container["ports"]
    assert options.command == "switches"
    assert options.web_listen_address == [f":{port['containerPort']}"]
    mounts = [Path(mount["mountPath"]) for mount in container["volumeMounts"]]
    assert {Path(options.config_file).parent, Path(options.web_config_file).parent} == set(mounts)


def test_nothing_of_the_hosts_selects_the_pod_for_switches(answers: dict[str, Any]) -> None:
    (deployment,) = of_kind(answers, "switches-values", "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (daemon_set,) = of_kind(answers, "switches-values", "DaemonSet")
    assert not daemon_set["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (service,) = of_kind(answers, "switches-values", "Service")
    assert service["spec"]["selector"].items() <= labels.items()
    policies = of_kind(answers, "switches-values", "NetworkPolicy")
    matching = [
        one for one in policies if one["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    ]
    assert [bool(one["spec"]["egress"]) for one in matching] == [True]


def test_the_probe_names_the_service_and_each_target(answers: dict[str, Any]) -> None:
    (probe,) = of_kind(answers, "switches-values", "Probe")
    (service,) = of_kind(answers, "switches-values", "Service")
    name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
    assert probe["spec"]["prober"] == {"url": f"{name}.monitoring.svc:{port}", "path": "/probe"}
    assert probe["spec"]["jobName"].startswith("roce")
    assert probe["spec"]["targets"]["staticConfig"]["static"] == ["leaf1", "spine1"]
    assert probe["spec"]["basicAuth"]["username"]["name"] == "roce-scrape"


def test_nothing_in_the_chart_is_a_copy() -> None:
    """Every rules file and every dashboard of the repository is linked, and each link leads there."""
    originals = {*(ROOT / "alerts").glob("*.rules.yml"), *(ROOT / "dashboards").glob("*.rules.yml")}
    originals |= set((ROOT / "dashboards").glob("*.json"))
    linked = [*CHART.glob("files/rules/*"), *CHART.glob("files/dashboards/*")]
    assert all(path.is_symlink() for path in linked)
    assert {path.resolve() for path in linked} == originals


def test_the_packaged_chart_holds_the_files_and_no_links(answers: dict[str, Any]) -> None:
    with tarfile.open(answers["package"]) as package:
        members = {member.name: member for member in package.getmembers()}
        assert all(member.isfile() for member in members.values())
        for path in [*CHART.glob("files/rules/*"), *CHART.glob("files/dashboards/*")]:
            packed = package.extractfile(members[f"roce-exporter/{path.relative_to(CHART)}"])
            assert packed is not None
            assert packed.read() == path.read_bytes()
    assert not [name for name in members if "/ci/" in name]


def test_prometheus_accepts_the_rules_as_they_are_delivered(answers: dict[str, Any], tmp_path: Path) -> None:
    promtool = need("promtool", "prometheus")
    delivered = []
    for rule in of_kind(answers, "everything-values", "PrometheusRule"):
        path = tmp_path / f"{rule['metadata']['name']}.yml"
        path.write_text(yaml.safe_dump(rule["spec"]))
        subprocess.run([promtool, "check", "rules", str(path)], check=True, stdout=subprocess.PIPE)
        delivered += rule["spec"]["groups"]
    originals = [*CHART.glob("files/rules/*.yml")]
    wanted = [group for path in originals for group in yaml.safe_load(path.read_text())["groups"]]
    assert sorted(delivered, key=lambda group: group["name"]) == sorted(
        wanted, key=lambda group: group["name"]
    )


def test_grafana_gets_the_dashboards_unchanged(answers: dict[str, Any]) -> None:
    maps = of_kind(answers, "everything-values", "ConfigMap")
    delivered = {name: text for document in maps for name, text in document["data"].items()}
    assert delivered == {path.name: path.read_text() for path in CHART.glob("files/dashboards/*.json")}
    assert all(document["metadata"]["labels"]["grafana_dashboard"] == "1" for document in maps)
    assert max(len(text.encode()) for text in delivered.values()) < LARGEST_SECRET


def test_a_release_fits_into_the_secret_where_helm_keeps_it(answers: dict[str, Any]) -> None:
    """Chart and manifest together, gzipped, twice in base64 (once Helm's, once the API's); etcd takes 1 MiB with a margin."""
    files = {str(path): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    release = json.dumps([files, answers["cases"]["everything-values"]["documents"]]).encode()
    assert len(base64.b64encode(base64.b64encode(gzip.compress(release)))) < LARGEST_SECRET * 3 // 4


@pytest.mark.parametrize("case", CI_CASES)
def test_helm_3_renders_the_same(answers: dict[str, Any], case: str) -> None:
    """Most clusters still have Helm 3."""
    helm = helm_program()
    kubernetes = f"--kube-version={VERSIONS[-1]}"  # without a cluster Helm 3 assumes version 1.20
    values = f"--values={CHART}/ci/{case}.yaml"
    command = [helm, "template", "demo", CHART, "--namespace=monitoring", kubernetes, values]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    made = [document for document in yaml.safe_load_all(text) if document]
    known = answers["cases"][case]["documents"]

    def key(document: dict[str, Any]) -> tuple[str, str]:
        return document["kind"], document["metadata"]["name"]

    assert sorted(made, key=key) == sorted(known, key=key)
