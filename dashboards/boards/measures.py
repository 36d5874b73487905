"""PromQL and units of a row of the catalogue: a counter is only ever shown as its rate or its growth."""

from __future__ import annotations

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, Row

ROWS: dict[str, Row] = {row.name: row for row in CATALOG}

RATE_UNITS = {"seconds": "percentunit", "bytes": "Bps", "packets": "pps", "frames": "pps"}
"""Grafana's unit of a counter's rate; seconds per second are a share of the time. Everything else: counts per second."""

UNITS = {
    "bool": "bool_yes_no",
    "seconds": "s",
    "bytes": "bytes",
    "bytes_per_second": "Bps",
    "ratio": "percentunit",
    "celsius": "celsius",
    "volts": "volt",
    "watts": "watt",
    "amperes": "amp",
}
"""Grafana's unit of a value; everything else is a plain number."""

WINDOW = "$__rate_interval"


def row(name: str) -> Row:
    """The row of a metric.

    Raises:
        KeyError: there is no such metric.
    """
    return ROWS[name]


def now(name: str, scope: str) -> str:
    """The value of a gauge as it is.

    Raises:
        ValueError: it is a counter.
    """
    if row(name).kind == COUNTER:
        raise ValueError(f"{name} is a counter: show its rate or its growth")
    return f"{name}{{{scope}}}"


def rate(name: str, scope: str, window: str = WINDOW) -> str:
    """How fast a counter rises.

    Raises:
        ValueError: it is no counter.
    """
    return f"rate({_counter(name)}{{{scope}}}[{window}])"


def growth(name: str, scope: str, window: str = WINDOW) -> str:
    """By how much a counter rose within a window.

    Raises:
        ValueError: it is no counter.
    """
    return f"increase({_counter(name)}{{{scope}}}[{window}])"


def seen(name: str, scope: str) -> str:
    """Series of a counter that rose within the range shown: the others would fill the legend with zeros.

    A comparison of the rate itself would cut the line wherever it is zero.
    """
    return f"increase({_counter(name)}{{{scope}}}[$__range] @ end()) > 0"


def moved(name: str, scope: str) -> str:
    """The rate of the series that rose within the range shown."""
    return f"{rate(name, scope)} and {seen(name, scope)}"


def still(name: str, scope: str) -> str:
    """0 where the counter exists and no series of it rose: nothing happened, which is not the same as nothing counted."""
    return f"sum({rate(name, scope)}) unless on () ({seen(name, scope)})"


def lossless(expression: str, scope: str) -> str:
    """What concerns lossless priorities: many drivers count all eight. Where DCB is not readable, every one may be lossless."""
    off = f"{now('roce_pfc_enabled', scope)} == 0"
    return f"{expression} unless on (cluster, job, instance, device, port, netdev, priority) {off}"


def relevant(name: str, scope: str) -> str:
    """The rate of a counter for lossless priorities, and for others that rose within the range shown."""
    return f"({lossless(rate(name, scope), scope)}) or ({moved(name, scope)})"


def part_above(name: str, bound: float, scope: str) -> str:
    """The share of a histogram's observations above one of its bounds."""
    if row(name).kind != HISTOGRAM:
        raise ValueError(f"{name} is not a histogram")
    below, every = (
        f"sum(rate({name}{part}}}[{WINDOW}]))"
        for part in (f'_bucket{{le="{bound}",{scope}', f"_count{{{scope}")
    )
    return f"1 - {below} / ({every} > 0)"


def quantile(share: float, name: str, scope: str) -> str:
    """A quantile of a histogram's observations."""
    if row(name).kind != HISTOGRAM:
        raise ValueError(f"{name} is not a histogram")
    return f"histogram_quantile({share}, sum by (le) (rate({name}_bucket{{{scope}}}[{WINDOW}])))"


def rate_unit(name: str) -> str:
    """Grafana's unit of `rate`."""
    return RATE_UNITS.get(row(name).unit, "cps")


def unit(name: str) -> str:
    """Grafana's unit of `now`."""
    return UNITS.get(row(name).unit, "none")


def meanings(*names: str) -> str:
    """What the metrics mean, in the catalogue's words, as a list in Markdown."""
    return "\n".join(f"- `{name}`: {row(name).help}" for name in names)


def _counter(name: str) -> str:
    if row(name).kind != COUNTER:
        raise ValueError(f"{name} is no counter: show it as it is")
    return name
