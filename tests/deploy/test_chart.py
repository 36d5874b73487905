"""The chart and the manifests for Kustomize: rendered by real Helm, checked against the schemas of Kubernetes 1.25 to 1.37 and of the operator.

No Kubernetes runs here.
"""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, SOURCES, module_of, printed
from tools import need
from write_chart import (
    BUILT,
    CHART,
    KUSTOMIZE,
    NAME,
    PARTS,
    README,
    RULES,
    manifests,
    parts,
    readme,
    rendered,
)

import roce_exporter
from roce_exporter.cli.options import parse_options
from roce_exporter.probe.stamp import DEFAULT_PORT

VERSIONS = [f"1.{minor}" for minor in range(25, 38)]
IMAGE = {"image": {"repository": "registry.example.com/roce-exporter"}}
VALUES = {path.stem: yaml.safe_load(path.read_text()) or {} for path in sorted((CHART / "ci").glob("*.yaml"))}
"""The cases of the chart's own folder ci."""
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
    "switches without a file": (
        {**IMAGE, "switches": {"enabled": True, "withoutUsers": True}},
        "switches.configSecret is empty",
    ),
    "switches without users": (
        {**IMAGE, "switches": {"enabled": True, "configSecret": "x"}},
        "switches.webConfigSecret is empty",
    ),
    "probes without a list": ({**IMAGE, "probe": {"enabled": True}}, "probe.targets is empty"),
    "a probe without targets": (
        {
            **IMAGE,
            "switches": {
                "enabled": True,
                "configSecret": "x",
                "webConfigSecret": "y",
                "probe": {"enabled": True},
            },
        },
        "switches.probe.targets is empty",
    ),
}
FAULTY = {**IMAGE, "tolerations": [{"operater": "Exists"}]}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
LARGEST_SECRET = 1024 * 1024
LONG = {"nameOverride": "n" * 63, "fullnameOverride": "f" * 70}
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
LONGEST = {"Service": 63, "StatefulSet": 52}
"""A pod of a StatefulSet has its name and a hash of ten characters in a label."""

Document = dict[str, Any]


@pytest.fixture(scope="module")
def answer() -> tuple[Path, dict[str, Any]]:
    """The packaged chart, and what Helm renders of each case."""
    refused = {name: values for name, (values, _) in REFUSED.items()}
    long = VALUES["everything-values"] | VALUES["sharded-values"] | LONG
    return rendered({**VALUES, **refused, "long": long, "faulty": FAULTY}, VERSIONS)


@pytest.fixture(scope="module")
def cases(answer) -> dict[str, Any]:
    return answer[1]


def of_kind(cases: dict[str, Any], case: str, kind: str) -> list[Document]:
    return [document for document in cases[f"{case}-values"]["documents"] if document["kind"] == kind]


def pod_of(cases: dict[str, Any], case: str, kind: str = "DaemonSet") -> Document:
    (workload,) = of_kind(cases, case, kind)
    return dict(workload["spec"]["template"]["spec"])


def test_the_chart_has_the_exporters_version_and_the_metadata_that_registries_show() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == roce_exporter.__version__
    assert {
        "description",
        "type",
        "kubeVersion",
        "keywords",
        "maintainers",
        "annotations",
        "home",
    } <= chart.keys()
    assert all(
        link["url"].startswith("https://")
        for link in yaml.safe_load(chart["annotations"]["artifacthub.io/links"])
    )
    assert chart["annotations"]["artifacthub.io/license"] == "Apache-2.0"
    assert f">={VERSIONS[0]}.0" in chart["kubeVersion"]


