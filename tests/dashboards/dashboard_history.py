"""Histories of a small fleet, one cluster per scenario: simulated hosts, exported by the real exporter on a simulated clock."""

import asyncio
import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from clock import Clock
from owner_history import HostOwners, kubernetes
from recorded import recording
from switch_history import LEAVES, OtherEnd
from wire_history import CAPTURED, Capture, Probers

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Sampler
from roce_exporter.fastloop.target import OFF, Pace
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.self_metrics.own_registry import OwnRegistry

END = 1_767_232_800
"""2026-01-01T02:00:00Z: the end of every history."""
SCRAPE = 15
POLLS = 0.2
"""Seconds between polls of the fast loop while there is pause: half of the shortest storm, the slowest that is allowed."""
TWO = ("mlx5",) * 2

Samples = dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]
"""Times and values of each series; its name is the label `__name__`."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the fleet: a scenario of the simulation, or a recording."""

    cluster: str
    instance: str
    scenario: str = ""
    vendors: tuple[str, ...] = TWO
    seed: int = 1
    recording: str = ""
    extra: tuple[str, ...] = ()
    """Series that neither a simulated nor a recorded host has."""
    answers: float = 1.0
    """The fraction of the history during which the exporter answers."""
    metric_set: str = "full"
    """What `--metrics.set` would be."""


TRUST = 'roce_config_trust_dscp{device="mlx5_0",port="1",netdev="ens1np0"} '
OTHER_RATE = 'roce_dcqcn_parameter{device="mlx5_0",port="1",netdev="ens1np0",role="rp",parameter="hyper_increase_bytes_per_second"} 12500000'

DIM = tuple(
    f'roce_transceiver_receive_power_{what}watts{{device="mlx5_0",port="1",netdev="eth0"{lane}}} {watts}'
    for what, lane, watts in (
        *(("", f',lane="{lane}"', 0.0001 if lane == 2 else 0.0009) for lane in (1, 2, 3, 4)),
        ("low_alarm_", "", 0.00015),
    )
)
"""The module of a host with a bad cable: simulated hosts have none."""

HOSTS = (
    Host("quiet", "node01:10099", "quiet"),
    Host("pfc-storm", "node21:10099", "pfc-storm"),
    Host("pfc-storm", "node22:10099", "victim", seed=2),
    Host("slow-receiver", "node31:10099", "slow-receiver"),
    Host("misconfigured", "node41:10099", "misconfigured", TWO * 2),
    Host("misconfigured", "node42:10099", "quiet", seed=3),
    Host("flapping", "node51:10099", "flapping"),
    Host("lossy", "node61:10099", "lossy", extra=DIM),
    Host("broken", "node71:10099", "broken", TWO * 3),
    Host("incast", "node81:10099", "incast", ("mlx5-lag", "bnxt", "ionic", "ice")),
    Host("sick", "node94:10099", recording="sick"),
    Host("optics", "node91:10099", recording="mlx5-pair"),
    Host("unknown", "node95:10099", recording="unknown"),
    Host("lean", "node92:10099", "quiet", metric_set="lean"),
    Host("silent", "node96:10099", "quiet", TWO[:1], answers=0.5),
    Host("audited", "node93:10099", seed=3, recording="audit-peer-mask"),
    Host("audited", "node98:10099", recording="audit-trust-after", extra=(f"{TRUST}1",)),
    Host("audited", "node99:10099", seed=2, recording="audit-pfc-two", extra=(f"{TRUST}0", OTHER_RATE)),
)


def history(host: Host, seconds: int, wanted: Collection[str]) -> Samples:
    """The last `seconds` before `END` of one host, its switch, its capture and its pods; of `wanted` names only."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(_history(host, seconds, wanted))


async def _history(host: Host, seconds: int, wanted: Collection[str]) -> Samples:
    clock, start, found = Clock(0.0), END - seconds, _Found(host.cluster, wanted)
    if host.recording:
        kernel, pace = load_recording(recording(host.recording)), Pace(OFF)
    else:
        kernel, pace = (
            simulate(host.scenario, clock=clock, vendors=host.vendors, seed=host.seed),
            Pace(interval=POLLS, linger=10.0),
        )
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, lambda: start + clock(), pace)
    served = ServedSeries(MetricSet(host.metric_set))
    exporter = Exporter(collector, [Auditor(load_profile("auto")), sampler], served)
    health = HealthWatch(exporter.observe, clock, lambda: start + clock())
    exporter.parts.append(health)
    own = OwnRegistry().render(openmetrics=False).decode()
    owners = HostOwners(host.cluster, host.seed)
    switch = OtherEnd(host.cluster, host.seed, first=host.seed == 1) if host.cluster in LEAVES else None
    capture, probers = (Capture(), Probers()) if host.cluster in CAPTURED else (None, None)
    while clock.now <= seconds:
        answers, text = clock.now <= seconds * host.answers, ""
        if answers:
            observation = await exporter.observe(5.0)
            await health.read_once()
            text = exporter.render(observation, Format.TEXT).decode()
        served_lines = (*text.splitlines(), *own.splitlines(), *host.extra) if answers else ()
        scraped = (
            f"up {int(answers)}",
            f"scrape_duration_seconds {0.012 if answers else 10}",
            f"scrape_samples_scraped {len(served_lines)}",
        )
        at = start + clock.now
        found.add("roce", host.instance, (*served_lines, *owners.scrape(text, at), *scraped), at)
        found.add("kube-state-metrics", "kube-state-metrics:8080", kubernetes(host.cluster, host.seed), at)
        if switch:
            found.add("roce-switches", switch.instance, switch.scrape(text, SCRAPE), at)
        if capture:
            found.add("roce-wire", capture.instance, capture.scrape(text, SCRAPE), at)
        if probers:
            probed = tuple(probers.scrape(SCRAPE))
            for instance in (host.instance, "another:10099"):
                found.add("roce-probe", instance, probed, at)
        end = clock.now + SCRAPE
        while (due := sampler.tick()) < end:
            clock.now = max(due, clock.now)
        clock.now = end
    collector.close()
    return found.samples


class _Found:
    """Collects the samples of a cluster, with the labels of their target."""

    def __init__(self, cluster: str, wanted: Collection[str]) -> None:
        self.samples: Samples = {}
        self._cluster, self._wanted = cluster, wanted
        self._known: dict[tuple[str, str, str], list[tuple[float, float]] | None] = {}

    def add(self, job: str, instance: str, lines: Iterable[str], at: float) -> None:
        """Add the samples of one scrape."""
        for line in lines:
            series, _, value = line.rpartition(" ")
            if (key := (job, instance, series)) not in self._known:
                self._known[key] = self._place(*key)
            if (place := self._known[key]) is not None:
                place.append((at, float(value)))

    def _place(self, job: str, instance: str, series: str) -> list[tuple[float, float]] | None:
        name, _, labels = series.partition("{")
        if name not in self._wanted:
            return None
        own = {
            key: text.encode().decode("unicode_escape")
            for key, text in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
        }
        own |= {"__name__": name, "cluster": self._cluster, "job": job, "instance": instance}
        return self.samples.setdefault(tuple(sorted(own.items())), [])
