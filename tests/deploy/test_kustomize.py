"""deploy/kustomize/ is what Helm renders of the chart, and real Kustomize builds the same from it where it is on the PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_tools import ROOT
from kubernetes_manifests import kustomized
from write_kustomize import CASES, KUSTOMIZE, NAME, RULES, files, neutral, rendered

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci

COMPONENTS = [case for case in CASES if case != "base"]

Cases = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="session")
def cases() -> Cases:
    return rendered()


def kustomization(folder: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / "kustomization.yaml").read_text()))


def test_the_files_are_what_the_chart_renders(cases: Cases) -> None:
    """Write them again with `make generate`."""
    expected = files(cases)
    assert {path: (KUSTOMIZE / path).read_text() for path in expected} == expected


def test_every_document_of_the_chart_is_in_a_file(cases: Cases) -> None:
    """Apart from the rules of alerts/, which are there already."""
    found = [yaml.safe_load(text) for path, text in files(cases).items() if not path.endswith("-patch.yaml")]
    names = [f"{document['kind']}/{document['metadata']['name']}" for document in found]
    assert sorted([*names, RULES]) == sorted({name for case in cases.values() for name in case})


@pytest.mark.parametrize("case", CASES)
def test_each_kustomization_names_the_files_that_are_there(case: str) -> None:
    folder = KUSTOMIZE / case if case == "base" else KUSTOMIZE / "components" / case
    content = kustomization(folder)
    assert content["kind"] == ("Kustomization" if case == "base" else "Component")
    named = [*content.get("resources", []), *(patch["path"] for patch in content.get("patches", []))]
    assert {name for name in named if "/" not in name} == {
        path.name for path in folder.iterdir() if path.name != "kustomization.yaml"
    }
    assert all((folder / name).exists() for name in named)


def test_the_component_for_the_operator_has_the_charts_rules(cases: Cases) -> None:
    (path,) = (
        name
        for name in kustomization(KUSTOMIZE / "components/operator")["resources"]
        if name.startswith("..")
    )
    folder = (KUSTOMIZE / "components/operator" / path).resolve()
    assert folder == ROOT / "alerts"
    (rules,) = kustomization(folder)["resources"]
    assert yaml.safe_load((folder / rules).read_text())["spec"] == cases["operator"][RULES]["spec"]


@pytest.mark.parametrize("case", CASES)
def test_kustomize_builds_what_helm_renders(cases: Cases, case: str, tmp_path: Path) -> None:
    built = build([case] if case != "base" else [], tmp_path)
    expected = dict(cases[case])
    # the same rules, under the name and the labels that alerts/ gives them
    ours, theirs = built.pop(f"PrometheusRule/{NAME}", None), expected.pop(RULES, None)
    assert (ours and ours["spec"]) == (theirs and theirs["spec"])
    assert built == expected


def test_kustomize_builds_all_components_together(tmp_path: Path) -> None:
    built = build(COMPONENTS, tmp_path)
    assert built[f"DaemonSet/{NAME}"]["spec"]["template"]["spec"]["hostPID"] is True
    assert {f"PodMonitor/{NAME}", f"Deployment/{NAME}-switches"} <= built.keys()


def build(components: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """The documents that Kustomize builds from the base with these components, by kind and name."""
    found = kustomized(components, folder)
    assert {document["metadata"]["namespace"] for document in found} == {"monitoring"}
    return {f"{one['kind']}/{one['metadata']['name']}": neutral(one) for one in found}
