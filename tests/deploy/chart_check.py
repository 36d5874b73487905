"""Renders and checks the chart in the environment that has Helm: `chart_check.py FOLDER`, with a request in JSON on standard input.

Runs with the Python of `tool_environment("kubernetes")`. Request: {"chart": folder, "release": its name, "versions": [...], "cases":
{name: values}}. It writes the packaged chart into FOLDER, and cases.json: {name: {"error": text or null, "lint", "documents", "problems"}}.
"""

import json
import sys
from pathlib import Path
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
        for document in yaml.load_all(text, yaml.CSafeLoader)
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


def checked(request: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """One case of the output."""
    lint = helm_python.lint(request["chart"], values, strict=True)["errors"]
    try:
        documents = rendered(request["chart"], values, request["release"])
    except helm_python.HelmError as error:
        return {"error": str(error), "lint": lint, "documents": [], "problems": []}
    found = [problem for document in documents for problem in problems(document, request["versions"])]
    return {"error": None, "lint": lint, "documents": documents, "problems": found}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    cases = {name: checked(asked, values) for name, values in asked["cases"].items()}
    Path(sys.argv[1], "cases.json").write_text(json.dumps(cases, default=str))
    helm_python.package(asked["chart"], destination=sys.argv[1])
