"""What each set of metrics serves: what is in it, that no value decides, its flags, and how much it is."""

import pytest
from observed import observe, samples
from prometheus_client.openmetrics import parser as openmetrics
from recorded import recording

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.named import METRIC_SET_INFO, QUARANTINED, SOURCE_UP, UNREADABLE
from roce_exporter.catalog.row import FULL, LEAN, STANDARD, MetricSet, Row
from roce_exporter.catalog.storm import STORMS
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.cli import main
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter, Observation
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Sampler
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host_sources import HostSources
from roce_exporter.host_sources.kernel_log import KernelLogFollower
from roce_exporter.normalise.series import Samples, Series, Value
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.view.host_view import HostClock

ROWS = INDEX.named
PORT_UP = ROWS["roce_port_up"]
TIMEOUTS = ROWS["roce_transport_ack_timeouts_total"]
DISCARDS = ROWS["roce_buffer_discards_total"]
PFC = ROWS["roce_pfc_enabled"]
PORT = ("mlx5_0", "1")
LIMITED = pytest.mark.parametrize("metric_set", [LEAN, STANDARD])

Shown = dict[tuple[str, ...], "Value"]


class Exported:
    """Series with values that a test changes; the tuple of series stays the same object."""

    def __init__(self, *series: tuple[Row, tuple[str, ...]] | Series) -> None:
        self.series = tuple(Series(*one) for one in series)
        self.values: dict[Series, Value] = dict.fromkeys(self.series, 0)

    def samples(self) -> Samples:
        return Samples(self.series, tuple(self.values.values()))

    def set(self, row: Row, value: Value, *labels: str, suffix: str = "") -> None:
        self.values[Series(row, labels, suffix)] = value


def shown(served: ServedSeries, *parts: Exported | Samples) -> Shown:
    """Name and labels of each series that is served, with its value; without the name of the set."""
    selected = served.select([part if isinstance(part, Samples) else part.samples() for part in parts])
    found = {
        (one.row.name + one.suffix, *one.labels): value
        for part in selected
        for one, value in zip(part.series, part.values, strict=True)
    }
    assert len(found) == sum(len(part.series) for part in selected), "a series twice"
    assert all(len(part.series) == len(part.values) for part in selected)
    return {key: value for key, value in found.items() if key[0] != METRIC_SET_INFO.name}


def test_the_sets_are_ordered_and_served_as_a_metric_and_full_is_everything_as_it_is() -> None:
    assert [[one.includes(other) for other in MetricSet] for one in MetricSet] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    for metric_set in MetricSet:
        (info,) = ServedSeries(metric_set).select([])
        assert info == Samples((Series(METRIC_SET_INFO, (metric_set.value,)),), (1,))
    part = Exported((PORT_UP, PORT), (TIMEOUTS, PORT), (ROWS["roce_port_physical_state"], PORT)).samples()
    assert ServedSeries(FULL).select([part])[0] is part


@LIMITED
def test_a_row_of_a_higher_set_is_left_out(metric_set) -> None:
    rows = [PORT_UP, ROWS["roce_port_info"], ROWS["roce_port_physical_state"]]
    names = {key[0] for key in shown(ServedSeries(metric_set), Exported(*((row, PORT) for row in rows)))}
    assert names == {row.name for row in rows if metric_set.includes(row.metric_set)}
    assert len(names) == {LEAN: 1, STANDARD: 2}[metric_set]


@LIMITED
def test_a_value_decides_nothing(metric_set) -> None:
    """A counter of faults is there from its first 0 on, so `increase` sees its first event; so is every priority."""
    labels = (*PORT, "eth0", "0")
    host = Exported((TIMEOUTS, PORT), (PFC, labels), (DISCARDS, labels), (STORMS, (*labels, "transmit")))
    served = ServedSeries(metric_set)
    before = shown(served, host)
    assert set(before.values()) == {0}
    assert len(before) == len(host.series)
    for row, *values in ((TIMEOUTS, *PORT), (DISCARDS, *labels)):
        host.set(row, 3, *values)
    assert shown(served, host).keys() == before.keys()


