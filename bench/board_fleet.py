"""A fleet for the benchmark of the dashboards: what Prometheus holds of thousands of hosts after a day, as OpenMetrics.

Most ports are quiet. One in ten pauses for some minutes, a few storm, one in fifty loses packets, some hosts do not answer, and one
cluster has an incident that lasts until now: every port is paused and has an alert. Everything that the fleet dashboard reads over
time is there at every scrape of six hours, storms of a whole day. The other raw series of the fleet are there for the size of the
index: one sample at the end of each block of two hours.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from board_history import CLUSTER, END, HOUR, INSTANCE, SCRAPE, Past
from boards.limits import CLUSTER_PAUSE, DRIFT, HOSTS, STORM_HOSTS, STORMS
from boards.rules import (
    CHECKS,
    CHECKS_FAILED,
    CNPS_HANDLED,
    CNPS_IGNORED,
    CNPS_SENT,
    DISCARDS,
    ELEVATED,
    FIRING,
    FIRST,
    LOSSY,
    MARKS,
    MISSING,
    MISSING_HOSTS,
    PARAMETER,
    PLACES,
    SETTING,
    SETTINGS,
    SILENT,
    UNFIT,
    UNREADABLE,
    WORKLOAD_BROKEN,
    WORKLOAD_HOSTS,
    WORKLOAD_LOST,
    WORKLOAD_PAIRS,
    WORKLOAD_PAUSE,
    WORKLOAD_UNFIT,
)
from boards.thresholds import ALERTS

from roce_exporter.catalog import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RANGE = 6 * HOUR
DAY = 24 * HOUR
PORTS = 8
CLUSTERS = 20
INCIDENT_IN = 7
"""The number of the cluster with the incident."""
HOSTS_OF_A_JOB = 4
PARAMETERS = 19
RACK = 4
"""Hosts behind one switch."""
INCIDENT = 45 * 60
"""Seconds since the incident of one cluster began."""
SPARSE = 2 * HOUR
"""Seconds between samples of the series that are only there for the size of the index."""
MOST_OF_A_NAME = 2
"""Series of a port that one of these names may have."""
LATELY = 600
"""Seconds for which the series are there that only tables of current values read."""
EARLY = 60
"""Seconds between samples before the last six hours."""
DRIFTING = ("roce_pfc_enabled", "roce_config_dscp_priority", "roce_config_trust_dscp", "roce_port_mtu_bytes")
CHECKED = ("pfc", "trust", "mtu", "dscp", "ecn", "cm_tos")
SEED = 22
LABEL = re.compile(r'(\w+)="([^"]*)"')


class Target(NamedTuple):
    """A host of the fleet."""

    number: int

    @property
    def cluster(self) -> str:
        """The cluster, whose hosts have consecutive racks."""
        return f"cluster-{self.number % CLUSTERS:02d}"

    @property
    def rack(self) -> str:
        """The rack, with one switch."""
        return f"r{self.number // CLUSTERS // RACK:03d}"

    @property
    def instance(self) -> str:
        """Its address."""
        return f"{self.cluster}-{self.rack}-node{self.number // CLUSTERS % RACK}:10099"

    @property
    def labels(self) -> str:
        """The labels of the target."""
        return f'cluster="{self.cluster}",job="roce",rack="{self.rack}",instance="{self.instance}"'


class Span(NamedTuple):
    """A series with a value between two times; with `moves`, the value changes at every scrape."""

    series: str
    start: int
    end: int
    value: float
    moves: bool = False


def chosen(hosts: int) -> Target:
    """The host that has the whole history: of the cluster with the incident, in the middle of the fleet."""
    return Target(hosts // 2 // CLUSTERS * CLUSTERS + 7)


def incident(target: Target) -> bool:
    """Whether the host is in the cluster with the incident."""
    return target.number % CLUSTERS == INCIDENT_IN


def spans(hosts: int) -> list[Span]:
    """What the fleet dashboard reads: recorded series, alerts, and the raw series that exist only where something happened."""
    chance = random.Random(SEED)  # noqa: S311 - the same fleet in every run
    found = list(_of_clusters(chance, hosts))
    for number in set(range(hosts)) - {chosen(hosts).number}:
        target = Target(number)
        found += _of_host(chance, target)
        for device in range(PORTS):
            port = f'device="mlx5_{device}",port="1",netdev="eth{device}"'
            found += _of_port(chance, target, port)
    return [*found, *recorded(found)]


def recorded(found: Iterable[Span]) -> Iterator[Span]:
    """What the rules record of alerts and of targets that do not answer: how many, and the start of the first."""
    groups: defaultdict[str, list[Span]] = defaultdict(list)
    for one in found:
        labels = dict(LABEL.findall(one.series))
        if one.series.startswith("ALERTS{"):
            kept = ",".join(f'{name}="{labels[name]}"' for name in ("cluster", "alertname", "severity"))
            groups[f"{FIRING}{{{kept}}}"].append(one)
            groups[f"{FIRST}{{{kept}}}"].append(one)
        elif one.series.startswith("up{") and not one.value:
            groups[f'{SILENT}{{cluster="{labels["cluster"]}",job="roce"}}'].append(one)
    for series, members in groups.items():
        for start, end in pairwise(sorted({at for one in members for at in one[1:3]})):
            if active := [one.start for one in members if one.start <= start < one.end]:
                yield Span(series, start, end, min(active) if series.startswith(FIRST) else len(active))


def _of_clusters(chance: random.Random, hosts: int) -> Iterator[Span]:
    for number in range(CLUSTERS):
        cluster = f'cluster="cluster-{number:02d}"'
        of_job = f'{cluster},job="roce"'
        rows = [f"{HOSTS}{{{cluster}}}", f"cluster:roce_exporters:count{{{cluster}}}"]
        yield from (Span(row, END - RANGE, END, hosts / CLUSTERS) for row in rows)
        for direction in ("receive", "transmit"):
            row = f'{CLUSTER_PAUSE}{{{cluster},direction="{direction}"}}'
            yield Span(row, END - RANGE, END, chance.uniform(0.0001, 0.002), moves=True)
        for name in (MARKS, CNPS_SENT, CNPS_HANDLED, CNPS_IGNORED):
            yield Span(f"{name}{{{of_job}}}", END - RANGE, END, chance.uniform(1e3, 1e6), moves=True)
        for name, checks in ((CHECKS_FAILED, CHECKED), (UNREADABLE, CHECKED[:2])):
            for check in checks:
                yield Span(f'{name}{{{of_job},check="{check}"}}', END - RANGE, END, chance.randint(1, 40))
        yield Span(f"{CHECKS}{{{of_job}}}", END - RANGE, END, hosts / CLUSTERS * PORTS * 21)
        for what in ("source ethtool", "source dcb", "storms: no_time"):
            yield Span(f'{MISSING_HOSTS}{{{of_job},what="{what}"}}', END - RANGE, END, 2)
        yield Span(f'{STORM_HOSTS}{{{cluster},direction="receive"}}', END - INCIDENT, END, 2)
        for workload in range(max(1, hosts // CLUSTERS // HOSTS_OF_A_JOB)):
            yield from _of_workload(
                chance, f'{of_job},workload="slurm/{number * 1000 + workload}"', cluster=number
            )
        yield from _settings(of_job, hosts)
        for setting in DRIFTING:
            for device in range(PORTS):
                row = f'{DRIFT}{{{cluster},device="mlx5_{device}",setting="{setting}"}}'
                yield Span(row, END - RANGE, END, chance.random() < 0.05)  # noqa: PLR2004 - one in twenty differs


def _settings(of_job: str, hosts: int) -> Iterator[Span]:
    """The number of ports of a cluster with each value of each setting: two values where one would be right."""
    for name in SETTINGS:
        row = f'{SETTING}{{{of_job},setting="{name}"'
        places = [label for label in PLACES if label in INDEX.named[name].labels]
        for value in range(2):
            for place in range(8 if places else 1):
                at = f',{places[0]}="{place}"' if places else ""
                yield Span(f'{row}{at},value="{value}"}}', END - RANGE, END, hosts / CLUSTERS * PORTS)
    for parameter in range(PARAMETERS):
        row = f'{PARAMETER}{{{of_job},role="rp",parameter="p{parameter}",value="1"}}'
        yield Span(row, END - RANGE, END, hosts / CLUSTERS * PORTS)


def _of_workload(chance: random.Random, labels: str, *, cluster: int) -> Iterator[Span]:
    """A job on some hosts. In the cluster with the incident every job's ports are paused."""
    yield Span(f"{WORKLOAD_HOSTS}{{{labels}}}", END - RANGE, END, HOSTS_OF_A_JOB)
    yield Span(f"{WORKLOAD_PAIRS}{{{labels}}}", END - RANGE, END, 8192)
    if chance.random() < 0.1 or cluster == INCIDENT_IN:  # noqa: PLR2004 - one job in ten
        for direction in ("receive", "transmit"):
            row = f'{WORKLOAD_PAUSE}{{{labels},direction="{direction}"}}'
            yield Span(row, END - INCIDENT, END, chance.uniform(0.001, 0.5), moves=True)
        for what in ("lost on the way to it", "lost on the way from it", "timeouts"):
            yield Span(f'{WORKLOAD_LOST}{{{labels},what="{what}"}}', END - INCIDENT, END, 10, moves=True)
        yield Span(f"{WORKLOAD_BROKEN}{{{labels}}}", END - INCIDENT, END, 2)


