"""Samples as prometheus-client's metric families, for programs that serve them through their own registry.

Slower than `exposition` by two orders of magnitude; serves as the oracle for its tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from roce_exporter.catalog import CATALOG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.normalise.series import Samples


def families(parts: Sequence[Samples]) -> Iterator[Metric]:
    """One family per row that has samples, in the catalogue's order. Values become floats, as everywhere in prometheus-client."""
    found: dict[str, Metric] = {}
    for part in parts:
        for series, value in zip(part.series, part.values, strict=True):
            if value is None:
                continue
            row = series.row
            if row.name not in found:
                found[row.name] = Metric(row.name.removesuffix("_total"), row.help, row.kind)
            labels = {name: text for name, text in zip(row.labels, series.labels, strict=True) if text}
            found[row.name].add_sample(row.name, labels, value)
    yield from (found[row.name] for row in CATALOG if row.name in found)
