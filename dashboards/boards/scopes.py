"""The variables of the dashboards (each one narrows the next), the matchers that use them, and links that keep them."""

from __future__ import annotations

from boards.colours import BAD, CRITICAL, SEVERITY, WARNING
from boards.model import Annotation, Json, Variable
from boards.rules import FIRST

CLUSTER = 'cluster=~"$cluster"'
FLEET = f'{CLUSTER},job=~"$job"'
HOST = f'{FLEET},instance=~"$instance"'
DEVICE = f'{HOST},device=~"$device"'
PORT = f'{HOST},device=~"$device",port=~"$port"'
PRIORITY = f'{PORT},priority=~"$priority"'

_cluster = Variable(
    "cluster", "Cluster", "The label `cluster`, if your Prometheus sets it. All includes series without it.",
    "label_values(roce_exporter_devices, cluster)", all_value=".*",
)  # fmt: skip
_job = Variable(
    "job", "Job", "The scrape job of roce_exporter.",
    f"label_values(roce_exporter_devices{{{CLUSTER}}}, job)",
)  # fmt: skip
_instances = f"label_values(roce_exporter_devices{{{FLEET}}}, instance)"
_host = Variable(
    "instance", "Instance", "The host that is shown.", _instances, multi=False, include_all=False
)


def _device(*, one: bool) -> Variable:
    query = f"label_values(roce_port_up{{{HOST}}}, device)"
    return Variable("device", "Device", "The RDMA device.", query, multi=not one, include_all=not one)


def _port(*, one: bool) -> Variable:
    query = f"label_values(roce_port_up{{{DEVICE}}}, port)"
    return Variable("port", "Port", "The port of the RDMA device.", query, multi=not one, include_all=not one)


_priority = Variable(
    "priority", "Priority", "The PFC priority.",
    f'label_values({{__name__=~"roce_pfc_enabled|roce_pfc_receive_frames_total",{PORT}}}, priority)',
)  # fmt: skip

OF_FLEET = (_cluster, _job)
WITH_RUNBOOKS = Variable(
    "runbooks", "Runbooks", "Where they are served.", "label_values(source:roce_runbooks:info, url)",
    multi=False, include_all=False, hidden=True,
)  # fmt: skip
OF_ONE = (_cluster, _job, _host)
OF_HOST = (_cluster, _job, _host, _device(one=False), _port(one=False), _priority)
OF_PORT = (_cluster, _job, _host, _device(one=True), _port(one=True), _priority)

_FIELDS = "".join(f"&var-{name}=${{__data.fields.{name}}}" for name in ("cluster", "job", "instance"))
_TIME = "&${__url_time_range}"
_SOURCE = "var-datasource=${datasource}"


def to_cluster() -> Json:
    """A link from a row to the fleet dashboard of its cluster."""
    url = f"/d/roce-fleet/roce-fleet?{_SOURCE}&var-cluster=${{__data.fields.cluster}}{_TIME}"
    return {"title": "Show only this cluster", "url": url}


def to_host() -> Json:
    """A link from a row to its host."""
    return {"title": "Open the host", "url": f"/d/roce-host/roce-host?{_SOURCE}{_FIELDS}{_TIME}"}


def to_exporter() -> Json:
    """A link from a row to the exporter of its host."""
    return {"title": "Show this exporter", "url": f"/d/roce-exporter/roce-exporter?{_SOURCE}{_FIELDS}{_TIME}"}


def to_port() -> Json:
    """A link from a row to its port."""
    port = "".join(f"&var-{name}=${{__data.fields.{name}}}" for name in ("device", "port"))
    return {"title": "Open the port", "url": f"/d/roce-port/roce-port?{_SOURCE}{_FIELDS}{port}{_TIME}"}


def series_to_port() -> Json:
    """The same link, from a line of a graph."""
    names = ("cluster", "job", "instance", "device", "port")
    labels = "".join(f"&var-{name}=${{__field.labels.{name}}}" for name in names)
    return {"title": "Open the port", "url": f"/d/roce-port/roce-port?{_SOURCE}{labels}{_TIME}"}


def to_jobs() -> Json:
    """A link from a row to the owners of the RDMA objects of its host."""
    return {"title": "Open its jobs", "url": f"/d/roce-jobs/roce-jobs?{_SOURCE}{_FIELDS}{_TIME}"}


def series_to_jobs() -> Json:
    """The same link, from a line of a graph."""
    labels = "".join(f"&var-{name}=${{__field.labels.{name}}}" for name in ("cluster", "job", "instance"))
    return {"title": "Open the jobs of the host", "url": f"/d/roce-jobs/roce-jobs?{_SOURCE}{labels}{_TIME}"}


