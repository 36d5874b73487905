"""No healthy host has failed: all recorded quiet hosts, and a simulated day of a host with a port of each vendor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from quiet_hosts import QUIET, quiet_day, repeated

from roce_exporter.health.diagnosis import diagnose
from roce_exporter.health.port_fault import Health

if TYPE_CHECKING:
    from roce_exporter.health.history import History


def failed(history: History) -> list[tuple[str, str, tuple[str, ...]]]:
    """The findings that would drain the host."""
    return [
        (one.device, one.cause.name, one.evidence)
        for one in diagnose(history).findings
        if one.cause.health is Health.FAILED
    ]


@pytest.mark.parametrize("name", QUIET)
async def test_no_recorded_host_has_failed(name: str) -> None:
    history = await repeated(name)
    assert len(history) == 2
    assert failed(history) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7])
async def test_nothing_is_wrong_with_a_quiet_host_in_a_day(seed: int) -> None:
    windows = list(await quiet_day(seed))
    assert len(windows) == 24 * 12 - 5
    found = {
        (one.device, one.cause.name, one.evidence) for window in windows for one in diagnose(window).findings
    }
    assert found == set()
