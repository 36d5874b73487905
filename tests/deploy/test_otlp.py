"""What Prometheus 3 makes of our metrics when they arrive by OTLP, by its translation strategy. No collector is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deploy_exposition import CATALOGUE, CLUSTER, Frozen, catalogue, frozen
from deploy_paths import otlp_config, otlp_prometheus, receiving_prometheus
from otlp_sender import send

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import HISTOGRAM
from roce_exporter.exposition import Format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deploy_exposition import Labels, Values
    from deploy_servers import Server

pytestmark = pytest.mark.nightly

TARGET = {"job": "roce", "instance": CATALOGUE, "cluster": CLUSTER}
WITHOUT_COUNT = {row.name for row in CATALOG if row.kind == HISTOGRAM and row.spellings}
"""Histograms that a driver counts have neither sum nor count, and the collector's receiver drops those without a count."""


@pytest.fixture
def page() -> Iterator[Frozen]:
    """The catalogue, in OpenMetrics."""
    otlp_prometheus()
    with frozen({CATALOGUE: catalogue()}) as given:
        given.scraped[CATALOGUE] = Format.OPENMETRICS
        yield given


def received(server: Server, page: Frozen) -> Values:
    """What a server has of the page after it was sent."""
    send(server.url, page.pages[CATALOGUE][Format.OPENMETRICS], TARGET)
    return server.values('{__name__!="",__name__!="target_info"}')


def expected(page: Frozen) -> Values:
    return {
        frozenset((dict(labels) | TARGET).items()): value
        for labels, value in page.values(CATALOGUE).items()
        if name_of(labels).removesuffix("_bucket") not in WITHOUT_COUNT
    }


def name_of(labels: Labels) -> str:
    return dict(labels)["__name__"]


def bounds_as_numbers(values: Values) -> Values:
    """Buckets by the number of their bound: 1 here is 1.0 in our page of OpenMetrics or the other way round."""
    return {
        frozenset((key, str(float(text)) if key == "le" else text) for key, text in labels): value
        for labels, value in values.items()
    }


def names(values: Values) -> set[str]:
    return {name_of(labels) for labels in values}


def test_prometheus_otlp_yml_keeps_names_labels_and_values(tmp_path: Path, page: Frozen) -> None:
    """`job` and `instance` too, and no label of the resource or the scope is added."""
    with receiving_prometheus(tmp_path, otlp_config()) as server:
        assert bounds_as_numbers(received(server, page)) == bounds_as_numbers(expected(page))
        (info,) = server.values("target_info")
    assert {"job", "instance"} < {key for key, _ in info}


def test_the_default_strategy_renames(tmp_path: Path, page: Frozen) -> None:
    """It adds a unit that is not one word of the name."""
    with receiving_prometheus(tmp_path, otlp_config("UnderscoreEscapingWithSuffixes")) as server:
        found = names(received(server, page))
    assert "roce_port_speed_bytes_per_second" in names(expected(page)) - found
