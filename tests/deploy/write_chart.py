"""What is generated from the chart: the table of values in its README, and deploy/kustomize/ from what Helm renders.

`python tests/deploy/write_chart.py` writes both. The manifests for Kustomize are without what only Helm or an installation
knows: two labels and the namespace. Kustomize sets the namespace and the images.
"""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))  # what pytest does: the folder of all tests

from collections.abc import Iterator

from deploy_tools import DEPLOY, built, tool_environment

Document = dict[str, Any]

CHART = DEPLOY / "helm/roce-exporter"
README = CHART / "README.md"
KUSTOMIZE = DEPLOY / "kustomize"
NAME = "roce-exporter"
BEGIN = "<!-- values: written from values.yaml by `make generate` -->\n\n"
TABLE = "| value | default | meaning |\n| --- | --- | --- |\n"
HEAD = "# Written from deploy/helm/ by `make generate`; do not edit.\n"
HELMS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
IMAGE = {"image": {"repository": NAME}}
PARTS: dict[str, dict[str, Any]] = {
    "base": IMAGE,
    "operator": {**IMAGE, "podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
    "owners": {**IMAGE, "owners": {"hostPID": True}},
    "switches": {
        **IMAGE,
        "switches": {
            "enabled": True,
            "configSecret": f"{NAME}-switches",
            "webConfigSecret": f"{NAME}-switches-web",
            "image": {"repository": f"{NAME}-switches"},
        },
    },
}
"""The base for Kustomize and each component, with the values of the chart that they are equal to."""
RULES = {f"PrometheusRule/{NAME}-roce": NAME, f"PrometheusRule/{NAME}-dashboards": f"{NAME}-dashboards"}
"""What `make dist` builds for the component for the operator, instead: name in the chart, name there."""
BUILT = "../../../../build/operator"
"""Where."""


def rendered(
    cases: dict[str, Any], versions: list[str], release: str = "demo"
) -> tuple[Path, dict[str, Any]]:
    """The packaged chart, and for each case what Helm 4 renders and what is wrong with it: the output of chart_check.py."""
    program = Path(__file__).with_name("chart_check.py")
    request = json.dumps({"chart": str(CHART), "versions": versions, "cases": cases, "release": release})

    def make(folder: Path) -> None:
        command = [tool_environment("kubernetes") / "python", program, folder]
        subprocess.run(command, input=request, text=True, check=True)

    folder = built("chart", make, program.read_text(), request)
    (package,) = folder.glob("*.tgz")
    return package, json.loads((folder / "cases.json").read_text())


@functools.cache
def parts() -> dict[str, dict[str, Document]]:
    """The documents of each part by kind and name, without what only Helm (also the pod of its test) or an installation knows."""
    _, cases = rendered(PARTS, [], NAME)
    return {
        part: {
            f"{one['kind']}/{one['metadata']['name']}": neutral(one)
            for one in cases[part]["documents"]
            if one["kind"] != "Pod"
        }
        for part in PARTS
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


def manifests() -> dict[str, str]:
    """The text of each generated file, by its path below deploy/kustomize/."""
    base, operator, owners, switches = parts().values()
    daemon_set = f"DaemonSet/{NAME}"
    patch = {key: base[daemon_set][key] for key in ("apiVersion", "kind")} | {"metadata": {"name": NAME}}
    patch |= difference(base[daemon_set], owners[daemon_set])
    documents = {
        "base/daemonset.yaml": base[daemon_set],
        "base/serviceaccount.yaml": base[f"ServiceAccount/{NAME}"],
        "components/operator/podmonitor.yaml": operator[f"PodMonitor/{NAME}"],
        "components/owners/daemonset-patch.yaml": patch,
        "components/switches/deployment.yaml": switches[f"Deployment/{NAME}-switches"],
        "components/switches/service.yaml": switches[f"Service/{NAME}-switches"],
    }
    return {
        path: HEAD + yaml.safe_dump(document, sort_keys=False, width=120)
        for path, document in documents.items()
    }


def comments(text: str) -> dict[str, str]:
    """The comment above each key of values.yaml, by the key's path."""
    found: dict[str, str] = {}
    above: list[str] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if comment := re.match(r"\s*# (.*)", line):
            above.append(comment[1])
            continue
        if key := re.match(r"\s*([\w./-]+):(?:\s|$)", line):
            path = [*((column, name) for column, name in path if column < indent), (indent, key[1])]
            found[".".join(name for _, name in path)] = " ".join(above)
        above = []
    return found


def leaves(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that the schema knows by name, with its default."""
    for name, value in values.items():
        below = schema["properties"][name]
        if "$ref" in below:
            raise ValueError(f"{path}{name}: references are not followed")
        if "properties" in below and value:
            yield from leaves(value, below, f"{path}{name}.")
        else:
            yield path + name, value


def readme() -> str:
    """The README with the table as it must be.

    A comment on a group of values is the meaning of its first value too.
    """
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = comments(text)
    rows, shown = [], set()
    for path, default in leaves(yaml.safe_load(text), schema):
        groups = [path.rsplit(".", count)[0] for count in range(path.count("."), 0, -1)]
        above = [found[name] for name in groups if name not in shown]
        shown |= set(groups)
        meaning = " ".join(part for part in (*above, found[path]) if part).replace("|", "\\|")
        rows.append(f"| `{path}` | `{json.dumps(default)}` | {meaning} |\n")
    return README.read_text().split(BEGIN)[0] + BEGIN + TABLE + "".join(rows)


if __name__ == "__main__":
    README.write_text(readme())
    for path, text in manifests().items():
        (KUSTOMIZE / path).write_text(text)
    sys.stdout.write(f"{README}\n{KUSTOMIZE}\n")
