"""What the options select: the host, and the parts that read, survey and show it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

from roce_exporter.assemble import Parts
from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health import HEALTH
from roce_exporter.cli.options import OptionError
from roce_exporter.collect.collector import Settings
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import OFF, Pace
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.host.kernel import Kernel
from roce_exporter.host.kernel.live import LiveKernel, raise_descriptor_limit
from roce_exporter.host_sources.kernel_log import KERNEL_LOG
from roce_exporter.owners import OWNERS, SurveyLimits

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
        least=getattr(options, "collect_min_interval", 0.0),
    )


def parts_of(options: argparse.Namespace) -> Parts:
    """All parts, without the sources that are disabled. What a command has no flag for is as in `serve` without flags.

    Raises:
        OptionError: the detection time is too short for the sampling interval.
    """
    given = vars(options)
    owners = {name: given[f"owners_{name}"] for name in SURVEY_FLAGS if f"owners_{name}" in given}
    served = None
    if "metrics_set" in given:
        served = ServedSeries(MetricSet(options.metrics_set), options.metrics_exclude)
    pace, storms = Pace(), StormLimits()
    if "sampler_interval" in given:
        interval, detect = options.sampler_interval, options.sampler_detection_time
        if detect < 2 * interval:
            raise OptionError(
                f"--sampler.detection-time={detect:g}: shorter than two sampling intervals; use at least "
                f"{2 * interval:g}, or a shorter --sampler.interval"
            )
        pace = Pace(options.sampler_mode, interval, max(pace.idle, interval))
        storms = StormLimits(detect, options.sampler_restoration_time or 2 * detect)
    return Parts(
        collect=collect_settings(options),
        profile=given.get("audit_profile", "auto"),
        # A recording does not change between two scrapes, so it is not sampled.
        pace=None if options.host_recording or given.get("sampler_mode") == OFF else pace,
        storms=storms,
        owners=None if OWNERS in options.source_disable else SurveyLimits(**owners),
        pods=given.get("kubelet_pod_resources", ""),
        namespaces=given.get("rdma_namespaces", ""),
        kernel_log=KERNEL_LOG not in options.source_disable,
        health=HEALTH not in options.source_disable,
        thresholds=given.get("thresholds_file", ""),
        served=served,
    )
