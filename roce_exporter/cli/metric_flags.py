"""Flags that select what `serve` and `once` show."""

from __future__ import annotations

import argparse
import time

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import STANDARD, MetricSet
from roce_exporter.exposition.served_series import ServedSeries

NAMES = frozenset(row.name for row in CATALOG)


def add_metric_flags(parser: argparse.ArgumentParser) -> None:
    """The set of metrics, and metrics to leave out."""
    add = parser.add_argument
    add(
        "--metrics.set",
        dest="metrics_set",
        choices=[one.value for one in MetricSet],
        default=STANDARD.value,
        help="which metrics are shown: lean (what alerts, diagnose and the dashboards of fleet, hosts, links and jobs need), standard "
        "(what all dashboards need, and all counters of faults; the default) or full (everything)",
    )
    add(
        "--metrics.exclude",
        dest="metrics_exclude",
        action="append",
        default=[],
        type=_name,
        metavar="NAME",
        help="leave out a metric of the set, by its exact name in docs/metrics.md; may be repeated",
    )


def served_series(options: argparse.Namespace) -> ServedSeries:
    """What these options show."""
    return ServedSeries(MetricSet(options.metrics_set), options.metrics_exclude, time.monotonic)


def _name(text: str) -> str:
    if text not in NAMES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a metric of this version; exact names are in docs/metrics.md"
        )
    return text