@pytest.mark.ci
@pytest.mark.release("checksums", "signed")
def test_nothing_is_signed_while_the_owners_addresses_are_not_set(tmp_path) -> None:
    done = subprocess.run(
        [DEPLOY / "release/build.sh", tmp_path],
        env=os.environ | {"RELEASE_KEY": "nobody"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    why = "set Homepage in pyproject.toml in place of owner.example, then `make generate`"
    assert done.stderr.splitlines()[-1] == why
    assert list(tmp_path.iterdir()) == []


def test_the_owner_sets_one_address_and_all_others_follow(tmp_path, capsys) -> None:
    """Whatever the address before was, also one that begins with the new one or is its beginning."""
    addresses = module_of(DEPLOY / "release/addresses.py")
    named = [ROOT / name for name in (*SOURCES, "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    named = [one for name in named for one in (name.rglob("*") if name.is_dir() else [name])]
    named = [one for one in named if one.is_file() and addresses.UNSET.encode() in one.read_bytes()]
    found = {str(one.relative_to(ROOT)) for one in named if one.suffix != ".pyc"}
    assert found == {*addresses.FILES, "deploy/release/addresses.py"}, "one of them is forgotten"
    for name in addresses.FILES:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
    project = tmp_path / "pyproject.toml"
    for home in ("https://forge.example/a/roce", "https://forge.example/a/roce/b", "https://forge.example/a"):
        old = re.search('^Homepage = "(.+)"$', project.read_text(), re.MULTILINE)
        assert old
        project.write_text(project.read_text().replace(old[0], f'Homepage = "{home}"'))
        assert addresses.main(tmp_path, "--check") == 2
        said = f"other addresses than Homepage in pyproject.toml: {' '.join(addresses.FILES)}"
        assert said in capsys.readouterr().err
        assert (addresses.main(tmp_path), addresses.main(tmp_path, "--check")) == (0, 0)
        assert yaml.safe_load((tmp_path / addresses.CHART).read_text())["home"] == home
        urls = tomllib.loads(project.read_text())["project"]["urls"].values()
        assert {home, f"{home}/issues", f"{home}/blob/main/CHANGELOG.md"} <= set(urls)
    assert not [name for name in addresses.FILES if addresses.UNSET in (tmp_path / name).read_text()]


def test_the_readme_has_every_value() -> None:
    """Write it again with `make generate`."""
    assert README.read_text() == readme()


def test_nothing_in_the_chart_is_a_copy() -> None:
    """Every rules file and every dashboard of the repository is linked, and each link leads there."""
    originals = {*(ROOT / "alerts").glob("*.rules.yml"), *(ROOT / "dashboards").glob("*.rules.yml")}
    originals |= set((ROOT / "dashboards").glob("*.json"))
    linked = [*CHART.glob("files/rules/*"), *CHART.glob("files/dashboards/*")]
    assert all(path.is_symlink() for path in linked)
    assert {path.resolve() for path in linked} == originals


def test_hosts_are_upgraded_a_tenth_at_a_time_by_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}


def test_discovery_selects_the_port_and_the_label_that_the_chart_has() -> None:
    template = (CHART / "templates/daemonset.yaml").read_text()
    assert "- name: metrics\n              containerPort: {{ .Values.port }}" in template
    jobs = yaml.safe_load((DEPLOY / "prometheus/discovery.yml").read_text())["scrape_configs"]
    (job,) = (one for one in jobs if one["job_name"] == "roce-kubernetes")
    (discovery,) = job["kubernetes_sd_configs"]
    assert discovery["selectors"] == [{"role": "pod", "label": f"app.kubernetes.io/name={NAME}"}]


@pytest.mark.ci
@pytest.mark.parametrize("case", VALUES)
@pytest.mark.release("chart", "install")
def test_every_case_is_right_for_every_kubernetes_and_for_the_exporter(cases, case) -> None:
    found = cases[case]
    assert (found["error"], found["lint"], found["problems"]) == (None, [], [])
    container = pod_of(cases, case.removesuffix("-values"))["containers"][0]
    (port,) = container["ports"]
    assert parse_options(container["args"]).web_listen_address == [f":{port['containerPort']}"]
    assert container["livenessProbe"].get("httpGet", {}).get("path", "/-/healthy") == "/-/healthy"


@pytest.mark.ci
def test_names_and_labels_are_short_enough_whatever_the_release_is_called(cases) -> None:
    def labels(part: Any) -> Iterator[str]:
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if key in ("labels", "matchLabels"):
                yield from value.values()
            elif isinstance(value, dict | list):
                yield from labels(value)

    for document in cases["long"]["documents"]:
        assert len(document["metadata"]["name"]) <= LONGEST.get(document["kind"], 253)
        if document["kind"] == "PrometheusRule":
            continue  # labels of alerts
        assert [label for label in labels(document) if not LABEL.fullmatch(label)] == []


@pytest.mark.ci
def test_a_wrong_field_is_found_in_every_version(cases) -> None:
    """Otherwise the test before would prove nothing. Helm's schema passes tolerations through unchecked."""
    problems = [one for one in cases["faulty"]["problems"] if one.startswith("DaemonSet")]
    assert len(problems) == len(VERSIONS)
    assert all("operater" in problem for problem in problems)


@pytest.mark.ci
@pytest.mark.parametrize("case", REFUSED)
def test_wrong_values_are_refused_with_the_reason(cases, case) -> None:
    assert REFUSED[case][1] in (cases[case]["error"] or "")


@pytest.mark.ci
def test_no_kind_grants_rights(cases) -> None:
    kinds = {document["kind"] for case in VALUES for document in cases[case]["documents"]}
    assert kinds == {
        *("ConfigMap", "DaemonSet", "Deployment", "NetworkPolicy", "Pod", "PodMonitor", "Probe"),
        *("PrometheusRule", "Service", "ServiceAccount", "ServiceMonitor", "StatefulSet"),
    }


@pytest.mark.ci
def test_by_default_it_has_only_the_hosts_network(cases) -> None:
    pod = pod_of(cases, "default")
    assert (pod["hostNetwork"], pod["automountServiceAccountToken"]) == (True, False)
    assert not pod.keys() & {"volumes", "hostPID"}
    context = pod["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    user = f"USER {context['runAsUser']}:{context['runAsGroup']}\n"
    assert user in (DEPLOY / "container/Containerfile").read_text()
    (container,) = pod["containers"]
    assert container["securityContext"] == RESTRICTED
    assert (pod["tolerations"], pod["nodeSelector"]) == (
        [{"operator": "Exists"}],
        {"kubernetes.io/os": "linux"},
    )


@pytest.mark.ci
def test_each_privilege_is_what_its_value_says_and_no_more(cases) -> None:
    """Kubernetes refuses `privileged` together with a ban on privilege escalation."""
    pod = pod_of(cases, "privileges")
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert {volume["hostPath"]["path"] for volume in pod["volumes"]} == {"/sys", "/sys/kernel/debug"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"--path.sysfs={mounts['sysfs']}" in container["args"]
    assert mounts["debugfs"] == f"{mounts['sysfs']}/kernel/debug"
    pod = pod_of(cases, "switches")
    (container,) = pod["containers"]
    assert container["securityContext"] == {"readOnlyRootFilesystem": True, "privileged": True}
    assert container["volumeMounts"] == [{"name": "kernel-log", "mountPath": "/dev/kmsg", "readOnly": True}]
    assert pod["volumes"] == [{"name": "kernel-log", "hostPath": {"path": "/dev/kmsg", "type": "CharDevice"}}]


@pytest.mark.ci
def test_the_list_of_system_calls_is_a_file_of_the_node(cases) -> None:
    profile = pod_of(cases, "everything")["securityContext"]["seccompProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "profiles/roce-exporter.json"}
    assert (DEPLOY / "seccomp" / Path(profile["localhostProfile"]).name).is_file()
    assert f"/var/lib/kubelet/seccomp/{profile['localhostProfile']}" in (CHART / "values.yaml").read_text()


@pytest.mark.ci
def test_owners_need_the_hosts_processes_and_then_a_user_of_their_own(cases) -> None:
    """The exporter must not have the user ID of other images, whose processes it could then inspect."""
    pod, usual = pod_of(cases, "owners"), pod_of(cases, "default")["securityContext"]
    context = pod["securityContext"]
    assert (pod["hostPID"], context["runAsNonRoot"]) == (True, True)
    assert usual["runAsUser"] != context["runAsUser"] == context["runAsGroup"] > 0
    assert context["fsGroup"] == usual["fsGroup"], "it reads the Secret by its group"
    assert parse_options(pod["containers"][0]["args"]).owners_anonymous is True
    without = pod_of(cases, "sharded")
    assert "hostPID" not in without
    assert without["securityContext"] == usual
    options = parse_options(without["containers"][0]["args"])
    assert (options.source_disable, options.owners_anonymous) == (["owners"], False)


@pytest.mark.ci
def test_nodes_are_chosen_by_the_label_that_is_given(cases) -> None:
    label = VALUES["everything-values"]["rdmaNodeLabel"]
    assert pod_of(cases, "everything")["nodeSelector"][label] == "true"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("case", "kind", "endpoints", "added"),
    [
        ("everything", "PodMonitor", "podMetricsEndpoints", {"cluster": "fabric-a"}),
        ("tls", "ServiceMonitor", "endpoints", {}),
    ],
)
def test_monitors_select_the_pods_and_name_the_job_as_the_alerts_want(
    cases, case, kind, endpoints, added
) -> None:
    (monitor,) = of_kind(cases, case, kind)
    (daemon_set,) = of_kind(cases, case, "DaemonSet")
    selected = monitor["spec"]["selector"]["matchLabels"]
    assert selected.items() <= daemon_set["spec"]["template"]["metadata"]["labels"].items()
    for service in of_kind(cases, case, "Service"):
        assert selected.items() <= service["metadata"]["labels"].items()
        assert service["spec"]["selector"] == selected
    (endpoint,) = monitor["spec"][endpoints]
    constant = {
        rule["targetLabel"]: rule["replacement"] for rule in endpoint["relabelings"] if "replacement" in rule
    }
    assert (constant, endpoint["port"]) == ({"job": "roce", **added}, "metrics")


@pytest.mark.ci
def test_the_prober_next_to_the_exporter_has_no_privileges_and_a_job_of_its_own(cases) -> None:
    _, container = pod_of(cases, "probe")["containers"]
    assert container["securityContext"] == RESTRICTED | {"seccompProfile": {"type": "RuntimeDefault"}}
    *arguments, config, _ = container["args"]
    assert config == "--config.file=/etc/roce-exporter-probe/probe.yml"
    options = parse_options(arguments)
    ports = {port["name"]: (port["containerPort"], port["protocol"]) for port in container["ports"]}
    assert ports["probe"] == (DEFAULT_PORT, "UDP")
    assert (options.command, options.web_listen_address) == ("probe", [f":{ports['probe-metrics'][0]}"])
    assert options.probe_targets == VALUES["probe-values"]["probe"]["targets"]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/host/sys", "/etc/roce-exporter", "/etc/roce-exporter-probe"}
    (monitor,) = of_kind(cases, "probe", "PodMonitor")
    jobs = {
        one["port"]: one["relabelings"][0]["replacement"] for one in monitor["spec"]["podMetricsEndpoints"]
    }
    assert jobs == {"metrics": "roce", "probe-metrics": "roce-probe"}
    (policy,) = of_kind(cases, "probe", "NetworkPolicy")
    assert policy["spec"]["ingress"][1] == {"ports": [{"port": "probe", "protocol": "UDP"}]}


@pytest.mark.ci
def test_the_pod_for_switches_has_no_privileges_and_accepts_its_arguments(cases) -> None:
    pod = pod_of(cases, "switches", "Deployment")
    (container,) = pod["containers"]
    assert "hostNetwork" not in pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == RESTRICTED
    assert container["image"] == "registry.example.com/roce-exporter-switches:1"
    options = parse_options(container["args"])
    (port,) = container["ports"]
    assert (options.command, options.web_listen_address) == ("serve", [f":{port['containerPort']}"])
    mounts = [Path(mount["mountPath"]) for mount in container["volumeMounts"]]
    assert {Path(options.switches_config).parent, Path(options.web_config_file).parent} == set(mounts)


@pytest.mark.ci
@pytest.mark.parametrize("case", [case.removesuffix("-values") for case in VALUES])
def test_the_pod_of_helm_test_is_where_an_exporter_is_and_nothing_selects_it(cases, case) -> None:
    (pod,), hosts = of_kind(cases, case, "Pod"), pod_of(cases, case)
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["securityContext"]) == (hosts["containers"][0]["image"], RESTRICTED)
    for key in ("hostNetwork", "nodeSelector", "affinity", "tolerations", "imagePullSecrets"):
        assert pod["spec"].get(key) == hosts.get(key)
    assert f"{hosts['containers'][0]['ports'][0]['containerPort']}" in container["args"][0]
    for kind in ("DaemonSet", "PodMonitor", "ServiceMonitor", "Deployment", "StatefulSet"):
        for one in of_kind(cases, case, kind):
            selected = one["spec"]["selector"]["matchLabels"].items()
            assert not selected <= pod["metadata"]["labels"].items()


@pytest.mark.ci
def test_nothing_of_the_hosts_selects_the_pod_for_switches(cases) -> None:
    (deployment,) = of_kind(cases, "switches", "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    (daemon_set,) = of_kind(cases, "switches", "DaemonSet")
    assert not daemon_set["spec"]["selector"]["matchLabels"].items() <= labels
    (service,) = of_kind(cases, "switches", "Service")
    assert service["spec"]["selector"].items() <= labels
    policies = [one["spec"] for one in of_kind(cases, "switches", "NetworkPolicy")]
    matching = [one for one in policies if one["podSelector"]["matchLabels"].items() <= labels]
    assert [bool(one["egress"]) for one in matching] == [True]
    (probe,) = of_kind(cases, "switches", "Probe")
    name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
    assert probe["spec"]["prober"] == {"url": f"{name}.monitoring.svc:{port}", "path": "/probe"}
    assert probe["spec"]["jobName"].startswith("roce")
    assert probe["spec"]["targets"]["staticConfig"]["static"] == ["leaf1", "spine1"]
    assert probe["spec"]["basicAuth"]["username"]["name"] == "roce-scrape"


@pytest.mark.ci
def test_a_target_goes_to_one_of_the_pods_as_without_the_operator(cases) -> None:
    (pods,) = of_kind(cases, "sharded", "StatefulSet")
    assert not of_kind(cases, "sharded", "Deployment")
    headless = next(
        one for one in of_kind(cases, "sharded", "Service") if one["spec"].get("clusterIP") == "None"
    )
    assert (pods["spec"]["replicas"], pods["spec"]["serviceName"]) == (4, headless["metadata"]["name"])
    (probe,) = of_kind(cases, "sharded", "Probe")
    hashed, address = probe["spec"]["targets"]["staticConfig"]["relabelingConfigs"]
    job = yaml.safe_load((DEPLOY / "prometheus/switches-sharding.yml").read_text())["scrape_configs"][1]
    known = next(one for one in job["relabel_configs"] if one.get("action") == "hashmod")
    assert (hashed["modulus"], hashed["action"]) == (known["modulus"], known["action"])
    assert hashed["targetLabel"] == address["sourceLabels"][0] != "__tmp_hash", "the operator has its own"
    # Both hash the name of the switch, which the operator has moved to the parameter.
    assert (hashed["sourceLabels"], known["source_labels"]) == (["__param_target"], ["__address__"])
    name, port = pods["metadata"]["name"], headless["spec"]["ports"][0]["port"]
    assert address["targetLabel"] == "__address__"
    assert address["replacement"] == f"{name}-$1.{name}-pods.monitoring.svc:{port}"


@pytest.mark.ci
def test_the_packaged_chart_holds_the_files_and_no_links(answer) -> None:
    with tarfile.open(answer[0]) as package:
        members = {member.name: member for member in package.getmembers()}
        assert all(member.isfile() for member in members.values())
        for path in [*CHART.glob("files/rules/*"), *CHART.glob("files/dashboards/*")]:
            packed = package.extractfile(members[f"roce-exporter/{path.relative_to(CHART)}"])
            assert packed is not None
            assert packed.read() == path.read_bytes()
    assert not [name for name in members if "/ci/" in name]


@pytest.mark.ci
def test_rules_and_dashboards_are_delivered_unchanged(cases) -> None:
    rules = of_kind(cases, "everything", "PrometheusRule")
    delivered = {group["name"]: group for rule in rules for group in rule["spec"]["groups"]}
    originals = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in CHART.glob("files/rules/*.yml")]
    assert delivered == {group["name"]: group for file in originals for group in file["groups"]}
    maps = of_kind(cases, "everything", "ConfigMap")
    boards = {name: text for document in maps for name, text in document["data"].items()}
    assert boards == {path.name: path.read_text() for path in CHART.glob("files/dashboards/*.json")}
    assert all(document["metadata"]["labels"]["grafana_dashboard"] == "1" for document in maps)
    assert max(len(text.encode()) for text in boards.values()) < LARGEST_SECRET


@pytest.mark.ci
def test_a_release_fits_into_the_secret_where_helm_keeps_it(cases) -> None:
    """Chart and manifest together, gzipped, twice in base64 (once Helm's, once the API's); etcd takes 1 MiB with a margin."""
    files = {str(path): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    release = json.dumps([files, cases["everything-values"]["documents"]]).encode()
    assert len(base64.b64encode(base64.b64encode(gzip.compress(release)))) < LARGEST_SECRET * 3 // 4


@pytest.mark.nightly
@pytest.mark.parametrize("case", VALUES)
def test_helm_3_renders_the_same(cases, case) -> None:
    """Most clusters still have Helm 3, which assumes Kubernetes 1.20 where there is no cluster."""
    flags = ("--namespace=monitoring", f"--kube-version={VERSIONS[-1]}", f"--values={CHART}/ci/{case}.yaml")
    text = printed(need("helm"), "template", "demo", CHART, *flags)

    def key(document: Document) -> tuple[str, str]:
        return document["kind"], document["metadata"]["name"]

    made = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
    assert sorted(made, key=key) == sorted(cases[case]["documents"], key=key)


# --- Kustomize


def kustomization(folder: Path) -> Document:
    return dict(yaml.safe_load((folder / "kustomization.yaml").read_text()))


@pytest.mark.parametrize("part", PARTS)
def test_each_kustomization_names_the_files_that_are_there(part) -> None:
    folder = KUSTOMIZE / part if part == "base" else KUSTOMIZE / "components" / part
    content = kustomization(folder)
    assert content["kind"] == ("Kustomization" if part == "base" else "Component")
    named = [*content.get("resources", []), *(patch["path"] for patch in content.get("patches", []))]
    assert {name for name in named if "/" not in name} == {
        path.name for path in folder.iterdir() if path.name != "kustomization.yaml"
    }
    assert all((folder / name).exists() or name == BUILT for name in named)


@pytest.mark.ci
def test_the_manifests_are_what_the_chart_renders() -> None:
    """Write them again with `make generate`. `make dist` makes those with rules."""
    expected = manifests()
    assert {path: (KUSTOMIZE / path).read_text() for path in expected} == expected
    found = [yaml.safe_load(text) for path, text in expected.items() if not path.endswith("-patch.yaml")]
    names = [f"{document['kind']}/{document['metadata']['name']}" for document in found]
    assert sorted([*names, *RULES]) == sorted({name for part in parts().values() for name in part})
    built = module_of(DEPLOY / "operator_rules.py").documents()
    listed = built.pop("kustomization.yaml")
    assert listed["resources"] == [*built] == [f"{name}.yml" for name in RULES.values()]
    specs = {content["metadata"]["name"]: content["spec"] for content in built.values()}
    assert specs == {name: parts()["operator"][chart]["spec"] for chart, name in RULES.items()}
