"""The metrics of the process are byte for byte those of prometheus_client, with the values of now."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from roce_exporter.catalog.row import COUNTER, Row
from roce_exporter.self_metrics.own_registry import (
    MOST_TEMPLATES,
    CountedEvents,
    OwnRegistry,
    ProcessFamilies,
)

THINGS = Row("things_total", COUNTER, "things", "Things % counted.", labels=("kind", "a_code"))


class Fixed:
    """Families with values that a test sets."""

    def __init__(self, *found: float) -> None:
        self.found = found

    def collect(self) -> Iterator[Metric]:
        for number, value in enumerate(self.found):
            yield GaugeMetricFamily(f"fixed_{number}", "100 %d\nof \\ it", value)

    def values(self) -> tuple[float, ...]:
        return self.found


@pytest.fixture(autouse=True)
def _steady_process(monkeypatch) -> None:
    monkeypatch.setattr(ProcessFamilies, "values", lambda _: (1.5, 1024, 123456789, 7e6, 1.7e9, 12))


def rendered(registry: OwnRegistry) -> list[bytes]:
    return [registry.render(openmetrics=False), registry.render(openmetrics=True)]


def generated(registry: OwnRegistry) -> list[bytes]:
    inner: CollectorRegistry = registry._registry
    return [generate_latest(inner), generate_openmetrics(inner)]


def test_every_spelling_of_a_number_is_that_of_prometheus_client() -> None:
    registry, fixed = OwnRegistry(), Fixed(0)
    registry.register(fixed)
    for value in (0, 1, 2.5, 1e6, 1234567, 123456789012, 1e21, 1e-7, -3, 2**63, float("inf"), float("nan")):
        fixed.found = (value,)
        assert rendered(registry) == generated(registry), value


def test_families_that_come_and_go_are_shown() -> None:
    """Without /proc the process has two families instead of six."""
    registry, fixed = OwnRegistry(), Fixed(1, 2)
    registry.register(fixed)
    for found in ((1, 2), (1,), (), (5, 6, 7), (5, 6)) * 2:
        fixed.found = found
        assert rendered(registry) == generated(registry), found
        assert len(registry._templates) <= MOST_TEMPLATES


def test_two_formats_in_turn_are_generated_once_each(monkeypatch) -> None:
    registry = OwnRegistry()
    first = rendered(registry)
    monkeypatch.setattr(OwnRegistry, "_template", None)
    assert rendered(registry) == first


def test_a_counter_starts_without_series_and_counts_each_combination_of_labels() -> None:
    registry = OwnRegistry()
    counter = registry.counter(THINGS)
    for labels in ((), ("one", "2%"), ("one", "2%"), ('"quoted"\n\\', "é"), ("one", "2%")):
        if labels:
            counter.add(*labels)
        assert rendered(registry) == generated(registry), labels
    assert b'things_total{a_code="2%",kind="one"} 3.0\n' in registry.render(openmetrics=False)


def test_values_and_families_are_of_the_same_number_and_order() -> None:
    counter = CountedEvents(replace(THINGS, labels=("kind",)))
    counter.add("b")
    counter.add("a")
    counter.add("a")
    (family,) = counter.collect()
    assert tuple(sample.value for sample in family.samples) == counter.values() == (1, 2)


def test_a_process_whose_proc_fails_has_two_families(monkeypatch) -> None:
    monkeypatch.undo()
    registry, process = OwnRegistry(), ProcessFamilies()
    assert len(list(process.collect())) == len(process.values()) == 6
    broken = os.open("/proc", os.O_PATH)
    process._memory = broken
    assert len(list(process.collect())) == len(process.values()) == 2
    os.close(broken)
    assert b"process_open_fds" in registry.render(openmetrics=False)
