"""Recording rules for the dashboards in addition to those of the alerts: sums over a cluster, and series that exist only where there is a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.limits import EXPORTERS, LOSS, MEDIUM, PAUSE, PAUSE_ELEVATED, SLOW_INTERVAL, WORKLOADS, plain
from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.row import GAUGE

if TYPE_CHECKING:
    from boards.model import Json

MARKS = f"cluster_job:roce_ecn_marked_packets:rate{MEDIUM}"
CNPS_SENT = f"cluster_job:roce_cnp_sent:rate{MEDIUM}"
CNPS_HANDLED = f"cluster_job:roce_cnp_handled:rate{MEDIUM}"
CNPS_IGNORED = f"cluster_job:roce_cnp_ignored:rate{MEDIUM}"
DISCARDS = f"netdev_priority:roce_lossless_discards:rate{MEDIUM}"
ELEVATED = f"netdev_priority_direction:roce_pfc_pause_elevated:ratio_rate{MEDIUM}"
LOSSY = f"port_direction:roce_transport_loss_seen:ratio_rate{MEDIUM}"
UNFIT = "port:roce_port_unfit:info"
"""Ports that are degraded or failed, with the first two of their reasons as the label `reasons`."""
PAIRS = "device_workload:roce_owner_queue_pairs:sum"
"""Recorded by the alerts."""
HOST_PAIRS = "instance_workload:roce_owner_queue_pairs:sum"
WORKLOAD_UNFIT = "device_workload:roce_port_unfit:info"
WORKLOAD_PAIRS = "cluster_job_workload:roce_owner_queue_pairs:sum"
WORKLOAD_HOSTS = "cluster_job_workload:roce_owner_hosts:count"
WORKLOAD_BROKEN = "cluster_job_workload:roce_owner_queue_pairs_in_error:sum"
WORKLOAD_PAUSE = f"cluster_job_workload_direction:roce_pfc_pause:ratio_rate{MEDIUM}"
WORKLOAD_LOST = f"cluster_job_workload_what:roce_owner_lost:rate{MEDIUM}"
MISSING = "instance_what:roce_not_measured:count"
MISSING_HOSTS = "cluster_job_what:roce_not_measured:hosts"
SETTING = "cluster_job_setting_value:roce_config:count"
PARAMETER = "cluster_job_parameter_value:roce_dcqcn:count"
CHECKS_FAILED = "cluster_job_check:roce_config_check_failed:count"
UNREADABLE = "cluster_job_check:roce_config_check_unreadable:count"
CHECKS = "cluster_job:roce_config_checks:count"
FIRING = "cluster_alertname_severity:roce_alerts_firing:count"
FIRST = "cluster_alertname_severity:roce_alerts_firing:min_start"
SILENT = "cluster_job:roce_exporters_silent:count"
LINK_ENDS = "switch_port:roce_link_ends:info"

_PORT = "cluster, job, instance, device, port"
_REASONS = "roce_port_health_reason >= 2"
_FIRST, _SECOND = (f"port_reason:roce_port_unfit:{place}" for place in ("first", "second"))


def _one_reason(name: str, reasons: str) -> str:
    """The worst reason of each port; of equal ones the one that this rule recorded before, because topk may choose another one each time."""
    at = f"on ({_PORT}, reason)"
    return f"""\
floor(
  topk by ({_PORT}) (
    1,
    ({reasons}) + {at} 0.5 * {name} ^ 0
      or
    ({reasons})
  )
)"""


_UNMEASURED = {
    f"up{{{EXPORTERS}}} == 0": "everything: no answer",
    "source:roce_exporter_source_down:info": "source $source",
    "roce_exporter_unreadable_values > 0": "values of $source",
    "roce_pfc_storm_unknown == 1 and ignoring (direction, reason) netdev_priority:roce_pfc_lossless:info": "storms: $reason",
    "roce_port_health == 0": "verdict: facts are missing",
    "roce_exporter_ports_without_netdev > 0": "network devices: of another namespace",
    "roce_exporter_sampler_stuck > 0": "fast loop: a poll hangs",
    "roce_exporter_quarantined_files > 0": "files in quarantine",
    "roce_owner_hidden_processes > 0": "owners: processes are hidden",
    "roce_exporter_unmapped_names > 0": "raw names without a metric",
}
"""Series of what a host does not measure, and the text for it; `$` names a label."""


def _any(found: dict[str, str]) -> str:
    texts = []
    for expression, text in found.items():
        said, _, label = text.partition("$")
        texts.append(
            f'  label_replace({expression}, "what", "{said}{"$1" if label else ""}", "{label}", "{"(.*)" if label else ""}")'
        )
    return "\n    or\n".join(texts)


def _of_workloads(expression: str) -> str:
    """The sum by workload of a series by owner."""
    return f"sum by (cluster, job, workload) ({expression} * on (cluster, job, instance, owner) group_left (workload) {WORKLOADS})"


OFTEN = {
    CNPS_SENT: f"sum by (cluster, job) (rate(roce_cnp_sent_total[{MEDIUM}]))",
    CNPS_HANDLED: f"sum by (cluster, job) (port:roce_cnp_received:rate{MEDIUM})",
    CNPS_IGNORED: f"sum by (cluster, job) (rate(roce_cnp_ignored_total[{MEDIUM}]))",
    # so that the ranking of the worst ports of a large fleet reads few series
    ELEVATED: f"{PAUSE} > {plain(PAUSE_ELEVATED[0])}",
    LOSSY: f"{LOSS} > 0",
    _FIRST: _one_reason(_FIRST, _REASONS),
    _SECOND: _one_reason(_SECOND, f"{_REASONS} unless on ({_PORT}, reason) {_FIRST}"),
    UNFIT: f"""\
