"""Write the rules for the Prometheus operator: `python deploy/operator_rules.py FOLDER`.

Each rules file of `alerts/` and `dashboards/` becomes a PrometheusRule, and a kustomization lists them, which
`deploy/kustomize/components/operator` uses. `make dist` runs it.
"""

# ruff: noqa: INP001 - a script next to what uses its output, not a package
from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
RULES = {
    "roce-exporter": ROOT / "alerts/roce.rules.yml",
    "roce-exporter-dashboards": ROOT / "dashboards/roce-dashboards.rules.yml",
}
"""The name of each PrometheusRule, and the file with its groups."""
HEAD = "# Written from alerts/ and dashboards/ by `make dist`; do not edit.\n"


def documents() -> dict[str, dict[str, object]]:
    """Each file's content, by its name."""
    made: dict[str, dict[str, object]] = {
        f"{name}.yml": {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "roce-exporter"}},
            "spec": yaml.safe_load(place.read_text(encoding="utf-8")),
        }
        for name, place in RULES.items()
    }
    listed = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [*made]}
    return made | {"kustomization.yaml": listed}


def main() -> None:
    """Write every file to the folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in documents().items():
        text = HEAD + yaml.safe_dump(content, sort_keys=False, width=1_000_000, allow_unicode=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
