"""The caches that compare by identity, one test each: changes are shown, unchanged data costs nothing. See `model`."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from observed import observe

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.audit.auditor import MOST_PICKS
from roce_exporter.catalog import CATALOG
from roce_exporter.exposition import Format, Renderer
from roce_exporter.inventory import describe, list_devices
from roce_exporter.kernel.netlink import REMEMBERED, remembered
from roce_exporter.model import Device, DeviceReadings, Netdev, Port, Reading, Snapshot, SourceState
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.sampler.hot import HotCounters
from roce_exporter.self_metrics.collection import Gaps, SelfSamples
from roce_exporter.simulation.kernel import simulate
from roce_exporter.sources.netdev import PAUSE, NetdevQuery
from roce_exporter.sources.rdma_objects import Resources

if TYPE_CHECKING:
    from roce_exporter.simulation.kernel import SimulatedKernel

DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet", (Netdev("eth0", "port"),)),))
CNP = "roce_cnp_sent_total"
ROW = next(row for row in CATALOG if row.name == CNP)


def cnp(*ports: str) -> tuple[Series, ...]:
    return tuple(Series(ROW, ("mlx5_0", port)) for port in ports)


def lines(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


def reading(*names: str, values: tuple[int, ...] = (7,)) -> Reading:
    return Reading("hw_counters", "mlx5_0", 1, names, values)


# Exposition


def test_another_set_of_series_is_another_layout() -> None:
    renderer = Renderer(CATALOG)
    first = renderer.render((Samples(cnp("1"), (5,)),), Format.TEXT)
    second = renderer.render((Samples(cnp("2"), (5,)),), Format.TEXT)
    assert [line.count('port="1"') for line in lines(first) + lines(second)] == [1, 0]


def test_a_removed_part_is_not_shown() -> None:
    renderer = Renderer(CATALOG)
    one, two = Samples(cnp("1"), (5,)), Samples(cnp("2"), (6,))
    assert len(lines(renderer.render((one, two), Format.TEXT))) == 2
    assert len(lines(renderer.render((one,), Format.TEXT))) == 1


def test_missing_series_are_left_out_and_the_cache_is_bounded() -> None:
    renderer, series = Renderer(CATALOG), cnp(*map(str, range(20)))
    for missing in range(20):
        values = tuple(None if position == missing else position for position in range(20))
        text = renderer.render((Samples(series, values),), Format.TEXT)
        assert f'port="{missing}"' not in text.decode()
        assert len(lines(text)) == 19
        assert len(renderer._layout.templates) <= 8
    assert len(lines(renderer.render((Samples(series, tuple(range(20))),), Format.TEXT))) == 20


# Normalising


def test_a_new_plan_is_made_for_another_description_and_for_other_names() -> None:
    normaliser = Normaliser()
    found = DeviceReadings(DEVICE, (reading("np_cnp_sent"),))
    first = normaliser.normalise(found)
    assert normaliser.normalise(found).series is first.series
    other = replace(DEVICE, firmware="28.39.1002")
    changed = normaliser.normalise(DeviceReadings(other, found.readings))
    assert any("28.39.1002" in one.labels for one in changed.series)
    more = normaliser.normalise(
        DeviceReadings(other, (reading("np_cnp_sent", "out_of_buffer", values=(7, 8)),))
    )
    assert len(more.series) == len(changed.series) + 1
    assert more.values[-2:] in ((7, 8), (8, 7))


def test_a_fresh_equal_object_changes_nothing_but_the_cost() -> None:
    normaliser = Normaliser()
    first = normaliser.normalise(DeviceReadings(DEVICE, (reading("np_cnp_sent"),)))
    again = normaliser.normalise(DeviceReadings(replace(DEVICE), (reading("np_" + "cnp_sent"),)))
    assert again == first


# Sources


def test_another_answer_is_another_reading_and_the_same_answer_the_same() -> None:
    answers = iter(({"up": 1}, {"up": 0}, {"up": 0, "speed": 3}))
    answer = next(answers)
    source = NetdevQuery(PAUSE, lambda _: answer, "mlx5_0", 1, "eth0", numbers=dict)
    (first,) = source.read(0.0)
    assert source.read(1.0)[0] is first
    answer = next(answers)
    (second,) = source.read(2.0)
    assert (second.values, second.names is first.names) == ((0,), True)
    answer = next(answers)
    (third,) = source.read(3.0)
    assert dict(zip(third.names, third.values, strict=True)) == {"up": 0, "speed": 3}


def test_resources_that_change_are_read_again() -> None:
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5"])
    found: dict[str, int] = {"qp": 3}
    kernel.rdma_resources = lambda device: found  # type: ignore[method-assign]
    (listed,) = list_devices(kernel)
    source = Resources(kernel, describe(kernel, listed))
    assert source.read(0.0)[0].values == (3,)
    found = {"qp": 4, "cq": 1}
    assert dict(zip(source.read(1.0)[0].names, source.read(1.0)[0].values, strict=True)) == {"qp": 4, "cq": 1}


def test_cached_results_are_immutable_distinct_and_bounded() -> None:
    calls: list[int] = []

    @remembered
    def decode(answer: int) -> dict[str, int]:
        calls.append(answer)
        return {"answer": answer}

    first = decode(1)
    assert decode(1) is first
    assert decode(2) == {"answer": 2}
    assert isinstance(first, MappingProxyType)
    with pytest.raises(TypeError):
        first["answer"] = 3
    for answer in range(2, 2 * REMEMBERED):
        decode(answer)
    decode(1)
    assert calls.count(1) == 2, "dropped, not kept permanently"


# The fast loop


def test_the_hot_set_follows_the_names() -> None:
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5"])
    names: tuple[str, ...] = ("rx_prio3_pause", "rx_prio3_pause_duration")
    kernel.ethtool_statistics = lambda netdev: (names, tuple(range(len(names))))  # type: ignore[method-assign]
    hot = HotCounters(kernel, DEVICE, 1, "eth0")
    first = hot.read(lambda: 0.0)
    assert hot.read(lambda: 0.0).shape is first.shape
    assert {key.priority for key in first.counts} == {"3"}
    names = ("rx_prio4_pause", "rx_prio4_pause_duration")
    second = hot.read(lambda: 0.0)
    assert second.shape is not first.shape
    assert {key.priority for key in second.counts} == {"4"}


def test_the_fast_loop_takes_all_ones_for_no_value_as_a_scrape_does() -> None:
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5"])
    names = ("rx_prio3_pause", "rx_prio3_pause_duration")
    kernel.ethtool_statistics = lambda netdev: (names, (7, (1 << 64) - 1))  # type: ignore[method-assign]
    (counts,) = HotCounters(kernel, DEVICE, 1, "eth0").read(lambda: 0.0).counts.values()
    assert (counts.stops, counts.paused) == (7, None)


# The audit and the exporter's own


def settings(value: int, name: str = "trust_dscp") -> list[DeviceReadings]:
    names = (name, "pfc_capacity")
    return [DeviceReadings(DEVICE, (Reading("dcb", "mlx5_0", 1, names, (value, 8), (), "eth0"),))]


def test_a_setting_that_changes_is_evaluated_again() -> None:
    auditor = Auditor(load_profile("auto"))
    first = auditor.samples(settings(1))
    assert auditor.samples(settings(1)) is first
    assert auditor.samples(settings(0)) != first


def test_names_that_come_and_go_are_never_mistaken_for_others() -> None:
    """An `id` may be reused after its object is deleted, so the auditor keeps references to the names."""
    auditor = Auditor(load_profile("auto"))
    for number in range(2 * MOST_PICKS):
        auditor.samples(settings(number % 2, f"name_{number}"))
        assert len(auditor._picks) <= MOST_PICKS
    assert all(id(names) == key for key, (names, _) in auditor._picks.items())
    assert auditor.samples(settings(1)) != auditor.samples(settings(0))


def test_the_exporters_own_series_follow_its_sources() -> None:
    own = SelfSamples()
    up = SourceState("counters", "mlx5_0", "", True, 0.1)
    first = own.samples(Snapshot(states=(up,)), ())
    assert own.samples(Snapshot(states=(up,)), ()).series is first.series
    absent = own.samples(Snapshot(states=(replace(up, up=None),)), ())
    assert len(absent.series) == len(first.series) - 5
    named = own.samples(Snapshot(states=(up,)), (Gaps("mlx5_0", 3),))
    assert len(named.series) == len(first.series) + 1


async def test_every_observation_is_rendered_from_its_own_values() -> None:
    kernel: SimulatedKernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5"])
    exporter, (first, second) = await observe(kernel, 2)
    assert first is not second
    third = await exporter.observe()
    newest = exporter.render(third, Format.TEXT)
    second = await exporter.observe()
    assert exporter.render(second, Format.TEXT) is not newest, "a new observation is rendered again"
    newest = exporter.render(second, Format.TEXT)
    assert exporter.render(second, Format.TEXT) is newest, "made once per observation and format"
    assert exporter.render(first, Format.TEXT) is not newest
    assert exporter.render(second, Format.OPENMETRICS) != newest
