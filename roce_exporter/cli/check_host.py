"""The host that `check` looks at, over time: this one, a recording, a simulation, that of an exporter elsewhere, or its history in Prometheus."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from roce_exporter.assemble import Clock, assemble
from roce_exporter.checks.finding import NotChecked
from roce_exporter.cli.flags import DEFAULT_PORT
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.parts import collect_settings, open_kernel, parts_of
from roce_exporter.fastloop import Sampler
from roce_exporter.host.kernel import Kernel
from roce_exporter.model import DeviceReadings
from roce_exporter.net import NetError
from roce_exporter.net.http import Access, HttpServer, parse_server
from roce_exporter.net.login import Credentials, read_http_config, read_login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.view import remote
from roce_exporter.view.host_view import History, HostClock, TimedSamples, timed_samples
from roce_exporter.words import duration

SINCE = 600.0
INTERVAL = 10.0  # seconds between two samples of a host
STEP = 15.0  # seconds between two samples of Prometheus: the usual interval of its scrapes
SCRAPE_SECONDS = 30.0  # seconds that the metrics of another host's exporter may take
SUPERVISED = 0.5  # seconds between two checks of the fast loop
THIS_EXPORTER = f"http://127.0.0.1:{DEFAULT_PORT}"


@dataclass(frozen=True, slots=True)
class HostCourse:
    """How one kind of host is sampled: at which times of its clock, and how these are reached."""

    clock: Clock
    times: Sequence[float]
    reach: Callable[[Sampler | None, float], Awaitable[None]]
    """Waits until a time of the clock, or makes it pass, with the fast loop of the host."""
    stamp: Callable[[float], float]
    """The Unix time of a time of the clock."""


@dataclass(frozen=True, slots=True)
class SampledHost:
    """The samples of a host, and where they are from."""

    history: History
    devices: Sequence[DeviceReadings] | None = None
    """What was read last; None where only samples are known."""
    source: str = ""
    missing: tuple[NotChecked, ...] = ()
    """What is missing in the history whatever is checked."""


async def sampled_host(options: argparse.Namespace, *, over_time: bool) -> SampledHost:
    """The host that the options select; `over_time`: over some time, so that counters can rise.

    Raises:
        OptionError: there is no such host.
    """
    _check_times(options)
    clock = HostClock()
    kernel = open_kernel(options, clock)
    if options.host_recording:
        times = kernel.times  # type: ignore[attr-defined]  # `--host.recording` opens a RecordedKernel
        course = HostCourse(Clock(clock, clock), times, clock.play, lambda time: time)
        source = f"Recording {options.host_recording}"
    elif options.host_simulate:
        since, interval = options.since or SINCE, options.interval or INTERVAL
        begin = time.time() - since
        times = [interval * number for number in range(int(since / interval) + 1)]
        wall = Clock(clock, lambda: begin + clock.now)
        course = HostCourse(wall, times, clock.play, lambda now: begin + now)
        source = f"Simulated host {options.host_simulate}"
    else:
        course, source = _live(options.interval or INTERVAL), "This host"
    if not over_time:
        # The newest moment of a recording; of a simulation, the end of the time that it plays.
        times = course.times[-1:] if options.host_recording or options.host_simulate else course.times[:1]
        course = replace(course, times=times)
    found = await sampled(options, kernel, course)
    oldest = found.history[-1].time - (options.since or math.inf)
    history = tuple(one for one in found.history if one.time >= oldest)
    return replace(found, history=history, source=source)


async def sampled(options: argparse.Namespace, kernel: Kernel, course: HostCourse) -> SampledHost:
    """A host over a course. A host of the present without a device is not sampled again."""
    gaps = [after - before for before, after in pairwise(course.times)]
    # Sources that are read once a minute are read for every sample: a finding needs the values of that time.
    settings = replace(collect_settings(options), refresh=min(gaps, default=1.0) / 4)
    parts = replace(parts_of(options), collect=settings, health=False)
    if len(course.times) == 1:
        # Nothing happens between two samples.
        parts = replace(parts, pace=None)
    devices: tuple[DeviceReadings, ...] = ()
    history: list[TimedSamples] = []
    with contextlib.closing(assemble(kernel, parts, course.clock)) as exporter:
        sampler = exporter.part(Sampler)
        for at in course.times:
            await course.reach(sampler, at)
            observation = await exporter.observe_complete()
            devices = observation.snapshot.devices
            history.append(timed_samples(observation.samples, course.stamp(at)))
            if not devices and not options.host_recording:
                break
    return SampledHost(tuple(history), devices)


def _live(interval: float) -> HostCourse:
    now = time.monotonic()
    apart = time.time() - now

    async def wait(sampler: Sampler | None, then: float) -> None:
        if sampler is not None and then == now:
            sampler.start()
        while (left := then - time.monotonic()) > 0:
            await asyncio.sleep(min(left, SUPERVISED))
            if sampler is not None:
                sampler.supervise()

    return HostCourse(Clock(), (now, now + interval), wait, lambda then: then + apart)


async def sampled_prometheus(options: argparse.Namespace) -> SampledHost:
    """The history of a host in Prometheus.

    Raises:
        OptionError: Prometheus cannot be queried, or has no such host.
    """
    _check_times(options)
    span = time.time(), options.since or SINCE, options.interval or STEP
    name, server, access = await prometheus(options)
    with asking(name):
        found = await remote.PrometheusQueries(server, access, *span).history(options.target)
    return SampledHost(found.history, None, name, _of_another_version(found.unknown))


async def prometheus(options: argparse.Namespace) -> tuple[str, HttpServer, Access]:
    """The Prometheus that the options select: what it is called in messages, where it is, and how to query it.

    Raises:
        OptionError: the URL or a file of the credentials cannot be used.
    """
    with asking("--prometheus"):
        server = parse_server(options.prometheus)
    name = f"Prometheus at {server.text}"
    with asking(name):
        return name, server, await client_access(options)


@contextlib.contextmanager
def asking(what: str) -> Iterator[None]:
    """Make a request that fails an error of this flag or server."""
    try:
        yield
    except NetError as error:
        raise OptionError(f"{what}: {error}") from None


def exporter_place(options: argparse.Namespace) -> remote.ExporterPlace:
    """The exporter that `--target` names, or else the one that should run on this host.

    Raises:
        OptionError: the URL cannot be used.
    """
    try:
        return remote.parse_place(options.target or THIS_EXPORTER)
    except NetError as error:
        raise OptionError(f"--target: {error}".replace("HOST:9090", f"HOST:{DEFAULT_PORT}")) from None


async def sampled_target(options: argparse.Namespace, *, over_time: bool) -> SampledHost:
    """The host of a running exporter: its metrics, over some time twice.

    Raises:
        OptionError: there is no exporter.
    """
    _check_times(options)
    place = exporter_place(options)
    with asking(f"the exporter at {place.text}"):
        access = await client_access(options)
    history, unknown = [], set[str]()
    for number in range(1 + over_time):
        if number:
            await asyncio.sleep(options.interval or INTERVAL)
        with asking(f"the exporter at {place.text}"):
            text = await remote.read_metrics(place, access, SCRAPE_SECONDS)
        moment, strange = remote.parse_samples(text, time.time())
        history.append(moment)
        unknown.update(strange)
    return SampledHost(
        tuple(history), None, f"Exporter at {place.text}", _of_another_version(sorted(unknown))
    )


def _of_another_version(names: Sequence[str]) -> tuple[NotChecked, ...]:
    return (NotChecked(f"metrics of another version of the exporter: {', '.join(names)}"),) if names else ()


async def client_access(options: argparse.Namespace) -> Access:
    """Credentials and certificates, read from their files."""
    if options.http_config_file:
        auth, tls = read_http_config(options.http_config_file, "--http.config.file")
        return Access(await read_login(auth), tls)
    if "prometheus" not in options:  # a command without the flags of an earlier version
        return Access()
    user, file = options.prometheus_username, options.prometheus_password_file
    login = await read_login(Credentials(user, Path(file)) if user else None)
    names = options.prometheus_ca_file, options.prometheus_cert_file, options.prometheus_key_file
    ca, cert, key = (Path(name) if name else None for name in names)
    skip = options.prometheus_insecure_skip_verify
    return Access(login, TlsFiles(ca, cert, key, insecure_skip_verify=skip))


def _check_times(options: argparse.Namespace) -> None:
    """Refuse times that the source of the history does not have."""
    if not (options.prometheus or options.host_recording or options.host_simulate):
        if options.since:
            raise OptionError("--since needs a past: use --prometheus=URL, or --interval for this host")
        return
    if options.interval and options.host_recording:
        raise OptionError("--interval: the moments of a recording have their own times; leave it out")
    interval = options.interval or (STEP if options.prometheus else INTERVAL)
    if not options.host_recording and interval >= (options.since or SINCE):
        raise OptionError(
            f"--interval is {duration(interval)}: must be shorter than --since, {duration(options.since or SINCE)}"
        )
