"""Hosts without a fault: recorded ones, and simulated ones over a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fault_histories import recorded_history, simulated_history
from recorded import HOSTS, recording

from roce_exporter.introspection.host_history import HostClock
from roce_exporter.recording.recorded import RecordedKernel, load_recording
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.health.history import History

FAULTY = frozenset(
    {
        "sick",  # every kind of garbage
        "moving",  # a link that is lost
        "hotplug",  # a device that goes
    }
)
"""Recordings of hosts with faults that are more than a wrong setting or a port without a cable."""

QUIET = tuple(host for host in HOSTS if host not in FAULTY)

DAY, APART = 86_400, 300
WINDOW = 7
"""Samples of one diagnosis: half an hour."""


async def repeated(name: str) -> History:
    """The first moment of a recording and the same again 15 s later: nothing moves."""
    whole = load_recording(recording(name))
    still = RecordedKernel(whole.moments[:1] * 2, (0.0, 15.0))
    return await recorded_history(still)


async def quiet_day(seed: int) -> Iterator[History]:
    """Half an hour at a time, a day of a host with a port of each vendor."""
    clock = HostClock()
    kernel = simulate("quiet", clock=clock, vendors=("mlx5", "bnxt", "ionic", "ice", "mlx5-lag"), seed=seed)
    day = await simulated_history(kernel, clock, range(0, DAY + 1, APART), storms=False)
    return (day[begin : begin + WINDOW] for begin in range(len(day) - WINDOW + 1))