def test_a_gid_has_the_listed_types_in_its_lowest_set() -> None:
    gid = ROWS["roce_gid_info"]
    host = Exported(*((gid, (*PORT, "0", kind, "eth0", "::1")) for kind in ("RoCE v2", "IB/RoCE v1")))
    counts = {one: len(shown(ServedSeries(one), host)) for one in MetricSet}
    assert counts == {LEAN: 1, STANDARD: 2, FULL: 2}


DEVICES = ("mlx5_0", "mlx5_1")


@LIMITED
def test_a_source_is_as_good_as_its_worst_device(metric_set) -> None:
    """Its state and what it could not read, without a device; one of no device is one more."""
    rows = (SOURCE_UP, UNREADABLE, QUARANTINED)
    places = [("a", device) for device in DEVICES] + [("b", "mlx5_0"), ("b", ""), ("c", "mlx5_0")]
    host = Exported(*((row, (*place, "")) for row in rows for place in places))
    served = ServedSeries(metric_set)
    for place in places:
        host.set(SOURCE_UP, 1, *place, "")
    host.set(SOURCE_UP, 0, "a", "mlx5_1", "")
    for device in DEVICES:
        host.set(UNREADABLE, 2, "a", device, "")
        host.set(QUARANTINED, 3, "a", device, "")
    found = shown(served, host)
    assert {key: value for key, value in found.items() if key[0] == SOURCE_UP.name} == {
        (SOURCE_UP.name, "a", "", ""): 0,
        (SOURCE_UP.name, "b", "", ""): 1,
        (SOURCE_UP.name, "c", "", ""): 1,
    }
    assert found[QUARANTINED.name, "", "", ""] == 6
    if metric_set is STANDARD:
        assert [found[UNREADABLE.name, one, "", ""] for one in "abc"] == [4, 0, 0]
    assert shown(ServedSeries(FULL), host).keys() == {
        (row.name, *place, "") for row in rows for place in places
    }


@pytest.mark.parametrize("metric_set", MetricSet)
def test_an_excluded_metric_is_in_no_set(metric_set) -> None:
    host = Exported((PORT_UP, PORT), (ROWS["roce_port_mtu_bytes"], PORT), (TIMEOUTS, PORT))
    host.set(TIMEOUTS, 1, *PORT)
    served = ServedSeries(metric_set, [PORT_UP.name, METRIC_SET_INFO.name])
    assert shown(served, host).keys() == {("roce_port_mtu_bytes", *PORT), (TIMEOUTS.name, *PORT)}
    first, second = served.select([host.samples()]), served.select([host.samples()])
    assert len(first) == 1, "no name of the set"
    assert first[0].series is second[0].series, "chosen once while the series are the same objects"


def test_the_marks_of_rows_have_a_meaning() -> None:
    for row in CATALOG:
        assert row.metric_set is not FULL or not row.only, row.name
        assert row.usual in (None, 0), row.name
        assert not row.only or row.only[0] in row.labels, row.name


# Flags

HOST = f"--host.recording={recording('mlx5-pair')}"
MTU = "roce_port_mtu_bytes"


def once(capsys: pytest.CaptureFixture[str], *flags: str) -> set[str]:
    assert main(["once", HOST, *flags]) == 0
    return set(samples(capsys.readouterr().out.encode()))


def test_a_metric_is_left_out_by_name(capsys) -> None:
    whole = once(capsys, "--metrics.set=full")
    flags = (f"--metrics.exclude={MTU}", "--metrics.exclude=roce_dcqcn_parameter")
    left = once(capsys, "--metrics.set=full", *flags)
    gone = {series for series in whole if series.startswith((f"{MTU}{{", "roce_dcqcn_parameter{"))}
    assert gone
    assert whole - left == gone
    assert left <= whole


