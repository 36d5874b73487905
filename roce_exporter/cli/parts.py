"""What the options select: the host, and the parts that read, survey and show it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from roce_exporter.catalog.row import MetricSet
from roce_exporter.cli.options import OptionError
from roce_exporter.collect import Settings
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import OFF, Pace
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.host.kernel.live import LiveKernel, raise_descriptor_limit
from roce_exporter.owners import OWNERS, SurveyLimits, Surveyor
from roce_exporter.surroundings import Surroundings
from roce_exporter.surroundings.kernel_log_follower import KERNEL_LOG, KernelLogFollower
from roce_exporter.surroundings.rdma_namespaces import RdmaNamespaces

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.surroundings import Neighbour

SURVEY_FLAGS = ("interval", "most", "peers", "load", "anonymous")
"""The fields of `SurveyLimits` that have a flag of their own."""


def open_kernel(options: argparse.Namespace, clock: Callable[[], float] = time.monotonic) -> Kernel:
    """The host that the options select; `clock` is that of a simulated host.

    Raises:
        UserError: sysfs is not found, the simulated host is invalid, or the recording cannot be read.
    """
    if options.host_simulate:
        from roce_exporter.host.simulated.kernel import simulate  # noqa: PLC0415 - its import takes as long as all others together

        ports = simulated_ports(options)
        return simulate(options.host_simulate, clock=clock, vendors=ports, seed=options.host_simulate_seed)
    if options.host_recording:
        from roce_exporter.host.recorded.recorded import load_recording  # noqa: PLC0415 - imports archive and compression modules

        return load_recording(options.host_recording)
    if not os.path.isdir(options.path_sysfs):
        raise OptionError(
            f"--path.sysfs={options.path_sysfs}: no such folder; give the folder where sysfs is mounted"
        )
    raise_descriptor_limit()
    return LiveKernel(options.path_sysfs, limits=getattr(options, "owners_limits", False))


def simulated_ports(options: argparse.Namespace) -> list[str]:
    """The vendor of each port of the simulated host."""
    return [port.strip() for port in options.host_simulate_ports.split(",")]


def collect_settings(options: argparse.Namespace) -> Settings:
    """The options that concern the collection."""
    return Settings(
        options.device_include,
        options.device_exclude,
        frozenset(options.source_disable),
        options.collect_timeout,
        refresh=options.inventory_refresh,
    )


def sampler_pace(options: argparse.Namespace) -> Pace:
    """How often the fast loop samples. A recording does not change between two scrapes, so it is not sampled."""
    mode = OFF if options.host_recording else options.sampler_mode
    return Pace(mode, options.sampler_interval, max(Pace().idle, options.sampler_interval))


def storm_limits(options: argparse.Namespace) -> StormLimits:
    """When pause counts as a storm.

    Raises:
        OptionError: the detection time is too short for the sampling interval.
    """
    detect = options.sampler_detection_time
    if detect < 2 * options.sampler_interval:
        raise OptionError(
            f"--sampler.detection-time={detect:g}: shorter than two sampling intervals; use at least "
            f"{2 * options.sampler_interval:g}, or a shorter --sampler.interval"
        )
    return StormLimits(detect, options.sampler_restoration_time or 2 * detect)


def make_surveyor(options: argparse.Namespace, kernel: Kernel) -> Surveyor | None:
    """The surveyor of a host; None if the source is disabled."""
    if OWNERS in options.source_disable:
        return None
    # Not every command has all of the flags.
    given = {name: getattr(options, f"owners_{name}") for name in SURVEY_FLAGS if f"owners_{name}" in options}
    limits = SurveyLimits(patience=options.collect_timeout, **given)
    return Surveyor(kernel, limits, time.monotonic, time.time)


def make_surroundings(options: argparse.Namespace, kernel: Kernel) -> Surroundings:
    """The readers that the options select."""
    neighbours: list[Neighbour] = []
    if options.kubelet_pod_resources:
        from roce_exporter.surroundings.pod_resources import PodResources  # noqa: PLC0415 - with the option only

        neighbours.append(
            PodResources(
                options.kubelet_pod_resources, kernel, time.monotonic, patience=options.collect_timeout
            )
        )
    if isinstance(kernel, LiveKernel):
        neighbours.append(
            RdmaNamespaces(kernel, options.rdma_namespaces, time.monotonic, patience=options.collect_timeout)
        )
    disabled = KERNEL_LOG in options.source_disable
    followers = [] if disabled else [KernelLogFollower(kernel, time.monotonic, options.collect_timeout)]
    return Surroundings(neighbours, time.monotonic, patience=options.collect_timeout, followers=followers)


def served_series(options: argparse.Namespace) -> ServedSeries:
    """Which metrics the options show."""
    return ServedSeries(MetricSet(options.metrics_set), options.metrics_exclude, time.monotonic)
