"""PromQL and units of a row of the catalogue. Counters are only shown as rate or growth."""

from __future__ import annotations

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, Row

ROWS = INDEX.named

RATE_UNITS = {"seconds": "percentunit", "bytes": "Bps", "packets": "pps", "frames": "pps"}
"""Grafana's unit of a counter's rate; seconds per second are a share of time. All others are counts per second."""

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
"""Grafana's unit of a value; all others are plain numbers."""

WINDOW = "$__rate_interval"


def row(name: str) -> Row:
    """The row of a metric.

    Raises:
        KeyError: the metric does not exist.
    """
    return ROWS[name]


def now(name: str, scope: str) -> str:
    """The value of a gauge.

    Raises:
        ValueError: the metric is a counter.
    """
    if row(name).kind == COUNTER:
        raise ValueError(f"{name} is a counter: show its rate or its growth")
    return f"{name}{{{scope}}}"


def rate(name: str, scope: str, window: str = WINDOW) -> str:
    """The rate of a counter.

    Raises:
        ValueError: the metric is not a counter.
    """
    return f"rate({_counter(name)}{{{scope}}}[{window}])"


def growth(name: str, scope: str, window: str = WINDOW) -> str:
    """The increase of a counter within a window.

    Raises:
        ValueError: the metric is not a counter.
    """
    return f"increase({_counter(name)}{{{scope}}}[{window}])"


def seen(name: str, scope: str) -> str:
    """Series of a counter that rose within the range shown. The others would only add zeros to the legend.

    A comparison of the rate itself would interrupt the line where it is zero.
    """
    return f"increase({_counter(name)}{{{scope}}}[$__range] @ end()) > 0"


def moved(name: str, scope: str) -> str:
    """The rate of the series that rose within the range shown."""
    return f"{rate(name, scope)} and {seen(name, scope)}"


def still(name: str, scope: str) -> str:
    """0 if the counter exists but no series of it rose: "no events", as opposed to "not counted"."""
    return f"sum({rate(name, scope)}) unless on () ({seen(name, scope)})"


def lossless(expression: str, scope: str) -> str:
    """Restricts to lossless priorities, because many drivers count all eight. Without DCB data all priorities are kept."""
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
    """The metrics' HELP texts from the catalogue, as a list in Markdown."""
    return "\n".join(f"- `{name}`: {row(name).help}" for name in names)


def _counter(name: str) -> str:
    if row(name).kind != COUNTER:
        raise ValueError(f"{name} is not a counter: show its value")
    return name
