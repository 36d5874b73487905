"""The daemon keeps a part of the rows: its findings are those of all rows. What else must not change a verdict is in `test_invariants.py`."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from built_host import fine_and_said
from changed_host import healthy_moments
from fault_histories import fault_history, simulated_history
from fault_table import load_faults
from hardware_trials import load_trials, trial_history

from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import KEPT
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.view.host_view import History, HostClock, TimedSamples

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


def test_what_is_fine_is_in_no_finding(histories) -> None:
    for key, history in histories.items():
        assert fine_and_said(diagnose(history)) == [], key


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_what_is_fine_is_in_no_finding_of_a_scenario(scenario) -> None:
    clock = HostClock()
    history = await simulated_history(simulate(scenario, clock=clock), clock)
    assert fine_and_said(diagnose(history)) == []


def test_the_daemons_rows_are_sufficient(histories) -> None:
    """But for what it can only say is unseen."""
    for key, history in histories.items():
        kept = tuple(
            TimedSamples(one.time, {name: of for name, of in one.values.items() if name in KEPT})
            for one in history
        )
        assert found(kept) == found(history), key
