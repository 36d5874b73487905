"""A fleet's plan as text, as JSON, and as the table of docs/operating.md."""

from __future__ import annotations

import json
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from roce_exporter.introspection.fleet_factors import FACTORS, MEMORY, RIVALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from roce_exporter.catalog.row import MetricSet
    from roce_exporter.introspection.fleet_plan import FleetPlan

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
DAY = 86400
WIDTH = 110
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
LOWEST = 0.01
"""Smaller numbers of cores are shown as less than this."""


def plan_text(plan: FleetPlan) -> str:
    """One page for a person."""
    lines = [
        *_title(plan),
        "",
        *_needs(plan),
        "",
        *_advice(plan),
        "",
        *_rivals(plan),
        "",
        *_factors(plan.fleet.metric_set),
    ]
    return "".join(f"{one}\n" for line in lines for one in _folded(line))


def _folded(line: str) -> list[str]:
    """A long line as several; its continuation is indented like its first word, and by two more."""
    indent = " " * (len(line) - len(line.lstrip()))
    return wrap(line, WIDTH, subsequent_indent=f"{indent}  ") if len(line) > WIDTH else [line]


def plan_json(plan: FleetPlan) -> str:
    """The same for programs, in base units."""
    fleet = plan.fleet
    document: dict[str, Any] = {
        "hosts": fleet.hosts,
        "ports_per_host": fleet.ports,
        "driver": fleet.driver,
        "set": fleet.metric_set.value,
        "interval_seconds": fleet.interval,
        "retention_seconds": fleet.retention,
        "series_per_host": plan.size.series,
        "series": plan.series,
        "samples_per_second": plan.samples_per_second,
        "memory_bytes": plan.memory_bytes,
        "disk_bytes": plan.disk_bytes,
        "network_bytes_per_second": plan.network_bytes_per_second,
        "rules_seconds_per_evaluation": plan.rules_seconds,
        "cores": {"rules": plan.rules_cores, "ingestion": plan.ingestion_cores},
        "topology": plan.topology._asdict(),
        "factors": [
            {
                "value": one.of(fleet.metric_set),
                "unit": one.unit,
                "measured": one.measured,
                "command": one.command,
            }
            for one in FACTORS
        ],
        "rivals": [
            {"name": one.name, "series": one.series * fleet.hosts * fleet.ports, "contents": one.contents}
            for one in RIVALS
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def plan_table(plans: Iterable[FleetPlan]) -> str:
    """The plans in Markdown, one per line."""
    head = "| hosts | set | series | samples/s | memory | disk | network | cores: ingestion + rules | arrangement |"
    lines = [head, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    return "\n".join([*lines, *map(_row, plans)]) + "\n"


def _row(plan: FleetPlan) -> str:
    cells = (
        f"{plan.fleet.hosts:,}",
        plan.fleet.metric_set.value,
        amount(plan.series),
        amount(plan.samples_per_second),
        amount(plan.memory_bytes, "B"),
        amount(plan.disk_bytes, "B"),
        amount(plan.network_bytes_per_second, "B/s"),
        f"{cores(plan.ingestion_cores)} + {cores(plan.rules_cores)}",
        SHORT[plan.topology.name](plan),
    )
    return f"| {' | '.join(cells)} |"


SHORT: dict[str, Callable[[FleetPlan], str]] = {
    "one": lambda _: "one Prometheus",
    "per_cluster": lambda plan: f"{plan.topology.servers} by cluster",
    "store": lambda plan: f"{plan.topology.agents:,} agents, store of {plan.topology.servers:,} machines",
}
"""The arrangements in a cell of the table."""


def _title(plan: FleetPlan) -> Iterator[str]:
    fleet = plan.fleet
    yield (
        f"{fleet.hosts:,} {_plural(fleet.hosts, 'host')} of {fleet.ports} {fleet.driver} {_plural(fleet.ports, 'port')}, set "
        f"{fleet.metric_set.value}, a scrape every {fleet.interval:g} s, kept for {fleet.retention / DAY:g} days"
    )


def _needs(plan: FleetPlan) -> Iterator[str]:
    size, fleet = plan.size, plan.fleet
    for name, needed, why in (
        (
            "series",
            amount(plan.series),
            f"{size.series:,} per host, {size.series / fleet.ports:.0f} per port: a simulated host under an incast",
        ),
        ("samples", f"{amount(plan.samples_per_second)}/s", ""),
        (
            "memory",
            amount(plan.memory_bytes, "B"),
            f"{amount(plan.series * MEMORY.of(fleet.metric_set), 'B')} for the series, the rest for queries",
        ),
        ("disk", amount(plan.disk_bytes, "B"), ""),
        (
            "network",
            amount(plan.network_bytes_per_second, "B/s"),
            f"{size.gzipped:,} bytes per scrape, gzipped",
        ),
        (
            "cores",
            cores(plan.cores),
            f"{cores(plan.ingestion_cores)} to store samples, {cores(plan.rules_cores)} for all rules",
        ),
        ("rules", seconds(plan.rules_seconds), "per evaluation, if one group follows the other"),
    ):
        yield f"{name:<9}{needed:>12}   {why}".rstrip()


def _advice(plan: FleetPlan) -> Iterator[str]:
    yield f"Recommended: {plan.topology.text}."


def _rivals(plan: FleetPlan) -> Iterator[str]:
    yield "The same fleet with other exporters (python bench series):"
    for one in RIVALS:
        series = one.series * plan.fleet.hosts * plan.fleet.ports
        yield f"  {amount(series):>8} series, {amount(series / plan.fleet.interval)}/s: {one.name}, {one.contents}"


def _factors(metric_set: MetricSet) -> Iterator[str]:
    yield "Factors, and the command that prints each:"
    for one in FACTORS:
        yield f"  {one.of(metric_set):g} {one.unit}: {one.measured} ({one.command})"
    yield "Owners, virtual functions and switches add to this: docs/metric-sets.md."


def amount(number: float, unit: str = "") -> str:
    """A number with two significant digits, or three from 100 on, and a decimal prefix: `4.8 M`, `180 kB/s`."""
    for size, prefix in PREFIXES:
        if round(number / size, 2) >= 1:
            return f"{_short(number / size)} {prefix}{unit}"
    return f"{_short(number)} {unit}".rstrip()


def cores(number: float) -> str:
    """A number of cores."""
    return f"{number:.2f}" if number >= LOWEST else f"<{LOWEST}"


def seconds(number: float) -> str:
    """A duration."""
    return f"{number:.2g} s" if number < 1 else f"{_short(number)} s"


def _short(number: float) -> str:
    rounded = float(f"{number:.3g}" if number >= 100 else f"{number:.2g}")  # noqa: PLR2004 - as the docstring of `amount` says
    return f"{rounded:g}" if rounded < 1000 else f"{rounded:,.0f}"  # noqa: PLR2004 - thousands


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"
