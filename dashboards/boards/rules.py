"""Recording rules for the dashboards in addition to those of the alerts: sums over a cluster, and series that exist only where there is a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.limits import EXPORTERS, LOSS, MEDIUM, PAUSE, SLOW_INTERVAL, limit, plain

if TYPE_CHECKING:
    from boards.model import Json

MARKS = f"cluster_job:roce_ecn_marked_packets:rate{MEDIUM}"
CNPS_SENT = f"cluster_job:roce_cnp_sent:rate{MEDIUM}"
CNPS_HANDLED = f"cluster_job:roce_cnp_handled:rate{MEDIUM}"
CNPS_IGNORED = f"cluster_job:roce_cnp_ignored:rate{MEDIUM}"
DISCARDS = f"netdev_priority:roce_lossless_discards:rate{MEDIUM}"
ELEVATED = f"netdev_priority_direction:roce_pfc_pause_elevated:ratio_rate{MEDIUM}"
LOSSY = f"port_direction:roce_transport_loss_seen:ratio_rate{MEDIUM}"
SOURCES_DOWN = "cluster_job_source:roce_exporter_source_down:count"
UNJUDGED = "cluster_job_reason:roce_pfc_storm_unknown:count"
CHECKS_FAILED = "cluster_job_check:roce_config_check_failed:count"
UNREADABLE = "cluster_job_check:roce_config_check_unreadable:count"
CHECKS = "cluster_job:roce_config_checks:count"
FIRING = "cluster_alertname_severity:roce_alerts_firing:count"
FIRST = "cluster_alertname_severity:roce_alerts_firing:min_start"
SILENT = "cluster_job:roce_exporters_silent:count"
LINK_ENDS = "switch_port:roce_link_ends:info"

OFTEN = {
    CNPS_SENT: f"sum by (cluster, job) (rate(roce_cnp_sent_total[{MEDIUM}]))",
    CNPS_HANDLED: f"sum by (cluster, job) (port:roce_cnp_received:rate{MEDIUM})",
    CNPS_IGNORED: f"sum by (cluster, job) (rate(roce_cnp_ignored_total[{MEDIUM}]))",
    DISCARDS: f"""\
# no series without drops
(
  (rate(roce_buffer_discards_total[{MEDIUM}]) > 0)
    or
  (rate(roce_host_buffer_discards_total[{MEDIUM}]) > 0)
)
  and
netdev_priority:roce_pfc_lossless:info""",
    # so that the ranking of the worst ports of a large fleet reads few series
    ELEVATED: f"{PAUSE} > {plain(limit('RocePfcPauseElevated'))}",
    LOSSY: f"{LOSS} > 0",
    SOURCES_DOWN: "count by (cluster, job, source) (source:roce_exporter_source_down:info)",
    UNJUDGED: """\
count by (cluster, job, reason) (
  roce_pfc_storm_unknown == 1
    and ignoring (direction, reason)
  netdev_priority:roce_pfc_lossless:info
)""",
}
"""Evaluated as often as the alerts' rules that can wait."""

NOW = {
    # alerts of every port, and targets, would be too many to read at every step of a graph
    FIRING: 'count by (cluster, alertname, severity) (ALERTS{alertname=~"Roce.+",alertstate="firing"})',
    FIRST: """\
# start of the first one
min by (cluster, alertname, severity) (
  ALERTS_FOR_STATE{alertname=~"Roce.+"}
    and ignoring (alertstate)
  ALERTS{alertname=~"Roce.+",alertstate="firing"}
)""",
    SILENT: f"count by (cluster, job) (up{{{EXPORTERS}}} == 0)",
}
"""Evaluated as often as Prometheus evaluates by default, because they say whether something is wrong now; they read few series."""

SELDOM = {
    CHECKS_FAILED: "count by (cluster, job, check) (roce_config_check_ok == 0)",
    UNREADABLE: "count by (cluster, job, check) (roce_config_check_unreadable == 1)",
    CHECKS: """\
# in the metric sets lean and standard, a check that always passed has no series of its own
sum by (cluster, job) (roce_config_checks_passed)
  +
(
  count by (cluster, job) (roce_config_check_ok == 0)
    or
  0 * sum by (cluster, job) (roce_config_checks_passed)
)""",
    # the choice of the link dashboard: every port of every switch, with the host at its other end if it is known
    LINK_ENDS: """\
max by (cluster, instance, netdev, switch, switch_port) (link:roce_switch_port:info)
  or on (cluster, switch, switch_port)
max by (cluster, switch, switch_port) (
  label_replace(
    label_replace(roce_switch_port_info, "switch", "$1", "device", "(.*)"), "switch_port", "$1", "port", "(.*)"
  )
)""",
}
"""For many series that hardly change."""


def rules() -> Json:
    """The contents of a rule file for Prometheus 2.42 and newer."""
    return {
        "groups": [
            {"name": "roce-dashboards", "interval": SLOW_INTERVAL, "rules": _recorded(OFTEN)},
            {"name": "roce-dashboards-now", "rules": _recorded(NOW)},
            # below the five minutes after which Prometheus treats a sample as stale
            {"name": "roce-dashboards-configuration", "interval": "2m", "rules": _recorded(SELDOM)},
        ]
    }


def _recorded(named: dict[str, str]) -> list[Json]:
    return [{"record": name, "expr": expression} for name, expression in named.items()]
