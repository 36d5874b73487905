"""What the set lean leaves out takes nothing from a diagnosis: every fault of the scoreboard, seen through lean and standard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from changed_host import healthy_moments
from fault_histories import fault_history
from fault_table import load_faults

from roce_exporter.catalog.row import LEAN, STANDARD, MetricSet
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.health.diagnosis import diagnose
from roce_exporter.health.from_samples import timed_samples
from roce_exporter.health.usual_values import with_usual_values
from roce_exporter.introspection import host_history

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fault_table import Fault

    from roce_exporter.health.history import History, TimedSamples
    from roce_exporter.health.port_fault import Diagnosis
    from roce_exporter.normalise.series import Samples
    from roce_exporter.recording.tree import Tree

FAULTS = load_faults()


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tree, ...]:
    return asyncio.run(healthy_moments(tmp_path_factory.mktemp("healthy")))


class ServedHistory:
    """Takes what one exporter would serve at each moment of a history."""

    def __init__(self, metric_set: MetricSet) -> None:
        self._served = ServedSeries(metric_set)
        self._moments: list[TimedSamples] = []

    def follow(self, parts: Iterable[Samples], time: float) -> None:
        self._moments.append(timed_samples(self._served.select(tuple(parts)), time))

    def history(self) -> History:
        """As Prometheus returns it."""
        return with_usual_values(tuple(self._moments))


def found(diagnosis: Diagnosis) -> list[tuple[str, str, str, str]]:
    return [(one.device, one.port, one.cause.name, str(one.side)) for one in diagnosis.findings]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
async def test_a_fault_is_found_in_every_set(
    fault: Fault, moments: tuple[Tree, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = {one: ServedHistory(one) for one in (LEAN, STANDARD)}

    def sample(parts: Iterable[Samples], time: float) -> TimedSamples:
        for one in served.values():
            one.follow(parts, time)
        return timed_samples(parts, time)

    monkeypatch.setattr(host_history, "timed_samples", sample)
    history = await fault_history(fault, moments)
    everything = diagnose(history)
    for metric_set, one in served.items():
        seen = diagnose(one.history())
        assert found(seen) == found(everything), metric_set
        if "mlx5" in fault.vendors:
            assert set(seen.unseen) <= set(everything.unseen), metric_set