@pytest.mark.parametrize(
    "name", ["roce_no_such_total", "roce_port_.*", "process_open_fds", "roce_exporter_tls"]
)
def test_an_unknown_name_is_one_clear_error(name, capsys) -> None:
    assert main(["once", HOST, f"--metrics.exclude={name}"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--metrics.exclude" in line
    assert f"{name!r} is not a metric of this version" in line
    assert "docs/metrics.md" in line


def series_of(observation: Observation, served: ServedSeries, form: Format = Format.TEXT) -> dict[str, str]:
    return samples(Renderer().render(served.select(observation.samples), form))


async def test_every_set_is_a_part_of_the_next_and_has_the_same_series_at_every_moment() -> None:
    """A link goes down in the eighth of twelve moments, and counters move: neither begins or ends a series. All formats have the same."""
    _, observations = await observe(load_recording(recording("moving")), 12)
    served = {metric_set: ServedSeries(metric_set) for metric_set in MetricSet}
    everything = [set(series_of(one, served[FULL])) for one in observations]
    for number, one in enumerate(observations):
        form = Format.OPENMETRICS if number % 2 else Format.TEXT
        found = {metric_set: set(series_of(one, served[metric_set], form)) for metric_set in MetricSet}
        lean, standard, full = ({key.partition("{")[0] for key in series} for series in found.values())
        assert lean < standard < full
        for metric_set, series in found.items():
            first = set(series_of(observations[0], served[metric_set]))
            assert first - series <= everything[0] - everything[number], metric_set
            assert series - first <= everything[number] - everything[0], metric_set


# How many series a port costs

LIMITS = {LEAN: 80, STANDARD: 200}
"""Series per port with eight ports of mlx5, without owners and virtual functions."""
BEGIN = 1_763_000_000.0
TIMES = (0.0, 15.0, 30.0, 45.0, 60.0)


async def expositions(scenario: str, ports: int) -> dict[MetricSet, bytes]:
    """What an exporter has served after a minute, in OpenMetrics, in each set."""
    clock = HostClock()
    kernel = simulate(scenario, clock=clock, vendors=("mlx5",) * ports)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, lambda: BEGIN + clock.now)
    around = HostSources([KernelLogFollower(kernel)], clock)
    exporter = Exporter(collector, [Auditor(load_profile("auto")), sampler, around])
    health = HealthWatch(exporter.observe, clock, lambda: BEGIN + clock.now)
    exporter.parts.append(health)
    served = {one: ServedSeries(one) for one in MetricSet}
    own = OwnRegistry().render(openmetrics=True)
    try:
        for time in TIMES:
            await clock.play(sampler, time)
            await around.read_once()
            observation = await exporter.observe()
            await health.read_once()
            selected = {one: selection.select(observation.samples) for one, selection in served.items()}
        return {one: Renderer().render(parts, Format.OPENMETRICS) + own for one, parts in selected.items()}
    finally:
        collector.close()
        sampler.close()
        around.close()


@pytest.mark.slow
async def test_a_port_costs_no_more_than_its_set_allows_and_no_series_is_served_twice() -> None:
    """One port pays for its sources and the process alone, but not twice as much. A storm brings series of what is wrong only."""
    found = {}
    for scenario, ports in (("incast", 8), ("incast", 1), ("pfc-storm", 2), ("quiet", 2)):
        texts = await expositions(scenario, ports)
        series = {one: samples(text) for one, text in texts.items()}
        found[scenario, ports] = {
            one: sum("roce_vf_" not in name for name in names) / ports for one, names in series.items()
        }
        names = {one: {name.partition("{")[0] for name in found} for one, found in series.items()}
        assert names[LEAN] < names[STANDARD] < names[FULL]
    for metric_set, limit in LIMITS.items():
        assert found["incast", 8][metric_set] <= limit
        assert found["incast", 8][metric_set] < found["incast", 1][metric_set] < 1.7 * limit
    assert found["incast", 8][LEAN] * 5 < found["incast", 8][FULL] <= 1000
    assert found["quiet", 2][LEAN] < found["pfc-storm", 2][LEAN] < 4 / 3 * found["quiet", 2][LEAN]
    assert list(openmetrics.text_string_to_metric_families(texts[FULL].decode()))


@pytest.mark.parametrize("scenario", ["broken", "firmware"])
async def test_every_series_of_a_host_in_trouble_is_served_once(scenario) -> None:
    assert all(map(samples, (await expositions(scenario, 2)).values()))
