"""`roce-exporter diagnose`: what is wrong with the ports of a host, on which side, and what to do next."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.assemble import Clock, assemble
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.diagnosis_report import JSON, diagnosis_json, diagnosis_text
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import print_text
from roce_exporter.cli.parts import collect_settings, open_kernel, parts_of
from roce_exporter.fastloop import Sampler
from roce_exporter.net import NetError
from roce_exporter.net.http import parse_server
from roce_exporter.net.login import BasicAuth, Login, read_login
from roce_exporter.net.prometheus_api import LOGIN_REMEDY, Access
from roce_exporter.net.tls import TlsFiles
from roce_exporter.view.from_prometheus import PrometheusQueries, QuerySpan
from roce_exporter.view.host_history import HostClock, host_history, jump, play, wait

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.normalise.series import Samples
    from roce_exporter.view.history import History
    from roce_exporter.view.host_history import Reach

SINCE = 600.0
INTERVAL = 10.0
"""Seconds between two samples of a host."""
STEP = 15.0
"""Seconds between two samples of Prometheus: the usual interval of its scrapes."""

FOUND = 1
"""Exit code if something is wrong."""
NO_DEVICE = "no RDMA device, so there is nothing to diagnose"
DEVICES = "roce_exporter_devices"


@dataclass(frozen=True, slots=True)
class HostCourse:
    """How one kind of host is sampled: at which times of its clock, and how these are reached."""

    clock: Clock
    times: Sequence[float]
    reach: Callable[[Sampler | None], Reach]
    """Makes the function that reaches a time, for the fast loop of the host."""
    stamp: Callable[[float], float]
    """The Unix time of a time of the clock."""


class DiagnosedHistory:
    """A history, where it is from, and what is missing in it whatever the rules need."""

    def __init__(self, history: History, source: str, missing: tuple[str, ...] = ()) -> None:
        self.history = history
        self.source = source
        self.missing = missing


async def diagnose_host(options: argparse.Namespace) -> int:
    """Print the findings; returns 1 if there are any.

    Raises:
        OptionError: there is no such host, no history, or no RDMA device.
    """
    check_prometheus_options(options)
    check_times(options)
    found = await (_from_prometheus(options) if options.prometheus else _from_host(options))
    if not any(DEVICES not in one.values or any(one.values[DEVICES].values()) for one in found.history):
        raise OptionError(f"{found.source}: {NO_DEVICE}")
    diagnosis = diagnose(found.history)
    diagnosis = diagnosis._replace(unseen=(*diagnosis.unseen, *found.missing))
    if options.format == JSON:
        print_text(diagnosis_json(diagnosis))
    else:
        print_text(diagnosis_text(diagnosis, found.history, found.source))
    return FOUND if diagnosis.findings else 0


def check_times(options: argparse.Namespace) -> None:
    """Refuse times that the source of the history does not have."""
    if not (options.prometheus or options.host_recording or options.host_simulate):
        if options.since:
            raise OptionError("--since needs a past: use --prometheus=URL, or --interval for this host")
        return
    if options.interval and options.host_recording:
        raise OptionError("--interval: the moments of a recording have their own times; leave it out")
    interval = options.interval or (STEP if options.prometheus else INTERVAL)
    if not options.host_recording and interval >= (options.since or SINCE):
        raise OptionError(f"--interval={interval:g}: must be shorter than --since")


def check_prometheus_options(options: argparse.Namespace) -> None:
    """Refuse flags about Prometheus that need another one.

    Raises:
        OptionError: one line that names them.
    """
    names = [name for name in vars(options) if name.startswith("prometheus_") and getattr(options, name)]
    flags = [f"--prometheus.{name.removeprefix('prometheus_').replace('_', '-')}" for name in names]
    if not options.prometheus and (given := [*(["--instance"] if options.instance else []), *flags]):
        raise OptionError(f"{given[0]} needs --prometheus=URL")
    if bool(options.prometheus_username) != bool(options.prometheus_password_file):
        raise OptionError("--prometheus.username and --prometheus.password-file need each other")
    if bool(options.prometheus_cert_file) != bool(options.prometheus_key_file):
        raise OptionError("--prometheus.cert-file and --prometheus.key-file need each other")


async def _from_host(options: argparse.Namespace) -> DiagnosedHistory:
    clock = HostClock()
    kernel = open_kernel(options, clock)
    if options.host_recording:
        course = _recorded(kernel, clock)
        source = f"Recording {options.host_recording}"
    elif options.host_simulate:
        course = _simulated(clock, options)
        source = f"Simulated host {options.host_simulate}"
    else:
        course, source = _live(options.interval or INTERVAL), "This host"
    history = await sampled(options, kernel, course)
    begin = history[-1].time - (options.since or math.inf)
    return DiagnosedHistory(tuple(one for one in history if one.time >= begin), source)


async def sampled(options: argparse.Namespace, kernel: Kernel, course: HostCourse) -> History:
    """The history of a host over a course."""
    gaps = [after - before for before, after in pairwise(course.times)]
    # Sources that are read once a minute are read for every sample: a diagnosis needs the values of that time.
    settings = replace(collect_settings(options), refresh=min(gaps, default=1.0) / 4)
    parts = replace(parts_of(options), collect=settings, health=False)
    with contextlib.closing(assemble(kernel, parts, course.clock)) as exporter:

        async def collect() -> tuple[Samples, ...]:
            return (await exporter.observe_complete()).samples

        reach = course.reach(exporter.part(Sampler))
        return tuple([one async for one in host_history(collect, course.times, reach, course.stamp)])


def _recorded(kernel: Kernel, clock: HostClock) -> HostCourse:
    times = kernel.times  # type: ignore[attr-defined]  # `--host.recording` opens a RecordedKernel
    return HostCourse(Clock(clock, clock), times, lambda _: jump(clock), lambda time: time)


def _simulated(clock: HostClock, options: argparse.Namespace) -> HostCourse:
    since, interval = options.since or SINCE, options.interval or INTERVAL
    begin = time.time() - since
    times = [interval * number for number in range(int(since / interval) + 1)]
    return HostCourse(
        Clock(clock, lambda: begin + clock.now), times, partial(play, clock), lambda now: begin + now
    )


def _live(interval: float) -> HostCourse:
    def reach(sampler: Sampler | None) -> Reach:
        if sampler is not None:
            sampler.start()
        return wait(time.monotonic, sampler)

    now = time.monotonic()
    apart = time.time() - now
    return HostCourse(Clock(), (now, now + interval), reach, lambda then: then + apart)


async def _from_prometheus(options: argparse.Namespace) -> DiagnosedHistory:
    try:
        server = parse_server(options.prometheus, LOGIN_REMEDY)
    except NetError as error:
        raise OptionError(f"--prometheus: {error}") from None
    span = QuerySpan(time.time(), options.since or SINCE, options.interval or STEP)
    try:
        queries = PrometheusQueries(server, await prometheus_access(options), span)
        found = await queries.history(options.instance)
    except NetError as error:
        raise OptionError(f"Prometheus at {server.text}: {error}") from None
    missing = [f"metrics of another version of the exporter: {', '.join(found.unknown)}"] * bool(
        found.unknown
    )
    return DiagnosedHistory(found.history, f"Prometheus at {server.text}", tuple(missing))


async def prometheus_access(options: argparse.Namespace) -> Access:
    """Credentials and certificates, read from their files."""
    login = Login()
    if options.prometheus_username:
        login = await read_login(
            BasicAuth(options.prometheus_username, Path(options.prometheus_password_file))
        )
    tls = TlsFiles(
        _path(options.prometheus_ca_file),
        _path(options.prometheus_cert_file),
        _path(options.prometheus_key_file),
        insecure_skip_verify=options.prometheus_insecure_skip_verify,
    )
    return Access(login, tls)


def _path(text: str) -> Path | None:
    return Path(text) if text else None
