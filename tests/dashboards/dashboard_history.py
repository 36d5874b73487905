"""Histories of a small fleet, one cluster per scenario: simulated hosts, exported by the real exporter on a simulated clock."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from owner_history import HostOwners, kubernetes
from recorded import recording
from switch_history import LEAVES, OtherEnd
from wire_history import CAPTURED, Capture

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.catalog.row import MetricSet
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.health.health_watch import HealthWatch
from roce_exporter.recording.recorded import load_recording
from roce_exporter.sampler import Sampler
from roce_exporter.sampler.pace import OFF, Pace
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from roce_exporter.kernel import Kernel

END = 1_767_232_800
"""2026-01-01T02:00:00Z: the end of every history."""
SECONDS = 20 * 60
"""The length of every history."""
SCRAPE = 15.0
JOB = "roce"
SWITCH_JOB = "roce-switches"
WIRE_JOB = "roce-wire"
KUBERNETES_JOB = "kube-state-metrics"
LOOKS = 0.2
"""Seconds between polls of the fast loop while there is pause: half of the shortest storm, the slowest that is allowed."""
FOUR = ("mlx5",) * 4


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the fleet: a scenario of the simulation, or a recording."""

    cluster: str
    instance: str
    scenario: str = ""
    vendors: tuple[str, ...] = FOUR
    seed: int = 1
    recording: str = ""
    extra: tuple[str, ...] = ()
    """Series that neither a simulated nor a recorded host has."""
    answers: float = 1.0
    """The fraction of the history during which the exporter answers."""
    metric_set: str = "full"
    """What `--metrics.set` would be."""


TRUST = tuple(
    f'roce_config_trust_dscp{{device="mlx5_0",port="1",netdev="ens1np0"}} {value}' for value in (1, 0)
)
OTHER_RATE = 'roce_dcqcn_parameter{device="mlx5_0",port="1",netdev="ens1np0",role="rp",parameter="hyper_increase_bytes_per_second"} 12500000'
AUDITED = ("trust-before", "trust-after", "peer-mask", "no-v2-gid", "half-dcqcn", "drift", "tos-104", "inbox")

HOSTS = (
    Host("quiet", "node01:10099", "quiet"),
    Host("quiet", "node02:10099", "quiet", seed=2),
    Host("incast", "node11:10099", "incast"),
    Host("incast", "node12:10099", "incast", seed=2),
    Host("pfc-storm", "node21:10099", "pfc-storm"),
    Host("pfc-storm", "node22:10099", "victim", seed=2),
    Host("slow-receiver", "node31:10099", "slow-receiver", FOUR[:2]),
    Host("misconfigured", "node41:10099", "misconfigured"),
    Host("misconfigured", "node42:10099", "quiet", seed=3),
    Host("flapping", "node51:10099", "flapping", FOUR[:2]),
    Host("lossy", "node61:10099", "lossy", FOUR[:2]),
    Host("broken", "node71:10099", "broken", ("mlx5",) * 6),
    Host("vendors", "node81:10099", "incast", ("mlx5-lag", "bnxt", "ionic", "ice")),
    Host("sick", "node94:10099", recording="sick"),
    Host("optics", "node91:10099", recording="mlx5-pair"),
    Host("unknown", "node95:10099", recording="unknown"),
    Host("lean", "node92:10099", "quiet", FOUR[:2], metric_set="lean"),
    Host("silent", "node96:10099", "quiet", FOUR[:1], answers=0.5),
    Host("silent", "node97:10099", "quiet", FOUR[:1]),
    Host("audited", "node98:10099", recording="audit-trust-after", extra=TRUST[:1]),
    Host("audited", "node99:10099", recording="audit-pfc-two", extra=(*TRUST[1:], OTHER_RATE)),
    *(Host("audited", f"{name}:10099", recording=f"audit-{name}") for name in AUDITED),
)


