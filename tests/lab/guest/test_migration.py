"""Other exporters on the same kernel: their series and ours are the same facts with the same values, by the table of translations.

The cards count each fact as one number, whatever names a driver has for it: a driver's two names of one fact then agree, as they do in
hardware. Where traffic runs, theirs is scraped between two scrapes of ours and lies between their values.
"""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import compare
import nic
import pytest
import traffic
from daemon import Exporter, get
from prometheus_client.parser import text_string_to_metric_families

from roce_exporter.catalog import INDEX, pattern_of
from roce_exporter.catalog.drivers import dialect_of
from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS
from roce_exporter.migration.foreign import foreign_metrics, untranslatable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compare import Rival

    from roce_exporter.catalog.row import Spelling
    from roce_exporter.migration.foreign import Foreign

EXPORTER_OF = {
    "node_exporter (Debian)": "node_exporter",
    "node_exporter (newest)": "node_exporter",
    "rdma_exporter (yuuki)": "rdma_exporter",
}
OURS = re.compile(r"node_(infiniband|ethtool)_.+|rdma_.+")
"""The names that the table is about; the exporters also have metrics of themselves and of network devices."""
HOSTS = ("mlx5,mlx5", "mlx5,bnxt,ionic,ice")
SMALL = 1e-9
"""A relative difference: seconds are made of microseconds by a division."""


class Sample(NamedTuple):
    """One sample of an exposition."""

    name: str
    labels: dict[str, str]
    value: float


def samples_of(url: str) -> list[Sample]:
    """Every sample that an exporter serves now."""
    families = text_string_to_metric_families(get(url, 60))
    return [Sample(one.name, one.labels, one.value) for family in families for one in family.samples]


class Fact(NamedTuple):
    """What a raw counter of a card counts: a row of the catalogue, and the labels in the name."""

    row: str
    labels: tuple[tuple[str, str], ...]
    spelling: Spelling


def fact_of(dialect: str, source: str, raw: str) -> Fact | None:
    """The fact of a raw name that means one by itself."""
    row = INDEX.claimed(dialect, source, raw)
    for spelling in row.spellings if row else ():
        if spelling.source != source or len(spelling.raw) > 1 or not INDEX.speaks(dialect, spelling):
            continue
        if row and (found := pattern_of(spelling.raw[0]).fullmatch(raw)):
            return Fact(row.name, tuple(sorted(found.groupdict().items())), spelling)
    return None


def play_facts(drivers: dict[str, str]) -> None:
    """Set every counter of every card so that all names of a fact mean one number, and two facts never the same."""
    numbers: dict[tuple[str, ...], int] = {}
    for device, card in sorted(nic.nics().items()):
        card.leg("ethtool").write("refresh_ms", "0")
        for interface, (table, names) in compare.counters(card).items():
            table.set(dict(raw_values(device, dialect_of(drivers[device]), interface, names, numbers)))


def raw_values(
    device: str, dialect: str, interface: str, names: Iterable[str], numbers: dict[tuple[str, ...], int]
) -> Iterator[tuple[str, int]]:
    source = {"hw_counters": HW_COUNTERS, "counters": COUNTERS, "ethtool": ETHTOOL}[interface]
    for name in names:
        fact = fact_of(dialect, source, name)
        key = (device, fact.row, str(fact.labels)) if fact else (device, interface, name)
        number = numbers.setdefault(key, 8 * (len(numbers) + 1))
        scaled = Fraction(number * fact.spelling.per, fact.spelling.times) if fact else Fraction(number)
        yield name, scaled.numerator if scaled.denominator == 1 else number


def translated(foreign: Foreign, sample: Sample) -> tuple[str, dict[str, str], float]:
    """Our name, the labels that select our series, and the value that it should have."""
    labels = dict(foreign.matching) | {
        ours: sample.labels[theirs] for theirs, ours in foreign.labels if theirs in sample.labels
    }
    return foreign.ours, labels, sample.value * foreign.times / foreign.per


def is_about(foreign: Foreign, sample: Sample, dialect: str) -> bool:
    """Whether a row of the table is about this sample."""
    return (
        foreign.name == sample.name
        and dict(foreign.where).items() <= sample.labels.items()
        and (not foreign.dialects or dialect in foreign.dialects)
    )


class Judged(NamedTuple):
    """What the table says about one exposition of theirs."""

    equal: set[str]
    """Their names whose every series is ours."""
    differing: list[str]
    absent: set[str]
    """Their names for which ours has no series."""
    unknown: set[str]
    """Their names that the table does not know, not even as untranslatable."""


class Host:
    """Which driver is behind a device or a network device."""

    def __init__(self, ours: list[Sample]) -> None:
        self.drivers = {
            one.labels["device"]: one.labels["driver"] for one in ours if one.name == "roce_device_info"
        }
        self._owners = {
            one.labels["netdev"]: one.labels["device"] for one in ours if one.name == "roce_port_netdev_info"
        }

    def dialect(self, device: str) -> str:
        """The dialect of a device, by its name or the name of its network device; empty for others."""
        return dialect_of(self.drivers.get(self._owners.get(device, device), ""))


