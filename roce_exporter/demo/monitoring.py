"""What Prometheus and Alertmanager are told: their configuration, their command lines, and our rules."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import roce_exporter

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPBACK = "127.0.0.1"
HOST = "demo-host"
RULES = "roce.rules.yml"
ROUTES = "alertmanager.yml"
PROMETHEUS = ("prometheus",)
ALERTMANAGER = ("alertmanager", "prometheus-alertmanager")
"""Debian calls it by the longer name."""

KEPT = ("route", "inhibit_rules", "time_intervals", "mute_time_intervals")
"""What the demo takes from our Alertmanager configuration: how alerts are grouped and muted, and not whom to tell."""


def alert_folders() -> tuple[Path, ...]:
    """Where our rules may be: in the installed package, beside it in a checkout, below the working directory."""
    package = Path(roce_exporter.__file__).parent
    return package / "alerts", package.parent / "alerts", Path("alerts").absolute()


def find_file(name: str, folders: Sequence[Path]) -> Path | None:
    """The first of these files that exists."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def find_program(names: Sequence[str]) -> str | None:
    """The path of the first of these programs that is on the PATH."""
    return next((path for name in names if (path := shutil.which(name))), None)


def free_address() -> str:
    """A loopback address and a port that was free a moment ago: neither program tells which one it took by itself."""
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{sock.getsockname()[1]}"


def prometheus_config(target: str, rules: str | None, alertmanager: str | None) -> dict[str, Any]:
    """Scrapes the target and evaluates the rules once a second, with timeouts to fit."""
    scraped = {"targets": [target], "labels": {"instance": HOST, "cluster": "demo"}}
    config: dict[str, Any] = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "roce", "static_configs": [scraped]}],
    }
    if rules:
        config["rule_files"] = [rules]
    if alertmanager:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    return config


def alertmanager_config(routes: str | None) -> dict[str, Any]:
    """Our routing with receivers that tell nobody; without it one such receiver for all.

    Raises:
        yaml.YAMLError: `routes` is no YAML.
    """
    told: dict[str, Any] = yaml.safe_load(routes) if routes else {}
    kept = {key: told[key] for key in KEPT if key in told}
    names = [receiver["name"] for receiver in told.get("receivers", ())] or ["nobody"]
    return {"route": {"receiver": names[0]}} | kept | {"receivers": [{"name": name} for name in names]}


def prometheus_command(program: str, folder: Path, address: str) -> list[str]:
    """Runs on this address with `prometheus.yml` and its data in this folder."""
    return [
        program,
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/prometheus",
        f"--web.listen-address={address}",
        f"--web.external-url=http://{address}/",
        "--log.level=warn",
    ]


def alertmanager_command(program: str, folder: Path, address: str) -> list[str]:
    """Runs on this address, alone, with `alertmanager.yml` and its data in this folder."""
    return [
        program,
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/alertmanager",
        f"--web.listen-address={address}",
        f"--web.external-url=http://{address}/",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