# the exporter's verdict, with up to two reasons as text
max by ({_PORT}, reasons) (
  label_join(
    {_FIRST} * on ({_PORT}) group_left (second) label_replace(topk by ({_PORT}) (1, {_SECOND}), "second", "$1", "reason", "(.*)") ^ 0,
    "reasons", ", ", "reason", "second"
  )
    or on ({_PORT})
  label_replace({_FIRST}, "reasons", "$1", "reason", "(.*)")
)""",
    WORKLOAD_UNFIT: f"""\
# one port of each device, because a workload is known by device
0 * {PAIRS}
  + on (cluster, job, instance, device) group_left (port, reasons)
topk by (cluster, job, instance, device) (1, {UNFIT})""",
    HOST_PAIRS: f"sum by (cluster, job, instance, workload) ({PAIRS})",
    WORKLOAD_PAIRS: f"sum by (cluster, job, workload) ({HOST_PAIRS})",
    # also those without queue pairs, but not the kernel's own management, which every device has
    WORKLOAD_HOSTS: f'count by (cluster, job, workload) (count by (cluster, job, instance, workload) ({WORKLOADS}{{owner!="kernel/ib_core"}}))',
    WORKLOAD_BROKEN: _of_workloads("(roce_owner_queue_pairs_in_error > 0)"),
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

LABELLED = (
    *(
        (
            WORKLOAD_PAUSE,
            f"""\
# a port is paused, not a workload: whose ports are paused
max by (cluster, job, workload) (
  0 * {PAIRS}
    + on (cluster, job, instance, device) group_left ()
  max by (cluster, job, instance, device) ({ELEVATED}{{direction="{direction}"}})
)""",
            {"direction": direction},
        )
        for direction in ("receive", "transmit")
    ),
    *(
        (
            WORKLOAD_LOST,
            _of_workloads(f"(rate(roce_owner_transport_{name}_total[{MEDIUM}]) > 0)"),
            {"what": said},
        )
        for name, said in (
            ("out_of_sequence", "lost on the way to it"),
            ("packet_sequence_errors", "lost on the way from it"),
            ("ack_timeouts", "timeouts"),
        )
    ),
)
"""Recorded series that a label of the rule tells apart: name, expression, labels."""

SETTINGS = {
    row.name: row.name.removeprefix("roce_config_").removeprefix("roce_").replace("_", " ")
    for row in CATALOG
    if (row.name.startswith("roce_config_") or row.name in {"roce_pfc_enabled", "roce_port_mtu_bytes"})
    and row.kind == GAUGE
    and not row.name.startswith(("roce_config_check", "roce_config_fingerprint"))
    and not row.name.endswith(("age_seconds", "private_flag_enabled"))
}  # fmt: skip
"""Every setting by its metric, in words."""
PLACES = ("priority", "traffic_class", "dscp", "buffer")
"""Labels within a port: differences between their values are intended."""


def _settings() -> list[Json]:
    """The number of ports with each value of a setting, a rule per setting: one query of all settings of a large fleet takes too much memory."""
    found: list[Json] = []
    for name in SETTINGS:
        by = ", ".join(("cluster", "job", *(label for label in PLACES if label in INDEX.named[name].labels)))
        rule = {
            "record": SETTING,
            "expr": f'count_values by ({by}) ("value", {name})',
            "labels": {"setting": name},
        }
        found.append(rule)
    seconds, others = (f'roce_dcqcn_parameter{{parameter{sign}".+_seconds"}}' for sign in ("=~", "!~"))
    # a plain number would show microseconds as zeros
    value = f"{others} or round({seconds} * 1000000, 0.001)"
    counted = f'count_values by (cluster, job, role, parameter) ("value", {value})'
    return [*found, {"record": PARAMETER, "expr": counted}]


SELDOM = {
    DISCARDS: f"""\
# no series without drops
(
  (rate(roce_buffer_discards_total[{MEDIUM}]) > 0)
    or
  (rate(roce_host_buffer_discards_total[{MEDIUM}]) > 0)
)
  and
netdev_priority:roce_pfc_lossless:info""",
    MISSING: f"""\
# what no panel and no alert can show, by host
count by (cluster, job, instance, what) (
{_any(_UNMEASURED)}
)""",
    MISSING_HOSTS: f"count by (cluster, job, what) ({MISSING})",
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

CHECKED = {
    CHECKS_FAILED: "count by (cluster, job, check) (roce_config_check_ok == 0)",
    UNREADABLE: "count by (cluster, job, check) (roce_config_check_unreadable == 1)",
    CHECKS: "sum by (cluster, job) (roce_config_checks_passed + roce_config_checks_failed)",
}
"""With the settings."""


def rules() -> Json:
    """The contents of a rule file for Prometheus 2.42 and newer."""
    return {
        "groups": [
            {
                "name": "roce-dashboards",
                "interval": SLOW_INTERVAL,
                "rules": [*_recorded(OFTEN), *_labelled()],
            },
            {"name": "roce-dashboards-now", "rules": _recorded(NOW)},
            # below the five minutes after which Prometheus treats a sample as stale
            {"name": "roce-dashboards-configuration", "interval": "2m", "rules": _recorded(SELDOM)},
            {
                "name": "roce-dashboards-settings",
                "interval": "4m",
                "rules": [*_recorded(CHECKED), *_settings()],
            },
        ]
    }


def _recorded(named: dict[str, str]) -> list[Json]:
    return [{"record": name, "expr": expression} for name, expression in named.items()]


def _labelled() -> list[Json]:
    return [{"record": name, "expr": expression, "labels": labels} for name, expression, labels in LABELLED]
