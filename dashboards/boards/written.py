"""The files that are made of the boards: dashboards, recording rules, and ConfigMaps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from boards import configuration, exporter, fleet, host, port
from boards.document import document
from boards.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boards.model import Board, Json

BOARDS = (fleet.BOARD, host.BOARD, port.BOARD, configuration.BOARD, exporter.BOARD)
HEADER = "# Made by `python dashboards/generate.py`; do not edit.\n"
WIDTH = 1_000_000
"""Of lines in YAML: the JSON of a dashboard is one line."""


def files() -> Iterator[tuple[str, str]]:
    """Every file: its path below `dashboards/`, and its text."""
    for board in BOARDS:
        yield f"{board.uid}.json", json.dumps(document(board, BOARDS), indent=2, ensure_ascii=False) + "\n"
    yield "roce-dashboards.rules.yml", HEADER + _yaml(rules())
    yield "kubernetes/prometheusrule.yml", HEADER + _yaml(_prometheus_rule())
    yield "kubernetes/configmaps.yml", HEADER + "".join(map(_config_map, BOARDS))


def _prometheus_rule() -> Json:
    """The recording rules for the Prometheus operator."""
    metadata = {"name": "roce-dashboards", "labels": {"app.kubernetes.io/name": "roce-exporter"}}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": rules(),
    }


def _config_map(board: Board) -> str:
    """One ConfigMap per dashboard, for `kubectl apply` takes 256 KiB of each at the most."""
    text = json.dumps(document(board, BOARDS), ensure_ascii=False, separators=(",", ":"))
    return "---\n" + _yaml(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{board.uid}-dashboard",
                "labels": {"grafana_dashboard": "1"},
                "annotations": {"grafana_folder": "RoCE"},
            },
            "data": {f"{board.uid}.json": text},
        }
    )


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def _yaml(found: object) -> str:
    return yaml.dump(found, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
