"""`check fabric`: what the probes and rates of all hosts in a Prometheus say together."""

from __future__ import annotations

import time

from roce_exporter.catalog import probe as rows
from roce_exporter.checks.fabric_check import ODD_LIMIT, OddHost, PortRate, fabric_report
from roce_exporter.checks.finding import NotChecked, Report, joined
from roce_exporter.checks.switches.recorded_pause import recorded_links, recorded_pause
from roce_exporter.checks.thresholds import Thresholds
from roce_exporter.cli.check_host import asking
from roce_exporter.net import NetError
from roce_exporter.net.http import Access, HttpServer
from roce_exporter.probe.bandwidth import DIRECTIONS
from roce_exporter.probe.fleet import COUNT, SUM
from roce_exporter.probe.outcomes import SHOWN_SECONDS
from roce_exporter.view.remote import PrometheusQueries
from roce_exporter.words import counted, duration

_COUNTED = (
    *(rows.SENT, rows.LOST, rows.LATE, rows.MARKED, rows.REMARKED, rows.PAIR_SENT, rows.PAIR_LOST),
    *(rows.REPLIES_DROPPED, rows.REQUESTS_DROPPED, rows.PORT_INFO),
)
METRICS = (
    *(one.name for one in _COUNTED),
    *(one.name + part for one in (rows.NETWORK, rows.ANSWER) for part in (SUM, COUNT)),
)
HIGHEST = "max by (instance, device, port) (max_over_time(rate({0}[5m])[7d:5m]))"
SCORES = "instance_workload_signal:roce_odd_host:score"
"""Of the recording rules in alerts/rules/owners.yml; the next one has only hosts above the limit that are no group."""
ODD = f"({SCORES} > {ODD_LIMIT}) and on (cluster, workload, instance) instance_workload:roce_odd_host:score"
SPEED = "max by (instance, device, port) (roce_port_speed_bytes_per_second)"


async def check_fabric(
    limits: Thresholds, since: float, name: str, server: HttpServer, access: Access
) -> tuple[str, int, Report]:
    """The head of the page, the number of hosts that probe, and what was found in the last `since` seconds.

    Raises:
        OptionError: Prometheus cannot be queried.
    """
    now = time.time()

    async def ask(query: str, at: float) -> list[tuple[dict[str, str], float]]:
        return await PrometheusQueries(server, access, at, 1, 1).values(query)

    try:
        pause = await recorded_pause(ask, since, now)
    except NetError as error:  # a heavy query, without which the probes can be judged
        pause = Report((), (NotChecked(f"where pause starts: {error}"),))
    try:
        links = await recorded_links(ask, limits, since, now)
    except NetError as error:
        links = Report((), (NotChecked(f"both ends of links: {error}"),))
    since = min(since, SHOWN_SECONDS)  # a host shows a lossy pair for this time
    queries = PrometheusQueries(server, access, now, since, since)
    with asking(name):
        found = await queries.ends(METRICS)
    # An exporter that was there only at the beginning says nothing of the time.
    last = max((one[-1].time for one in found.values()), default=0.0)
    present = [one for one in found.values() if one[-1].time == last]
    report = fabric_report(present, await _rates(queries), await _odd(queries))
    return (
        f"{name}: {counted(len(present), 'prober')}, {duration(since)}",
        len(present),
        joined((report, pause, links)),
    )


async def _rates(queries: PrometheusQueries) -> list[PortRate] | None:
    """The highest rate of each port in either direction, which is a heavy query; None: it failed."""
    try:
        speeds = {_place(labels): value for labels, value in await queries.values(SPEED)}
        highest: dict[tuple[str, str, str], float] = {}
        for name in DIRECTIONS:
            for labels, value in await queries.values(HIGHEST.format(name)):
                highest[_place(labels)] = max(value, highest.get(_place(labels), 0.0))
        return [PortRate(*place, value, speeds.get(place)) for place, value in highest.items()]
    except NetError:
        return None


async def _odd(queries: PrometheusQueries) -> list[OddHost] | None:
    """The host of each job that differs from the others, by signal; None: the recording rules are not there, or no job has owners."""
    try:
        if not await queries.values(f"count({SCORES})"):
            return None
        return [
            OddHost(labels.get("instance", ""), labels.get("workload", ""), labels.get("signal", ""), value)
            for labels, value in await queries.values(ODD)
        ]
    except NetError:
        return None


def _place(labels: dict[str, str]) -> tuple[str, str, str]:
    return labels.get("instance", ""), labels.get("device", ""), labels.get("port", "")