def _of_host(chance: random.Random, target: Target) -> Iterator[Span]:
    fails = chance.random()
    silent = END if fails > 0.01 else END - chance.randint(60, RANGE)  # noqa: PLR2004 - one host in a hundred
    again = END if fails < 0.005 else min(END, silent + 600)  # noqa: PLR2004 - half of them until now
    for what in ("source ethtool", "raw names without a metric"):
        if chance.random() < 0.2:  # noqa: PLR2004 - one host in five
            yield Span(f'{MISSING}{{{target.labels},what="{what}"}}', END - LATELY, END, 1)
    up = f"up{{{target.labels}}}"
    for start, end, value in ((END - RANGE, silent, 1), (silent, again, 0), (again, END, 1)):
        if start < end:
            yield Span(up, start, end, value)
    if silent < END:
        yield from _alert("RoceExporterDown", "warning", target.labels, silent, again)


def _of_port(chance: random.Random, target: Target, port: str) -> Iterator[Span]:
    where = f"{target.labels},{port}"
    lossless = f'{where},priority="3"'
    if incident(target):
        yield from _paused(f'{lossless},direction="receive"', END - INCIDENT, END, chance.uniform(0.1, 0.6))
        yield from _alert("RocePortFaulty", "warning", f'{lossless},direction="receive"', END - INCIDENT, END)
        yield Span(_reason(target, port, "pause_received"), END - LATELY, END, 2)
        unfit = f'{target.labels},{port.rpartition(",")[0]},reasons="pause_received, packet_loss"'
        yield Span(f"{UNFIT}{{{unfit}}}", END - LATELY, END, 2)
        job = target.number % CLUSTERS * 1000 + target.number // CLUSTERS // HOSTS_OF_A_JOB
        yield Span(f'{WORKLOAD_UNFIT}{{{unfit},workload="slurm/{job}"}}', END - LATELY, END, 2)
    elif chance.random() < 0.1:  # noqa: PLR2004 - one port in ten
        for start, end in _episodes(chance, 3, 600, 3600):
            value = math.exp(chance.uniform(math.log(0.001), math.log(0.1)))
            yield from _paused(f'{lossless},direction="receive"', start, end, value)
        yield Span(_reason(target, port, "incast"), END - LATELY, END, 1)
    if chance.random() < 0.02:  # noqa: PLR2004 - one in fifty
        for start, end in _episodes(chance, 2, 300, 1800):
            row = f'{LOSSY}{{{where},direction="receive"}}'
            yield Span(row, start, end, chance.uniform(1e-6, 1e-3), moves=True)
    if chance.random() < 0.01:  # noqa: PLR2004 - one in a hundred
        name = chance.choice(list(ALERTS))
        for start, end in _episodes(chance, 2, 600, RANGE):
            yield from _alert(name, ALERTS[name]["severity"], where, start, end)
            yield Span(_reason(target, port, "retransmissions"), max(start, END - LATELY), end, 3)
    if chance.random() < 0.01:  # noqa: PLR2004 - one in a hundred
        yield from _stormed(chance, lossless)


