"""Properties of a verdict that need no truth: what does not change a host does not change its findings."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from changed_host import healthy_moments
from fault_histories import fault_history
from fault_table import load_faults
from hardware_trials import load_trials, trial_history

from roce_exporter.catalog import INDEX
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import KEPT
from roce_exporter.view.history import History, LabelValues, TimedSamples

Found = list[tuple[str, str, str, str, str]]
CHEAP = [one for one in load_faults() if not (one.simulate or one.script)]


@pytest.fixture(scope="module")
def histories() -> Mapping[str, History]:
    async def every() -> dict[str, History]:
        with tempfile.TemporaryDirectory() as folder:
            moments = await healthy_moments(Path(folder))
        found = {one.id: await fault_history(one, moments) for one in CHEAP}
        return found | {one.key: await trial_history(one) for one in load_trials()[::4]}

    return asyncio.run(every())


def found(history: History) -> Found:
    return [
        (one.device, one.port, one.check, one.side.value, one.status.name)
        for one in diagnose(history).findings
    ]


def each(history: History, change: Callable[[str, LabelValues, float], tuple[LabelValues, float]]) -> History:
    return tuple(
        TimedSamples(
            moment.time,
            {
                name: dict(change(name, labels, value) for labels, value in series.items())
                for name, series in moment.values.items()
            },
        )
        for moment in history
    )


def test_the_daemons_rows_are_sufficient(histories: Mapping[str, History]) -> None:
    """But for what it can only say is unseen."""
    for key, history in histories.items():
        kept = tuple(
            TimedSamples(one.time, {name: of for name, of in one.values.items() if name in KEPT})
            for one in history
        )
        assert found(kept) == found(history), key


def test_the_name_of_a_device_means_nothing(histories: Mapping[str, History]) -> None:
    def renamed(name: str, labels: LabelValues, value: float) -> tuple[LabelValues, float]:
        row = INDEX.named[name]
        return tuple(
            f"z_{text}" if label in ("device", "netdev") and text else text
            for label, text in zip(row.labels, labels, strict=True)
        ), value

    for key, history in histories.items():
        wanted = [(f"z_{device}" if device else "", *rest) for device, *rest in found(history)]
        assert sorted(found(each(history, renamed))) == sorted(wanted), key


def test_counters_begin_anywhere(histories: Mapping[str, History]) -> None:
    """But 0 is a port that never had a link, and read errors that never were."""

    def higher(name: str, labels: LabelValues, value: float) -> tuple[LabelValues, float]:
        is_counter = INDEX.named[name].kind == "counter" and name not in ABSOLUTE
        return labels, value + 1e6 if is_counter else value

    for key, history in histories.items():
        assert found(each(history, higher)) == found(history), key


ABSOLUTE = {
    "roce_netdev_carrier_down_total",
    "roce_netdev_carrier_up_total",
    "roce_link_down_events_total",
    "roce_port_link_downed_total",
    "roce_exporter_read_errors_total",
}
