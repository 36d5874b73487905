"""Rows and raw names for tests, with the values that most of them do not care about."""

from roce_exporter.catalog.row import (
    COUNTER,
    FULL,
    GAUGE,
    NETDEV_LABELS,
    PORT_LABELS,
    MetricSet,
    Row,
    Spelling,
)


def counter(
    name: str,
    unit: str,
    meaning: str,
    *spellings: Spelling,
    stability: str = "stable",
    metric_set: MetricSet = FULL,
    usual: int | None = None,
) -> Row:
    """A counter row with the labels of a port."""
    return Row(name, COUNTER, unit, meaning, spellings, PORT_LABELS, stability, metric_set, usual)


def gauge(
    name: str,
    unit: str,
    meaning: str,
    *spellings: Spelling,
    stability: str = "stable",
    metric_set: MetricSet = FULL,
) -> Row:
    """A gauge row with the labels of a port."""
    return Row(name, GAUGE, unit, meaning, spellings, PORT_LABELS, stability, metric_set)


def netdev_counter(
    name: str,
    unit: str,
    meaning: str,
    *spellings: Spelling,
    labels: tuple[str, ...] = NETDEV_LABELS,
    metric_set: MetricSet = FULL,
    usual: int | None = None,
) -> Row:
    """A counter row of a network device, or of one priority, lane or queue of it."""
    return Row(name, COUNTER, unit, meaning, spellings, labels, "stable", metric_set, usual)


def spelt(
    dialect: str,
    source: str,
    *raw: str,
    bits: int = 64,
    times: int = 1,
    per: int = 1,
    difference: bool = False,
) -> Spelling:
    """A spelling; several raw names mean their sum, or their difference."""
    return Spelling(dialect, source, raw, bits, times, per, difference)
