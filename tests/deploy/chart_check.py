"""Renders and checks the chart in the environment that has Helm: reads JSON from standard input, writes JSON.

Runs with the Python of `tool_environment("kubernetes")`. Input: {"chart": folder, "folder": output folder, "versions":
[...], "cases": {name: values}, "release": name of the release, by default "demo"}.

Output: {"package": path of the packaged chart, "cases": {name: {"error": text or null, "lint", "documents",
"problems"}}}.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import cloudcoil.models.prometheus_operator.v1 as operator
import helm_python
import kubernetes_validate
import yaml


def rendered(chart: str, values: dict[str, Any], release: str) -> list[dict[str, Any]]:
    """The documents that Helm renders, without the notes.

    Raises:
        helm_python.HelmError: Helm refuses the values or a template.
    """
    with helm_python.Chart.load(chart) as loaded:
        texts = loaded.render(values, name=release, namespace="monitoring")
    return [
        document
        for path, text in texts.items()
        if not path.endswith((".txt", ".tpl"))
        for document in yaml.safe_load_all(text)
        if document
    ]


def problems(document: dict[str, Any], versions: list[str]) -> list[str]:
    """Faults of a document, for any of these versions of Kubernetes or for the Prometheus operator."""
    name = f"{document['kind']} {document['metadata']['name']}"
    if document["apiVersion"].startswith("monitoring.coreos.com/"):
        try:
            getattr(operator, document["kind"]).model_validate(document)
        except ValueError as error:
            return [f"{name}: {error}"]
        return []
    found = []
    for version in versions:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"{name} ({version}): {error.message}")
    return found


def checked(chart: str, values: dict[str, Any], versions: list[str], release: str) -> dict[str, Any]:
    """One case of the output."""
    try:
        documents = rendered(chart, values, release)
    except helm_python.HelmError as error:
        return {"error": str(error), "documents": [], "problems": []}
    found = [problem for document in documents for problem in problems(document, versions)]
    return {"error": None, "documents": documents, "problems": found}


def main() -> None:
    """Process one request."""
    request = json.load(sys.stdin)
    chart = request["chart"]
    lint = {name: helm_python.lint(chart, values, strict=True) for name, values in request["cases"].items()}
    cases = {
        name: checked(chart, values, request["versions"], request.get("release", "demo"))
        | {"lint": lint[name]["errors"]}
        for name, values in request["cases"].items()
    }
    package = helm_python.package(chart, destination=tempfile.mkdtemp(dir=request["folder"]))
    json.dump({"package": package, "cases": cases}, sys.stdout, default=str)


if __name__ == "__main__":
    main()
