"""The exporter of one host, built from its parts: the same for every command, the demo and the tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.checks.thresholds import load_thresholds, shipped_thresholds, sum_of
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host_sources import HostSource, HostSources
from roce_exporter.host_sources.kernel_log import KernelLogFollower
from roce_exporter.host_sources.rdma_namespaces import RdmaNamespaces
from roce_exporter.owners import SurveyLimits, Surveyor

if TYPE_CHECKING:
    from roce_exporter.exposition.served_series import ServedSeries
    from roce_exporter.host.kernel import Kernel


class Clock(NamedTuple):
    """The time of a host."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    """Unix time."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an exporter consists of, with the operator's settings. None or False leaves a part out."""

    collect: Settings = field(default_factory=Settings)
    """Its timeout holds for all parts."""
    profile: str | None = "auto"
    """Name or file of the profile that settings are compared with."""
    pace: Pace | None = field(default_factory=Pace)
    """Of the fast loop."""
    storms: StormLimits = field(default_factory=StormLimits)
    owners: SurveyLimits | None = field(default_factory=SurveyLimits)
    pods: str = ""
    """The kubelet's socket; empty: which pod has which device is not read."""
    namespaces: str = ""
    """The socket of `roce-exporter tool namespaces`; empty without it."""
    kernel_log: bool = True
    health: bool = True
    thresholds: str = ""
    """File with the limits of its rules; empty: those of the package."""
    served: ServedSeries | None = None
    """Selects what is rendered; None: everything."""


def assemble(kernel: Kernel, parts: Parts | None = None, clock: Clock = Clock()) -> Exporter:  # noqa: B008 - immutable
    """The exporter of the host that `kernel` reads; `parts` None: all of them.

    Raises:
        ProfileError: there is no such profile, or it is invalid.
        DocumentError: the file with the limits is invalid.
    """
    wanted = parts or Parts()
    timeout = wanted.collect.timeout
    exporter = Exporter(Collector(kernel, wanted.collect, clock.monotonic), served=wanted.served)
    add = exporter.parts.append
    if wanted.profile is not None:
        add(Auditor(load_profile(wanted.profile)))
    if wanted.pace is not None:
        add(Sampler(kernel.with_cached_names(), *clock, wanted.pace, wanted.storms))
    if wanted.owners is not None:
        add(Surveyor(kernel, replace(wanted.owners, timeout=timeout), *clock))
    add(HostSources(_host_sources(kernel, wanted), clock.monotonic, timeout))
    if wanted.health:
        limits = load_thresholds(wanted.thresholds) if wanted.thresholds else shipped_thresholds()
        rules = partial(diagnose, limits=limits)
        add(HealthWatch(exporter.observe, *clock, rules=rules, limits=sum_of(limits)))
    return exporter


def _host_sources(kernel: Kernel, parts: Parts) -> Iterator[HostSource]:
    timeout = parts.collect.timeout
    if parts.pods:
        from roce_exporter.host_sources.pod_resources import PodResources  # noqa: PLC0415 - with the option only

        yield PodResources(parts.pods, kernel, timeout)
    if isinstance(kernel, LiveKernel):
        yield RdmaNamespaces(kernel, parts.namespaces, timeout)
    if parts.kernel_log:
        yield KernelLogFollower(kernel, timeout)