def _paused(labels: str, start: int, end: int, value: float) -> Iterator[Span]:
    yield Span(f"{ELEVATED}{{{labels}}}", start, end, value, moves=True)


def _stormed(chance: random.Random, lossless: str) -> Iterator[Span]:
    """Storms of a priority within a day, and drops in the same minutes."""
    labels = f'{lossless},direction="{chance.choice(("receive", "transmit"))}"'
    latest = 0
    for start, end in _episodes(chance, 4, 300, 900, DAY):
        yield Span(f"{STORMS}{{{labels}}}", start, end, 1)
        if start >= END - RANGE:
            yield Span(f"{DISCARDS}{{{lossless}}}", start, end, 5, moves=True)
            yield from _alert("RocePfcStorm", "critical", labels, start, end)
        latest = start
    row = f"roce_pfc_storm_last_start_timestamp_seconds{{{labels}}}"
    yield Span(row, max(latest, END - LATELY), END, latest)


def _alert(name: str, severity: str, labels: str, start: int, end: int) -> Iterator[Span]:
    own = f'alertname="{name}",severity="{severity}",{labels}'
    yield Span(f'ALERTS{{alertstate="firing",{own}}}', start, end, 1)
    yield Span(f"ALERTS_FOR_STATE{{{own}}}", start, end, start - 60)


def _reason(target: Target, port: str, reason: str) -> str:
    return f'roce_port_health_reason{{{target.labels},{port.rpartition(",")[0]},reason="{reason}"}}'