def judge(exporter: str, theirs: list[Sample], before: list[Sample], after: list[Sample]) -> Judged:
    """Compare each of their series with ours before and after: it lies between."""
    host = Host(after)
    verdict = Judged(set(), [], set(), set())
    rows = foreign_metrics(exporter)
    refused = [re.compile(name) for name in untranslatable(exporter)]
    for sample in theirs:
        if not OURS.fullmatch(sample.name):
            continue
        if not (dialect := host.dialect(sample.labels.get("device", ""))):
            continue  # a network device without RDMA, such as the guest's own
        found = [one for one in rows if is_about(one, sample, dialect)]
        known = found or [one for one in rows if one.name == sample.name]
        if not known and not any(one.fullmatch(sample.name) for one in refused):
            verdict.unknown.add(sample.name)
        for foreign in found:
            compare_sample(foreign, sample, before, after, verdict)
    return verdict


def compare_sample(
    foreign: Foreign, sample: Sample, before: list[Sample], after: list[Sample], verdict: Judged
) -> None:
    name, labels, value = translated(foreign, sample)
    ends = [select(samples, name, labels) for samples in (before, after)]
    if not all(ends):
        verdict.absent.add(sample.name)
        return
    lowest, highest = min(ends[0]), max(ends[1])
    margin = SMALL * abs(value)
    if len(ends[1]) == 1 and lowest - margin <= value <= highest + margin:
        verdict.equal.add(sample.name)
    else:
        verdict.differing.append(f"{sample} is {value} as {name} {labels}: ours are {ends}")


def select(samples: list[Sample], name: str, labels: dict[str, str]) -> list[float]:
    return [one.value for one in samples if one.name == name and labels.items() <= one.labels.items()]


@pytest.fixture(scope="module", params=HOSTS)
def judged(request: pytest.FixtureRequest) -> Iterator[dict[str, Judged]]:
    """Every available exporter on a host with these cards."""
    nic.load(request.param)
    rivals = compare.start()
    exporter = Exporter("--sampler.mode=off", "--collect.timeout=8")
    play_facts(Host(samples_of(f"http://{exporter.address}/metrics")).drivers)
    yield judge_all(exporter, rivals)
    assert exporter.stop() == 0
    stop(rivals)
    nic.unload()


def judge_all(exporter: Exporter, rivals: list[Rival]) -> dict[str, Judged]:
    """A scrape of ours, one of theirs and one of ours, for each of them."""
    ours = f"http://{exporter.address}/metrics"
    verdicts = {}
    for rival in rivals:
        if rival.name in EXPORTER_OF:
            before, theirs, after = samples_of(ours), samples_of(rival.url), samples_of(ours)
            verdicts[rival.name] = judge(EXPORTER_OF[rival.name], theirs, before, after)
    return verdicts


def stop(rivals: list[Rival]) -> None:
    for rival in rivals:
        rival.process.kill()
        rival.process.wait()


def report(verdicts: dict[str, Judged]) -> str:
    return "".join(
        f"{name}: {len(one.equal)} equal, {len(one.differing)} differing {one.differing[:5]}, "
        f"absent {sorted(one.absent)}, unknown {sorted(one.unknown)}\n"
        for name, one in verdicts.items()
    )


def test_every_series_of_theirs_that_the_table_translates_is_ours(judged: dict[str, Judged]) -> None:
    sys.stdout.write(report(judged))
    assert {name: one.differing for name, one in judged.items() if one.differing} == {}
    assert min(len(one.equal) for one in judged.values()) > 30


def test_every_name_of_theirs_is_in_the_table(judged: dict[str, Judged]) -> None:
    assert {name: one.unknown for name, one in judged.items() if one.unknown} == {}


def test_what_theirs_have_and_the_table_translates_we_have(judged: dict[str, Judged]) -> None:
    assert {name: one.absent for name, one in judged.items() if one.absent} == {}


def test_soft_roce_under_traffic_is_the_same_in_all(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The counters move while the exporters are scraped."""
    traffic.bring_up()
    with ExitStack() as stack:
        stack.callback(traffic.take_down)
        rivals = compare.start()
        stack.callback(stop, rivals)
        exporter = Exporter("--sampler.mode=off")
        with traffic.flowing("ib_send_bw", "-D", "60", "-s", "4096"):
            verdicts = judge_all(exporter, rivals)
        assert exporter.stop() == 0
    sys.stdout.write(report(verdicts))
    assert {name: one.differing for name, one in verdicts.items() if one.differing} == {}
    assert verdicts["node_exporter (newest)"].equal >= {"node_infiniband_port_packets_received_total"}
