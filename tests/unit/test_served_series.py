"""What each set of metrics serves: what is in it, what begins, that nothing served goes away, its flags, and how much it is."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from clock import Clock
from observed import observe, samples
from prometheus_client.openmetrics import parser as openmetrics
from recorded import recording

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.named import CHECK_OK, METRIC_SET_INFO, READ_ERRORS, SOURCE_DURATION, SOURCE_UP
from roce_exporter.catalog.row import FULL, LEAN, PRIORITY_LABELS, STANDARD, MetricSet, Row
from roce_exporter.catalog.storm import RATIO, READ_DURATION, STORMS
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.cli import main
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Sampler
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.surroundings.host_sources import HostSources
from roce_exporter.surroundings.kernel_log_follower import KernelLogFollower
from roce_exporter.view.host_history import HostClock, play

if TYPE_CHECKING:
    from roce_exporter.exporter import Observation
    from roce_exporter.normalise.series import Value

ROWS = INDEX.named
PORT_UP = ROWS["roce_port_up"]
TIMEOUTS = ROWS["roce_transport_ack_timeouts_total"]
DISCARDS = ROWS["roce_buffer_discards_total"]
PFC = ROWS["roce_pfc_enabled"]
FRAMES = ROWS["roce_pfc_receive_frames_total"]
BYTES = ROWS["roce_priority_receive_bytes_total"]
KERNEL_LOG = ROWS["roce_kernel_log_events_total"]
BUFFER = ROWS["roce_config_priority_buffer"]
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


def of_priority(priority: int, *more: str) -> tuple[str, ...]:
    return (*PORT, "eth0", str(priority), *more)


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
def test_a_row_of_a_higher_set_is_left_out(metric_set: MetricSet) -> None:
    rows = [PORT_UP, ROWS["roce_port_state"], ROWS["roce_port_physical_state"]]
    names = {key[0] for key in shown(ServedSeries(metric_set), Exported(*((row, PORT) for row in rows)))}
    assert names == {row.name for row in rows if metric_set.includes(row.metric_set)}
    assert len(names) == {LEAN: 1, STANDARD: 2}[metric_set]


@LIMITED
def test_a_sparse_series_begins_with_its_first_event_and_stays(metric_set: MetricSet) -> None:
    served, host = (
        ServedSeries(metric_set),
        Exported((PORT_UP, PORT), (TIMEOUTS, PORT), (TIMEOUTS, ("b", "1"))),
    )
    assert len(shown(served, host)) == 1
    host.set(TIMEOUTS, 3, *PORT)
    assert shown(served, host) == {(PORT_UP.name, *PORT): 0, (TIMEOUTS.name, *PORT): 3}
    host.set(TIMEOUTS, 0, *PORT)
    assert shown(served, host)[TIMEOUTS.name, *PORT] == 0


@LIMITED
def test_a_check_begins_when_it_fails_and_shows_that_it_passes_again(metric_set: MetricSet) -> None:
    """A value that is missing begins nothing."""
    labels = (*PORT, "eth0", "trust")
    served, host = ServedSeries(metric_set), Exported((CHECK_OK, labels), (TIMEOUTS, PORT))
    host.set(TIMEOUTS, None, *PORT)
    for value, begun in ((None, False), (1, False), (0, True), (1, True)):
        host.set(CHECK_OK, value, *labels)
        assert shown(served, host) == ({(CHECK_OK.name, *labels): value} if begun else {})


HOUR = 3600
DEPARTED = ("mlx5_9", "1")


def departing(device: str = "mlx5_9") -> Exported:
    """A device with an error, a priority with PFC, and a source."""
    port, priority = (device, "1"), (device, "1", "eth9", "3")
    host = Exported(
        (TIMEOUTS, port), (PFC, priority), (DISCARDS, priority), (SOURCE_UP, ("port", device, ""))
    )
    host.set(TIMEOUTS, 3, *port)
    host.set(PFC, 1, *priority)
    host.set(SOURCE_UP, 1, "port", device, "")
    return host


def reset(host: Exported) -> Exported:
    """The same device after a reset: PFC is still off, and counters are 0."""
    host.set(TIMEOUTS, 0, *DEPARTED)
    host.set(PFC, 0, *DEPARTED, "eth9", "3")
    return host


@LIMITED
def test_a_device_that_comes_back_within_an_hour_continues_and_later_begins_again(
    metric_set: MetricSet,
) -> None:
    """The hour begins when it is missed. A device that stays remembers for good, also without any scrape for hours."""
    clock, resident = Clock(0), sources()
    resident.set(SOURCE_UP, 0, "a", "mlx5_0", "")
    served = ServedSeries(metric_set, clock=clock)
    before = shown(served, resident, host := departing())
    assert {key[0] for key in before} == {TIMEOUTS.name, PFC.name, DISCARDS.name, SOURCE_UP.name}
    resident.set(SOURCE_UP, 1, "a", "mlx5_0", "")
    for clock.now in (5 * HOUR, 5.9 * HOUR):
        shown(served, resident)
    clock.now = 5.99 * HOUR
    assert shown(served, resident, reset(host)).keys() == before.keys()
    for clock.now in (7 * HOUR, 8 * HOUR):
        shown(served, resident)
    assert shown(served, resident, reset(host)).keys() == {
        (SOURCE_UP.name, "a", "mlx5_0", ""),
        (SOURCE_UP.name, "a", "", ""),
        (SOURCE_UP.name, "b", "", ""),
        (SOURCE_UP.name, "port", "", ""),
    }


@LIMITED
def test_a_device_without_readings_is_still_there(metric_set: MetricSet) -> None:
    """All its reads hang for hours: only its sources have series."""
    clock = Clock(0)
    served = ServedSeries(metric_set, clock=clock)
    before = shown(served, departing())
    for clock.now in range(HOUR, 5 * HOUR, HOUR):
        shown(served, Exported((SOURCE_UP, ("port", "mlx5_9", ""))))
    assert before.keys() - shown(served, reset(departing())).keys() == {(SOURCE_UP.name, "port", "", "")}


@LIMITED
def test_what_outlives_a_device_does_not_end(metric_set: MetricSet) -> None:
    """The kernel log counts messages of removed devices, too."""
    clock, labels = Clock(0), ("mlx5_9", "firmware_fatal")
    log = Exported((KERNEL_LOG, labels))
    log.set(KERNEL_LOG, 1, *labels)
    served = ServedSeries(metric_set, clock=clock)
    for clock.now in range(0, 5 * HOUR, HOUR):
        assert shown(served, log) == {(KERNEL_LOG.name, *labels): 1}


def kept_bytes(clock: Clock, served: ServedSeries, devices: int) -> int:
    """Memory in use after this many devices, one per hour, each under a new name."""
    for number in range(devices):
        clock.now += HOUR
        shown(served, departing(f"mlx5_{clock.now}_{number}"))
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
@LIMITED
def test_devices_under_ever_new_names_need_no_more_memory(metric_set: MetricSet) -> None:
    """Without a clock all are remembered: a third of a kilobyte each, and more."""
    clock = Clock(0)
    tracemalloc.start()
    try:
        grown = []
        for own in (clock, lambda: 0.0):
            served = ServedSeries(metric_set, clock=own)
            first = kept_bytes(clock, served, 50)
            grown.append(kept_bytes(clock, served, 200) - first)
    finally:
        tracemalloc.stop()
    assert grown[0] < 10_000
    assert grown[1] > 60_000


@LIMITED
def test_a_priority_begins_with_pfc_and_stays(metric_set: MetricSet) -> None:
    series = [(row, of_priority(priority)) for priority in (0, 3) for row in (PFC, DISCARDS, BUFFER)]
    served, host = ServedSeries(metric_set), Exported(*series)
    assert shown(served, host) == {}
    host.set(PFC, 1, *of_priority(3))
    names = {PFC.name, DISCARDS.name} | ({BUFFER.name} if metric_set is STANDARD else set())
    assert shown(served, host).keys() == {(name, *of_priority(3)) for name in names}
    host.set(PFC, 0, *of_priority(3))
    assert shown(served, host).keys() == {(name, *of_priority(3)) for name in names}


@LIMITED
def test_a_priority_without_pfc_has_its_counters_above_0_only(metric_set: MetricSet) -> None:
    """A drop of a lossy priority begins with the first packet, the other series of this priority do not."""
    served = ServedSeries(metric_set)
    host = Exported(*((row, of_priority(0)) for row in (PFC, DISCARDS, BYTES, BUFFER)))
    host.set(BYTES, 1000, *of_priority(0))
    assert shown(served, host) == {(BYTES.name, *of_priority(0)): 1000}
    host.set(DISCARDS, 1, *of_priority(0))
    assert shown(served, host).keys() == {(row.name, *of_priority(0)) for row in (BYTES, DISCARDS)}


@LIMITED
def test_pause_of_a_priority_without_pfc_shows_that_pfc_is_off(metric_set: MetricSet) -> None:
    """Of the same scrape and of another part of it: `roce_pfc_enabled == 0` is what an alert compares with."""
    served = ServedSeries(metric_set)
    settings, counters = Exported((PFC, of_priority(5))), Exported((FRAMES, of_priority(5)))
    assert shown(served, settings, counters) == {}
    counters.set(FRAMES, 1, *of_priority(5))
    assert shown(served, settings, counters) == {
        (PFC.name, *of_priority(5)): 0,
        (FRAMES.name, *of_priority(5)): 1,
    }


@LIMITED
def test_storms_are_there_before_the_first_one(metric_set: MetricSet) -> None:
    """Also where nothing is known of PFC: a page compares with the 0 before."""
    labels = of_priority(5, "transmit")
    assert shown(ServedSeries(metric_set), Exported((STORMS, labels))) == {(STORMS.name, *labels): 0}


def histogram(row: Row, labels: tuple[str, ...], *bounds: str) -> list[tuple[Row, tuple[str, ...], str]]:
    ends = [(row, (*labels, ""), suffix) for suffix in ("_sum", "_count")]
    return [*((row, (*labels, bound), "_bucket") for bound in bounds), *ends]


def test_a_histogram_begins_with_its_sum_and_has_its_listed_buckets_in_its_lowest_set() -> None:
    labels = of_priority(3, "receive")
    host = Exported((PFC, of_priority(3)), *histogram(RATIO, labels, "0.1", "0.5", "+Inf"))
    host.set(PFC, 1, *of_priority(3))
    host.set(RATIO, 9, *labels, "+Inf", suffix="_bucket")
    host.set(RATIO, 9, *labels, "", suffix="_count")
    lean, standard = ServedSeries(LEAN), ServedSeries(STANDARD)
    assert not [key for key in shown(lean, host) if key[0].startswith(RATIO.name)]
    host.set(RATIO, 0.5, *labels, "", suffix="_sum")
    assert [key[-1] for key in shown(lean, host) if key[0] == f"{RATIO.name}_bucket"] == ["0.5", "+Inf"]
    assert [key[-1] for key in shown(standard, host) if key[0] == f"{RATIO.name}_bucket"] == [
        "0.1",
        "0.5",
        "+Inf",
    ]
    assert {key[0] for key in shown(lean, host)} >= {f"{RATIO.name}_sum", f"{RATIO.name}_count"}
    reads = Exported(*histogram(READ_DURATION, (*PORT, "eth0"), "0.001", "0.0025", "+Inf"))
    assert [key[-1] for key in shown(ServedSeries(STANDARD), reads)][:2] == ["0.001", "+Inf"]
    assert shown(ServedSeries(LEAN), reads) == {}, "the list has an effect in the lowest set only"


DEVICES = ("mlx5_0", "mlx5_1")


def sources(*more: Row) -> Exported:
    rows = [
        (row, (source, device, ""))
        for row in (SOURCE_UP, *more)
        for source in ("a", "b")
        for device in DEVICES
    ]
    host = Exported(*rows)
    for source in ("a", "b"):
        for device in DEVICES:
            host.set(SOURCE_UP, 1, source, device, "")
    return host


@LIMITED
def test_a_broken_source_has_its_own_series_and_keeps_it(metric_set: MetricSet) -> None:
    """One that works everywhere has one series."""
    served, host = ServedSeries(metric_set), sources(READ_ERRORS)
    expected: Shown = {(SOURCE_UP.name, "a", "", ""): 1, (SOURCE_UP.name, "b", "", ""): 1}
    assert shown(served, host) == expected
    host.set(READ_ERRORS, 1, "a", "mlx5_1", "")
    expected |= {(READ_ERRORS.name, "a", "mlx5_1", ""): 1}
    for up in (0, 1):
        host.set(SOURCE_UP, up, "a", "mlx5_1", "")
        assert shown(served, host) == expected | {(SOURCE_UP.name, "a", "mlx5_1", ""): up}


@LIMITED
def test_a_source_that_failed_on_every_device_has_no_common_series(metric_set: MetricSet) -> None:
    served, host = ServedSeries(metric_set), sources()
    for device in DEVICES:
        host.set(SOURCE_UP, 0, "a", device, "")
    assert (SOURCE_UP.name, "a", "", "") not in shown(served, host)
    assert shown(served, host)[SOURCE_UP.name, "a", "mlx5_0", ""] == 0


@LIMITED
def test_a_source_of_no_device_keeps_its_own_series(metric_set: MetricSet) -> None:
    host = Exported((SOURCE_UP, ("a", "", "")), (SOURCE_UP, ("a", "mlx5_0", "")))
    host.set(SOURCE_UP, 1, "a", "mlx5_0", "")
    assert shown(ServedSeries(metric_set), host) == {(SOURCE_UP.name, "a", "", ""): 0}


def test_the_duration_of_a_source_is_that_of_its_slowest_device() -> None:
    host = sources(SOURCE_DURATION)
    for value, device in enumerate(DEVICES, 1):
        host.set(SOURCE_DURATION, value / 8, "a", device, "")
        host.set(SOURCE_DURATION, None, "b", device, "")
    found = shown(ServedSeries(STANDARD), host)
    assert found[SOURCE_DURATION.name, "a", "", ""] == 0.25
    assert [key for key in found if key[0] == SOURCE_DURATION.name and key[2]] == []
    assert not [key for key in shown(ServedSeries(LEAN), host) if key[0] == SOURCE_DURATION.name]


@pytest.mark.parametrize("metric_set", MetricSet)
def test_an_excluded_metric_is_in_no_set(metric_set: MetricSet) -> None:
    host = Exported((PORT_UP, PORT), (ROWS["roce_port_mtu_bytes"], PORT), (TIMEOUTS, PORT))
    host.set(TIMEOUTS, 1, *PORT)
    served = ServedSeries(metric_set, [PORT_UP.name, METRIC_SET_INFO.name])
    assert shown(served, host).keys() == {("roce_port_mtu_bytes", *PORT), (TIMEOUTS.name, *PORT)}
    first, second = served.select([host.samples()]), served.select([host.samples()])
    assert len(first) == 1, "no name of the set"
    assert first[0].series is second[0].series, "chosen once while the series are the same objects"


def test_rows_of_a_set_have_what_the_rules_need() -> None:
    for row in CATALOG:
        assert row.metric_set is not FULL or not (row.sparse or row.only), row.name
        assert row.usual in (None, 0, 1), row.name
        assert not row.only or row.only[0] in row.labels, row.name
        priority = "priority" in row.labels and not row.name.startswith(("roce_switch_", "roce_wire_"))
        assert not priority or row.labels[: len(PRIORITY_LABELS)] == PRIORITY_LABELS, row.name


# Flags

HOST = f"--host.recording={recording('mlx5-pair')}"
MTU = "roce_port_mtu_bytes"


def once(capsys: pytest.CaptureFixture[str], *flags: str) -> set[str]:
    assert main(["once", HOST, *flags]) == 0
    return set(samples(capsys.readouterr().out.encode()))


def test_the_default_is_standard(capsys: pytest.CaptureFixture[str]) -> None:
    default = once(capsys)
    assert default == once(capsys, "--metrics.set=standard")
    assert 'roce_exporter_metric_set_info{set="standard"}' in default
    assert len(once(capsys, "--metrics.set=lean")) < len(default) < len(once(capsys, "--metrics.set=full"))


def test_a_metric_is_left_out_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    whole = once(capsys, "--metrics.set=full")
    flags = (f"--metrics.exclude={MTU}", "--metrics.exclude=roce_dcqcn_parameter")
    left = once(capsys, "--metrics.set=full", *flags)
    gone = {series for series in whole if series.startswith((f"{MTU}{{", "roce_dcqcn_parameter{"))}
    assert gone
    assert whole - left == gone
    assert left <= whole


@pytest.mark.parametrize("name", ["roce_no_such_total", "roce_port_.*", "process_open_fds", ""])
def test_an_unknown_name_is_one_clear_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["once", HOST, f"--metrics.exclude={name}"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--metrics.exclude" in line
    assert f"{name!r} is not a metric of this version" in line
    assert "docs/metrics.md" in line


def series_of(observation: Observation, served: ServedSeries, form: Format = Format.TEXT) -> dict[str, str]:
    return samples(Renderer().render(served.select(observation.samples), form))


async def test_the_moving_host_loses_no_series_and_every_set_is_a_part_of_the_next() -> None:
    """A link goes down in the eighth of twelve moments; nothing that was served goes away. All formats have the same."""
    _, observations = await observe(load_recording(recording("moving")), 12)
    served = {metric_set: ServedSeries(metric_set) for metric_set in MetricSet}
    before: dict[MetricSet, set[str]] = {metric_set: set() for metric_set in MetricSet}
    for number, one in enumerate(observations):
        everything = set(series_of(one, ServedSeries(FULL)))
        form = Format.OPENMETRICS if number % 2 else Format.TEXT
        found = {metric_set: set(series_of(one, served[metric_set], form)) for metric_set in MetricSet}
        for metric_set, series in found.items():
            assert not (before[metric_set] - series) & everything, "a series went away"
        before = found
        lean, standard, full = ({key.partition("{")[0] for key in series} for series in found.values())
        assert lean < standard < full


# How many series a port costs

LIMITS = {LEAN: 70, STANDARD: 160}
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
    reach = play(clock, sampler)
    served = {one: ServedSeries(one) for one in MetricSet}
    own = OwnRegistry().render(openmetrics=True)
    try:
        for time in TIMES:
            await reach(time)
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
    for scenario, ports in (("incast", 8), ("incast", 1), ("pfc-storm", 8), ("quiet", 8)):
        texts = await expositions(scenario, ports)
        series = {one: samples(text) for one, text in texts.items()}
        found[scenario, ports] = {
            one: sum("roce_vf_" not in name for name in names) / ports for one, names in series.items()
        }
        names = {one: {name.partition("{")[0] for name in found} for one, found in series.items()}
        assert names[LEAN] < names[STANDARD] < names[FULL]
    for metric_set, limit in LIMITS.items():
        assert found["quiet", 8][metric_set] <= limit
        assert found["incast", 8][metric_set] <= limit
        assert found["incast", 8][metric_set] < found["incast", 1][metric_set] < 1.7 * limit
    assert found["incast", 8][LEAN] * 5 < found["incast", 8][FULL] <= 1000
    assert found["quiet", 8][LEAN] < found["pfc-storm", 8][LEAN] < 4 / 3 * found["quiet", 8][LEAN]
    assert list(openmetrics.text_string_to_metric_families(texts[FULL].decode()))


@pytest.mark.parametrize("scenario", ["broken", "firmware"])
async def test_every_series_of_a_host_in_trouble_is_served_once(scenario: str) -> None:
    assert all(map(samples, (await expositions(scenario, 2)).values()))