def _episodes(
    chance: random.Random, most: int, shortest: int, longest: int, within: int = RANGE
) -> Iterator[tuple[int, int]]:
    """Non-overlapping times at whole scrapes, one after the other; the last may last until now."""
    number = chance.randint(1, most)
    for place in range(number):
        begin = END - within + place * within // number
        until = begin + within // number
        start = chance.randrange(begin, until, SCRAPE)
        length = chance.randrange(shortest, longest, SCRAPE)
        yield start, min(start + length, until)


def text_of(found: Iterable[Span], start: int, end: int, every: int = SCRAPE) -> Iterator[str]:
    """The samples of these series from `start` to before `end`, a text per series."""
    times = [f" {at}\n" for at in range(start, end, every)]
    for one in found:
        first = max(0, -(-(one.start - start) // every))
        last = min(len(times), -(-(one.end - start) // every))
        if first >= last:
            continue
        if one.moves:
            yield "".join(
                f"{one.series} {one.value * (1 + place * 7 % 13 / 20):.6g}{times[place]}"
                for place in range(first, last)
            )
        else:
            constant = f"{one.series} {one.value:.17g}"
            yield constant + constant.join(times[first:last])


class Background(NamedTuple):
    """The series of one host as a text with places for its names, one per place in a rack."""

    texts: tuple[str, ...]
    series: int

    def of(self, target: Target, at: int) -> str:
        """The host's samples at a time."""
        text = self.texts[target.number // CLUSTERS % RACK]
        for place, value in (
            ("@C@", target.cluster),
            ("@R@", target.rack),
            ("@I@", target.instance),
            ("@S@", f"leaf-{target.cluster}-{target.rack}"),
            ("@T@", str(at)),
        ):
            text = text.replace(place, value)
        return text


def background(had: list[Past], uses: Counter[str], per_port: int) -> Background:
    """Every recorded series of a host, and the raw series that most queries name, at most `per_port` of a port in all."""
    by_name: dict[str, list[Past]] = {}
    for one in had:
        if _of_fleet(one):
            by_name.setdefault(one.name, []).append(one)
    kept = [one for name, series in by_name.items() if ":" in name for one in series]
    room = per_port * PORTS - len(kept)
    for name in sorted(by_name, key=lambda name: (-uses[name], name)):
        if ":" not in name and uses[name] and len(by_name[name]) <= min(room, MOST_OF_A_NAME * PORTS):
            room -= len(by_name[name])
            kept += by_name[name]
    lines = [f"{placed(one.series)} {one.samples[-1][1]:.17g} @T@\n" for one in kept]
    return Background(
        tuple("".join(_moved(line, place) for line in lines) for place in range(RACK)), len(kept)
    )


SPANNED = {
    "up", "ALERTS", "ALERTS_FOR_STATE", "roce_port_health_reason",
    "roce_pfc_storm_last_start_timestamp_seconds", ELEVATED, LOSSY, DISCARDS, STORMS, UNFIT, WORKLOAD_UNFIT, MISSING,
}  # fmt: skip
"""Names that `spans` has of every host."""


def _of_fleet(one: Past) -> bool:
    """Whether it is a series of a port or host, of priority 3 if it has one, and not written by `spans`."""
    other_priority = 'priority="' in one.series and 'priority="3"' not in one.series
    mine = f'"{INSTANCE}"' in one.series or "roce_switch_port_info" in one.series
    return mine and bool(one.samples) and not other_priority and one.name not in SPANNED


def whole(had: list[Past], target: Target) -> list[Past]:
    """The history of the host, of its switch and of its owners, with the names of `target`."""
    kept = [one for one in had if any(f'{label}="' in one.series for label in ("instance", "host", "switch"))]
    places = {"@C@": target.cluster, "@R@": target.rack, "@I@": target.instance, "@S@": "leaf1"}
    found = []
    for one in kept:
        series = placed(one.series)
        for place, value in places.items():
            series = series.replace(place, value)
        found.append(one._replace(series=series))
    return found


RACKED = re.compile(r'([{,])instance="@I@"')


def placed(series: str) -> str:
    """The series with places instead of the names of its host."""
    for value, place in (
        (f'"{INSTANCE}"', '"@I@"'),
        (f'"{CLUSTER}"', '"@C@"'),
        ('"leaf1"', '"@S@"'),
        (f'"leaf-{CLUSTER}"', '"@S@"'),
    ):
        series = series.replace(value, place)
    # the target's rack is a label of Prometheus, as the cluster is
    return RACKED.sub(r'\1rack="@R@",instance="@I@"', series)


def _moved(line: str, place: int) -> str:
    """The ports of the switch that the hosts of a rack have: eight each."""
    before, found, after = line.partition('"Ethernet')
    if not found:
        return line
    number, _, rest = after.partition('"')
    return f'{before}{found}{int(number) + 4 * PORTS * place}"{rest}'