class Clock:
    """Monotonic seconds that the script advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def write_history(host: Host, seconds: float, wanted: Collection[str], place: Path) -> None:
    """The last `seconds` before `END` of one host, as OpenMetrics with timestamps; of `wanted` names only."""
    logging.disable(logging.CRITICAL)
    with place.open("w", encoding="utf-8") as file:
        asyncio.run(_write(host, seconds, frozenset(wanted), file.write))
        file.write("# EOF\n")


async def _write(host: Host, seconds: float, wanted: frozenset[str], write: Callable[[str], object]) -> None:
    clock, registry = Clock(), OwnRegistry()
    start = END - seconds
    kernel = _kernel(host, clock)
    collector = Collector(kernel, Settings(), clock)
    pace = Pace(OFF) if host.recording else Pace(interval=LOOKS, linger=10.0)
    sampler = Sampler(kernel, clock, lambda: start + clock(), pace)
    health = HealthWatch(clock, lambda: start + clock())
    served = ServedSeries(MetricSet(host.metric_set))
    exporter = Exporter(collector, sampler, Auditor(load_profile("auto")), health=health, served=served)
    label = _Labels(host.cluster, JOB, host.instance, wanted)
    others = (_Switch(host, wanted), _Wire(host, wanted))
    owners = HostOwners(host.cluster, host.seed)
    pods = _Labels(host.cluster, KUBERNETES_JOB, "kube-state-metrics:8080", wanted)
    while clock.now <= seconds:
        answers = clock.now <= seconds * host.answers
        text = ""
        if answers:
            observation = await exporter.observe(5.0)
            await health.judge(exporter.observe)
            text = exporter.render(observation, Format.OPENMETRICS).decode()
            text += registry.render(openmetrics=True).decode() + "\n".join(host.extra)
        owned = owners.scrape(text, start + clock.now)
        for line in (*text.splitlines(), *owned, *_scraped(text, answers=answers)):
            if series := label(line):
                write(f"{series} {start + clock.now:.3f}\n")
        for series in filter(None, map(pods, kubernetes(host.cluster, host.seed))):
            write(f"{series} {start + clock.now:.3f}\n")
        for other in others:
            for series in other.scrape(text):
                write(f"{series} {start + clock.now:.3f}\n")
        _pass(clock, sampler, SCRAPE)
    collector.close()


def _kernel(host: Host, clock: Clock) -> Kernel:
    if host.recording:
        return load_recording(recording(host.recording))
    return simulate(host.scenario, clock=clock, vendors=host.vendors, seed=host.seed)


def _pass(clock: Clock, sampler: Sampler, seconds: float) -> None:
    """Advance the time; the fast loop polls whenever it is due."""
    end = clock.now + seconds
    while (due := sampler.tick()) < end:
        clock.now = max(due, clock.now)
    clock.now = end


def _scraped(text: str, *, answers: bool) -> Iterator[str]:
    """The series that Prometheus itself adds to a scrape."""
    yield f"up {int(answers)}"
    yield f"scrape_duration_seconds {0.012 if answers else 10}"
    yield f"scrape_samples_scraped {sum(not line.startswith('#') for line in text.splitlines())}"


class _Switch:
    """The series of the switch behind a host, if its cluster has one. The host's name has its seed as its number."""

    def __init__(self, host: Host, wanted: frozenset[str]) -> None:
        self._end = None
        if host.cluster in LEAVES:
            self._end = OtherEnd(host.cluster, host.seed, first=host.seed == 1)
            self._label = _Labels(host.cluster, SWITCH_JOB, self._end.instance, wanted)

    def scrape(self, text: str) -> Iterator[str]:
        """Labelled samples, for the host's exposition of the same moment."""
        if self._end is not None:
            yield from filter(None, map(self._label, self._end.scrape(text, SCRAPE)))


class _Wire:
    """The series of the capture of a host's links, if its cluster has one."""

    def __init__(self, host: Host, wanted: frozenset[str]) -> None:
        self._capture = Capture() if host.cluster in CAPTURED else None
        self._label = _Labels(host.cluster, WIRE_JOB, Capture.instance, wanted)

    def scrape(self, text: str) -> Iterator[str]:
        """Labelled samples, for the host's exposition of the same moment."""
        if self._capture is not None:
            yield from filter(None, map(self._label, self._capture.scrape(text, SCRAPE)))


class _Labels:
    """Adds the labels of the target to a line of an exposition, and omits unused series."""

    def __init__(self, cluster: str, job: str, instance: str, wanted: frozenset[str]) -> None:
        self._target = f'cluster="{cluster}",job="{job}",instance="{instance}"'
        self._wanted = wanted
        self._known: dict[str, str] = {}

    def __call__(self, line: str) -> str:
        series, _, value = line.rpartition(" ")
        if line.startswith("#"):
            return ""
        if series not in self._known:
            self._known[series] = self._labelled(series)
        return f"{known} {value}" if (known := self._known[series]) else ""

    def _labelled(self, series: str) -> str:
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})?", series)
        if match is None or match[1] not in self._wanted:
            return ""
        return f"{match[1]}{{{match[2] + ',' if match[2] else ''}{self._target}}}"
