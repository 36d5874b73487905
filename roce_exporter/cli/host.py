"""The host that the options select: this one, a recording, or a simulation."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from roce_exporter.cli.parser import OptionError
from roce_exporter.host.kernel.live import LiveKernel, raise_descriptor_limit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from roce_exporter.host.kernel import Kernel


def open_kernel(options: argparse.Namespace, clock: Callable[[], float] = time.monotonic) -> Kernel:
    """The host that the options select; `clock` is that of a simulated host.

    Raises:
        OptionError: sysfs is not found, the simulated host is invalid, or the recording cannot be read.
    """
    if options.host_simulate:
        return _simulate(options, clock)
    if options.host_recording:
        return _replay(options.host_recording)
    if not os.path.isdir(options.path_sysfs):
        raise OptionError(
            f"--path.sysfs={options.path_sysfs}: no such folder; give the folder where sysfs is mounted"
        )
    raise_descriptor_limit()
    return LiveKernel(options.path_sysfs, limits=getattr(options, "owners_limits", False))


def _simulate(options: argparse.Namespace, clock: Callable[[], float]) -> Kernel:
    from roce_exporter.host.simulated.kernel import ScenarioError, simulate  # noqa: PLC0415 - its import takes as long as all others together

    ports = simulated_ports(options)
    try:
        return simulate(options.host_simulate, clock=clock, vendors=ports, seed=options.host_simulate_seed)
    except ScenarioError as error:
        raise OptionError(str(error)) from None


def simulated_ports(options: argparse.Namespace) -> list[str]:
    """The vendor of each port of the simulated host."""
    return [port.strip() for port in options.host_simulate_ports.split(",")]


def _replay(path: str) -> Kernel:
    from roce_exporter.host.recorded.recorded import load_recording  # noqa: PLC0415 - imports archive and compression modules
    from roce_exporter.host.recorded.tree import RecordingError  # noqa: PLC0415 - the same

    try:
        return load_recording(path)
    except RecordingError as error:
        raise OptionError(str(error)) from None
