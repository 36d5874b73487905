"""Where a factor between two units may be applied in an expression: as far out as it provably changes nothing.

A factor is a positive number by which every sample of a metric differs. It passes through what is linear, vanishes in what only
counts or orders samples, and is applied before everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_exporter.migrate.foreign import Foreign

Factor = tuple[int, int]
"""Our value is theirs x the first number / the second."""
SAME: Factor = (1, 1)

LINEAR_OVER_TIME = frozenset(
    (
        "avg_over_time",
        "delta",
        "deriv",
        "double_exponential_smoothing",
        "first_over_time",
        "holt_winters",
        "idelta",
        "increase",
        "irate",
        "last_over_time",
        "mad_over_time",
        "max_over_time",
        "min_over_time",
        "predict_linear",
        "quantile_over_time",
        "rate",
        "stddev_over_time",
        "sum_over_time",
    )
)
BLIND_OVER_TIME = frozenset(
    (
        "absent_over_time",
        "changes",
        "count_over_time",
        "present_over_time",
        "resets",
        "ts_of_first_over_time",
        "ts_of_last_over_time",
        "ts_of_max_over_time",
        "ts_of_min_over_time",
    )
)
"""Functions whose result is the same when all samples are multiplied by one positive number."""
LINEAR = frozenset(
    ("abs", "label_join", "label_replace", "sort", "sort_by_label", "sort_by_label_desc", "sort_desc")
)
BLIND = frozenset(("absent", "timestamp"))
LINEAR_AGGREGATIONS = frozenset(
    ("avg", "bottomk", "limitk", "limit_ratio", "max", "min", "quantile", "stddev", "sum", "topk")
)
BLIND_AGGREGATIONS = frozenset(("count", "group"))


def factor_of(one: Foreign) -> Factor:
    """The factor between a metric of another exporter and ours."""
    return one.times, one.per


def undo(factor: Factor) -> str:
    """The operators behind a value of ours that make it theirs: ` / 4`."""
    times, per = factor
    return (f" * {per}" if per != 1 else "") + (f" / {times}" if times != 1 else "")


def cancels(factor: Factor, number: float | None) -> bool:
    """Whether multiplying theirs by a number gives ours."""
    times, per = factor
    return factor != SAME and number is not None and number * per == times