def to_workload() -> Json:
    """A link from a row to its workload on all hosts."""
    chosen = "&var-workload=${__data.fields.workload}"
    return {
        "title": "Show only this workload",
        "url": f"/d/roce-jobs/roce-jobs?{_SOURCE}&${{cluster:queryparam}}&${{job:queryparam}}{chosen}{_TIME}",
    }


def to_switch_port(switch: str = "device", port: str = "port") -> Json:
    """A link from a row with the columns `switch` and `port` to this port on the link dashboard.

    Without a host, which would hide other ports of the switch there.
    """
    chosen = f"&var-switch=${{__data.fields.{switch}}}&var-switch_port=${{__data.fields.{port}}}"
    return {
        "title": "Open the link",
        "url": f"/d/roce-link/roce-link?{_SOURCE}&${{cluster:queryparam}}{chosen}&var-host=$__all&var-netdev=$__all{_TIME}",
    }


def to_pause_tree(switch: str = "device", port: str = "port") -> Json:
    """A link from a row with a switch and its port to where the pause of this port starts, as text of the switch service."""
    chosen = f"switch=${{__data.fields.{switch}}}&port=${{__data.fields.{port}}}"
    return {
        "title": "Where pause starts (text)",
        "url": f"${{switches}}/debug/pause-tree?{chosen}",
        "targetBlank": True,
    }


def series_to_link() -> Json:
    """A link from a line of a graph of a host's port to the link dashboard, which finds the switch port."""
    host = "&var-host=${__field.labels.instance}&var-netdev=${__field.labels.netdev}"
    cluster = "&var-cluster=${__field.labels.cluster}"
    return {"title": "Open the link", "url": f"/d/roce-link/roce-link?{_SOURCE}{cluster}{host}{_TIME}"}


def runbook(alert: str = "${__data.fields.alertname}") -> list[Json]:
    """A link to an alert's runbook, at the same place as in the rules' annotations; the board has the variable `WITH_RUNBOOKS`."""
    return [{"title": "Open the runbook", "url": f"${{runbooks}}/{alert}.md", "targetBlank": True}]


def to_thing() -> Json:
    """A link from an alert to the board of what it is about: the column `board` has its name. Boards ignore variables that they lack."""
    names = ("cluster", "job", "instance", "switch", "switch_port")
    chosen = "".join(f"&var-{name}=${{__data.fields.{name}}}" for name in names)
    return {
        "title": "Open what it is about",
        "url": f"/d/${{__data.fields.board}}/roce?{_SOURCE}{chosen}&var-host=$__all&var-netdev=$__all{_TIME}",
    }


def firing(scope: str, severity: str = f"{CRITICAL}|{WARNING}") -> str:
    """Start of each firing alert, as Unix time. `ALERTS` alone has no start time."""
    matchers = f'alertname=~"Roce.*",severity=~"{severity}",{scope}'
    return (
        f'(ALERTS_FOR_STATE{{{matchers}}} and ignoring (alertstate) ALERTS{{alertstate="firing",{matchers}}})'
    )


def alerts(*scopes: str) -> Annotation:
    """Onsets of the alerts of a few hosts, or of other series. The timelines show when they end."""
    found = " or ".join(map(firing, scopes))
    return Annotation(
        "Alerts",
        f"({found}) * 1000" if len(scopes) > 1 else f"{found} * 1000",
        "{{alertname}}",
        "{{severity}}: {{instance}} {{device}}/{{port}} {{netdev}} priority {{priority}} {{direction}}",
        BAD,
        tags="severity,alertname",
    )


def alerts_of_clusters(severity: str = f"{CRITICAL}|{WARNING}", *, enabled: bool = False) -> Annotation:
    """Onsets of alerts, only the first of each name in a cluster: not more for 5,000 hosts than for five, nor slower."""
    return Annotation(
        "Alerts",
        f'{FIRST}{{severity=~"{severity}",{CLUSTER}}} * 1000',
        "{{alertname}}",
        "{{severity}}: the first in {{cluster}}",
        BAD,
        tags="severity,alertname",
        enabled=enabled,
    )


def storms(scope: str) -> Annotation:
    """Onsets of PFC storms, exact to the second rather than to the scrape."""
    return Annotation(
        "Storms",
        f"roce_pfc_storm_last_start_timestamp_seconds{{{scope}}} * 1000",
        "PFC storm begins, {{direction}}",
        "{{instance}} {{device}}/{{port}} {{netdev}} priority {{priority}}",
        SEVERITY[WARNING],
        tags="direction,priority",
    )
