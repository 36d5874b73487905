"""No healthy host has failed: all recorded quiet hosts, and a simulated day of a host with a port of each vendor."""

import pytest
from fault_histories import recorded_history, simulated_history
from recorded import HOSTS, recording

from roce_exporter.checks.finding import Status
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.host.recorded.recorded import RecordedKernel, load_recording
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.view.host_view import History, HostClock

FAULTY = {
    "sick",  # every kind of garbage
    "moving",  # a link that is lost
    "hotplug",  # a device that goes
}
"""Recordings of hosts with faults that are more than a wrong setting or a port without a cable."""
HOUR, APART = 3600, 300
WINDOW = 7
"""Samples of one diagnosis: half an hour."""


def failed(history: History) -> list[tuple[str, str, tuple[str, ...]]]:
    """The findings that would drain the host."""
    return [
        (one.device, one.check, one.evidence)
        for one in diagnose(history).findings
        if one.status is Status.FAILED
    ]


@pytest.mark.parametrize("name", sorted({*HOSTS} - FAULTY))
async def test_no_recorded_host_has_failed(name) -> None:
    """The first moment, and the same again 15 s later: nothing moves."""
    whole = load_recording(recording(name))
    history = await recorded_history(RecordedKernel(whole.moments[:1] * 2, (0.0, 15.0)))
    assert len(history) == 2
    assert failed(history) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "hours"),
    [
        pytest.param(1, 4, marks=pytest.mark.ci),
        pytest.param(1, 24, marks=pytest.mark.nightly),
        pytest.param(7, 24, marks=pytest.mark.nightly),
    ],
)
async def test_nothing_is_wrong_with_a_quiet_host_in_hours(seed, hours) -> None:
    clock = HostClock()
    kernel = simulate("quiet", clock=clock, vendors=("mlx5", "bnxt", "ionic", "ice", "mlx5-lag"), seed=seed)
    day = await simulated_history(kernel, clock, range(0, hours * HOUR + 1, APART), storms=False)
    windows = [day[begin : begin + WINDOW] for begin in range(len(day) - WINDOW + 1)]
    assert len(windows) == hours * 12 - 5
    found = {(one.device, one.check, one.evidence) for window in windows for one in diagnose(window).findings}
    assert found == set()
