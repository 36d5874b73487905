"""`roce-exporter plan`: what a fleet of hosts costs a Prometheus, and how to arrange it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import MetricSet
from roce_exporter.cli.output import print_text
from roce_exporter.introspection.fleet_plan import Fleet, plan
from roce_exporter.introspection.fleet_report import JSON, plan_json, plan_text
from roce_exporter.introspection.fleet_table import fleet_table, host_sizes

if TYPE_CHECKING:
    import argparse


async def plan_fleet(options: argparse.Namespace) -> int:
    """Print the plan of one fleet, or the table."""
    chosen = MetricSet(options.metric_set)
    fleet = Fleet(
        options.hosts or 1, options.ports, options.driver, chosen, options.interval, options.retention
    )
    if options.table:
        print_text(await fleet_table(fleet))
        return 0
    found = plan(fleet, (await host_sizes(fleet.driver, fleet.ports))[chosen])
    print_text(plan_json(found) if options.format == JSON else plan_text(found))
    return 0
