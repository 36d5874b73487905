"""Limits and windows, from `alerts/thresholds.yml`, and the names of the alerts' recording rules."""

from __future__ import annotations

from typing import Any

from boards.colours import GOOD, NOTHING, SEVERITY
from boards.thresholds import LIMITS, SHARED

SHORT: str = SHARED["short"]
MEDIUM: str = SHARED["medium"]
SLOW_INTERVAL: str = SHARED["slow_interval"]
EXPORTERS = 'job=~"{exporter_jobs}",job!~"{switch_jobs}|{wire_jobs}|{probe_jobs}"'.format_map(SHARED)
"""The targets that the alerts on exporters are about."""

PAUSE = f"netdev_priority_direction:roce_pfc_pause:ratio_rate{MEDIUM}"
CLUSTER_PAUSE = f"cluster_direction:roce_pfc_pause:ratio_rate{MEDIUM}"
STORMS = f"netdev_priority_direction:roce_pfc_storms:increase{MEDIUM}"
STORM_HOSTS = "cluster_direction:roce_pfc_storm_hosts:count"
HOSTS = "cluster:roce_hosts:count"
MARKED = f"port:roce_ecn_marked:ratio_rate{MEDIUM}"
LOSS = f"port_direction:roce_transport_loss:ratio_rate{MEDIUM}"
DRIFT = "cluster_device_setting:roce_config:range"
PROBES_TO_PATH = f"cluster_rack:roce_probe_lost:ratio_rate{MEDIUM}"
PROBES_TO_HOST = f"cluster_host:roce_probe_lost:rate{MEDIUM}"
WORKLOADS = "owner:roce_workload:info"


def limit(name: str, key: str = "ratio") -> float:
    """A limit by what is measured.

    Raises:
        KeyError: nothing has this name or this key.
    """
    found = LIMITS[name][key]
    return float(found) if isinstance(found, int) else found


def plain(value: float) -> str:
    """A limit in plain notation, as in the alerts: 0.00001 and not 1e-05."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def percent(value: float) -> str:
    """A limit as a percentage, with all its digits."""
    return f"{plain(value * 100)}%"


def step(name: str, key: str = "ratio") -> tuple[float, str]:
    """A limit and the colour of its severity."""
    return limit(name, key), SEVERITY[LIMITS[name]["severity"]]


def burn(name: str) -> tuple[float, str]:
    """The share of paused time at which a budget burns too fast, and the colour of its severity."""
    found = LIMITS[name]
    return round(found["burn_rate"] * (1 - found["objective"]), 9), SEVERITY[found["severity"]]


PAUSE_ELEVATED, PAUSE_HIGH, LONG_PAUSE = (
    step("pause_elevated"),
    step("pause_high"),
    step("pause_long", "seconds"),
)
SENT_SATURATED, RECEIVED_SATURATED = (step(f"pause_saturated_{way}") for way in ("transmit", "receive"))
SATURATED = {"receive": RECEIVED_SATURATED, "transmit": SENT_SATURATED}
PAUSE_BUDGET = burn("pause_budget_days"), burn("pause_budget_hours")
PAUSE_OBJECTIVE = limit("pause_budget_hours", "objective")
LOSS_SLOW, LOSS_FAST = step("packet_loss"), step("packet_loss_severe")
MARKS_HIGH = step("marked_packets")
CNPS_IGNORED_RATE, CNP_DEFICIT = step("cnps_ignored", "per_second"), limit("cnp_delivery")
NOT_READY = step("receiver_not_ready", "per_second")
PCIE_STALLS = step("pcie_stalls")
OVERRUN = step("sampler_ticks")
RESOURCES = step("resources_used")
BROKEN_PAIRS, SURVEY_AGE = step("queue_pairs_in_error", "queue_pairs"), step("owner_survey_age", "seconds")
WIRE_RETRANSMISSIONS, WIRE_DROPS = step("wire_retransmissions"), step("wire_frames_dropped")
PATH_LOSS, REMARKED = step("probe_path_loss"), step("probe_remarked")
HEADROOM = step("switch_headroom")


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
