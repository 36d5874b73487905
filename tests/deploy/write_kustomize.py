"""The manifests of deploy/kustomize/, from what Helm renders of the chart: `python tests/deploy/write_kustomize.py` writes them.

Without what only Helm or an installation knows: two labels and the namespace. Kustomize sets the namespace and the images.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from deploy_tools import DEPLOY, tool_environment

KUSTOMIZE = DEPLOY / "kustomize"
NAME = "roce-exporter"
IMAGE = {"image": {"repository": NAME}}
CASES: dict[str, dict[str, Any]] = {
    "base": IMAGE,
    "operator": {**IMAGE, "podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
    "owners": {**IMAGE, "owners": {"hostPID": True}},
    "switches": {
        **IMAGE,
        "switches": {
            "enabled": True,
            "configSecret": f"{NAME}-switches",
            "image": {"repository": f"{NAME}-switches"},
        },
    },
}
"""The base and each component, with the values of the chart that they are equal to."""

HEAD = "# Written from deploy/helm/ by `make generate`; do not edit.\n"
HELMS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
RULES = f"PrometheusRule/{NAME}-roce"
"""In the repository as alerts/roce.prometheusrule.yml, which the component refers to."""

Document = dict[str, Any]


def rendered() -> dict[str, dict[str, Document]]:
    """Per case its documents by kind and name, as Helm renders them, without what only Helm or an installation knows."""
    with tempfile.TemporaryDirectory() as folder:
        chart = str(DEPLOY / "helm/roce-exporter")
        request = {"chart": chart, "folder": folder, "versions": [], "cases": CASES, "release": NAME}
        command = [tool_environment("kubernetes") / "python", Path(__file__).with_name("chart_check.py")]
        answer = subprocess.run(
            command, input=json.dumps(request), stdout=subprocess.PIPE, text=True, check=True
        )
    cases = json.loads(answer.stdout)["cases"]
    return {
        case: {f"{one['kind']}/{one['metadata']['name']}": neutral(one) for one in cases[case]["documents"]}
        for case in CASES
    }


def neutral(document: Document) -> Document:
    """The document without Helm's labels and without a namespace; a PodMonitor then selects its own."""
    document["metadata"].pop("namespace", None)
    document["spec"] = document.get("spec", {})
    document["spec"].pop("namespaceSelector", None)
    metadata = [document["metadata"], document["spec"].get("template", {}).get("metadata", {})]
    for labels in (one.get("labels", {}) for one in metadata):
        for name in HELMS:
            labels.pop(name, None)
    return {key: value for key, value in document.items() if value != {}}


def difference(old: Document, new: Document) -> Document:
    """A strategic merge patch for what is added or changed.

    Raises:
        ValueError: something is removed or a list changes, which such a patch does not express.
    """
    patch: Document = {}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            patch |= {key: found} if (found := difference(before, value)) else {}
        elif isinstance(before, list) and before != value:
            raise ValueError(f"the list {key} changes")
        elif before != value:
            patch[key] = value
    if gone := old.keys() - new.keys():
        raise ValueError(f"removed: {', '.join(sorted(gone))}")
    return patch


def files(cases: dict[str, dict[str, Document]]) -> dict[str, str]:
    """The text of each generated file, by its path below deploy/kustomize/."""
    base = cases["base"]
    daemon_set = f"DaemonSet/{NAME}"
    added = {
        case: {name: document for name, document in cases[case].items() if name not in base} for case in CASES
    }
    patch = {key: base[daemon_set][key] for key in ("apiVersion", "kind")} | {"metadata": {"name": NAME}}
    patch |= difference(base[daemon_set], cases["owners"][daemon_set])
    documents = {
        "base/daemonset.yaml": base[daemon_set],
        "base/serviceaccount.yaml": base[f"ServiceAccount/{NAME}"],
        "components/operator/podmonitor.yaml": added["operator"][f"PodMonitor/{NAME}"],
        "components/operator/prometheusrule-dashboards.yaml": added["operator"][
            f"PrometheusRule/{NAME}-dashboards"
        ],
        "components/owners/daemonset-patch.yaml": patch,
        "components/switches/deployment.yaml": added["switches"][f"Deployment/{NAME}-switches"],
        "components/switches/service.yaml": added["switches"][f"Service/{NAME}-switches"],
    }
    return {
        path: HEAD + yaml.safe_dump(document, sort_keys=False, width=120)
        for path, document in documents.items()
    }


if __name__ == "__main__":
    for path, text in files(rendered()).items():
        (KUSTOMIZE / path).write_text(text)
    sys.stdout.write(f"{KUSTOMIZE}\n")
