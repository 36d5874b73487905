"""The alerts' limits and windows, from `alerts/thresholds.yml`, and the names of the alerts' recording rules."""

from __future__ import annotations

from typing import Any

from boards import thresholds
from boards.colours import GOOD, NOTHING, SEVERITY
from boards.thresholds import ALERTS, SHARED

SHORT: str = SHARED["short"]
MEDIUM: str = SHARED["medium"]
LONG: str = SHARED["long"]
SLOW_INTERVAL: str = SHARED["slow_interval"]
EXPORTERS = 'job=~"{exporter_jobs}",job!~"{switch_jobs}|{wire_jobs}"'.format_map(SHARED)
"""The targets that the alerts on exporters are about."""
RUNBOOKS: str = SHARED["runbook_base_url"]

PAUSE = f"netdev_priority_direction:roce_pfc_pause:ratio_rate{MEDIUM}"
CLUSTER_PAUSE = f"cluster_direction:roce_pfc_pause:ratio_rate{MEDIUM}"
STORMS = f"netdev_priority_direction:roce_pfc_storms:increase{MEDIUM}"
STORM_HOSTS = "cluster_direction:roce_pfc_storm_hosts:count"
HOSTS = "cluster:roce_hosts:count"
MARKED = f"port:roce_ecn_marked:ratio_rate{MEDIUM}"
LOSS = f"port_direction:roce_transport_loss:ratio_rate{MEDIUM}"
STALLED = f"netdev:roce_pcie_stalled:ratio_rate{MEDIUM}"
DRIFT = "cluster_device_setting:roce_config:range"
WORKLOADS = "owner:roce_workload:info"


def limit(alert: str, key: str = "ratio") -> float:
    """An alert's limit.

    Raises:
        KeyError: the alert does not exist or does not have this limit.
    """
    found = ALERTS[alert][key]
    return float(found) if isinstance(found, int) else found


def plain(value: float) -> str:
    """A limit in plain notation, as in the alerts: 0.00001 and not 1e-05."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def percent(value: float) -> str:
    """A limit as a percentage, with all its digits."""
    return f"{plain(value * 100)}%"


def step(alert: str, key: str = "ratio", *, least: float = 0.0) -> tuple[float, str]:
    """The limit of an alert and the colour of its severity. A limit of 0 begins at `least`."""
    return thresholds.at_least(limit(alert, key), least), SEVERITY[ALERTS[alert]["severity"]]


def burn(alert: str) -> tuple[float, str]:
    """The share of paused time at which an alert on the budget fires, and the colour of its severity."""
    found = ALERTS[alert]
    return round(found["burn_rate"] * (1 - found["objective"]), 9), SEVERITY[found["severity"]]


def steps(*found: tuple[float, str], base: str = GOOD) -> dict[str, Any]:
    """Grafana's thresholds: `base` from 0 to the first value, then each colour from its value upwards.

    The first step is neutral, because Grafana also uses it for missing values, which are neither good nor bad.
    """
    ordered = sorted(found)
    listed: list[dict[str, Any]] = [{"color": NOTHING, "value": None}]
    listed += [{"color": base, "value": 0}] if base != NOTHING else []
    return {
        "mode": "absolute",
        "steps": [*listed, *({"color": colour, "value": value} for value, colour in ordered)],
    }
