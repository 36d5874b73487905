"""The daemon on a simulated host of 16 ports that changes all the time; run as a program, with the daemon's own flags.

Every second another device is removed, and added again a second later as a new incarnation; every few seconds PFC is
reconfigured on each port. On SIGUSR1 it prints the number of tasks on standard error.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import time
from typing import TYPE_CHECKING

from roce_exporter.cli import entry
from roce_exporter.simulation.conditions import RECEIVE, Conditions, Pause, Span
from roce_exporter.simulation.kernel import ScriptedPort, simulate_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.simulation.kernel import SimulatedKernel

PORTS = 16
CLASS = "class/infiniband"
MASKS = ((3,), (3, 4), (4,), ())


class RestlessKernel:
    """A simulated host from which device N modulo 16 is missing in second N."""

    def __init__(self, kernel: SimulatedKernel) -> None:
        self._kernel = kernel
        self._start = time.monotonic()

    def __getattr__(self, name: str) -> object:
        return getattr(self._kernel, name)

    def entries(self, path: str) -> tuple[str, ...]:
        """Without the missing device: one, also if the second ends while the list is made."""
        found, out = self._kernel.entries(path), self._out()
        return tuple(name for name in found if path != CLASS or name != out)

    def rdma_devices(self) -> tuple[object, ...]:
        """Without the missing device."""
        out = self._out()
        return tuple(one for one in self._kernel.rdma_devices() if one.name != out)

    def identity(self, path: str) -> int:
        """How often the device was added."""
        self._kernel.identity(path)
        number = path.rpartition("_")[2]
        return (self._second() - int(number)) // PORTS if number.isdecimal() else 0

    def _second(self) -> int:
        return int(time.monotonic() - self._start)

    def _out(self) -> str:
        return f"mlx5_{self._second() % PORTS}"


def spans(port: int) -> Iterator[Span]:
    """Permanent congestion, with PFC that is switched on and off."""
    pause = (Pause(3, RECEIVE, 0.4),)
    for turn in itertools.count(port):
        yield Span(3.0, Conditions(load=0.8, marked=0.01, pauses=pause, lossless=MASKS[turn % len(MASKS)]))


def restless(_: object) -> RestlessKernel:
    """The changing host, whatever the flags say."""
    ports = [ScriptedPort("mlx5", spans(number)) for number in range(PORTS)]
    return RestlessKernel(simulate_script(ports, clock=time.monotonic))


def tell_tasks(*_: object) -> None:
    sys.stderr.write(f"tasks={len(asyncio.all_tasks())}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell_tasks)
    entry.open_kernel = restless  # type: ignore[assignment]  # it answers as a Kernel does
    sys.exit(entry.main())
