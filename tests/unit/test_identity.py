"""The caches that compare by identity, one test each: changes are shown, unchanged data costs nothing. See `model`."""

from dataclasses import replace
from types import MappingProxyType

import pytest
from observed import audited, observe

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.checks.settings.auditor import MOST_PICKS
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop.target import HotCounters
from roce_exporter.host.inventory import describe, list_devices
from roce_exporter.host.kernel.netlink import REMEMBERED, remembered
from roce_exporter.host.simulated.kernel import SimulatedKernel, simulate
from roce_exporter.host.sources.hw_counters import resources_reader
from roce_exporter.host.sources.netdev import PAUSE
from roce_exporter.host.sources.query_reader import QueryReader
from roce_exporter.model import Device, DeviceReadings, Netdev, Port, Reading, Snapshot, SourceState
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.self_metrics.collection import Gaps, SelfSamples

DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet", (Netdev("eth0", "port"),)),))
CNP = "roce_cnp_sent_total"
ROW = next(row for row in CATALOG if row.name == CNP)


def cnp(*ports: str) -> tuple[Series, ...]:
    return tuple(Series(ROW, ("mlx5_0", port)) for port in ports)


def reading(*names: str, values: tuple[int, ...] = (7,)) -> Reading:
    return Reading("hw_counters", "mlx5_0", 1, names, values)


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


@pytest.mark.parametrize(
    "change", [{"port": 2}, {"source": "counters"}, {"netdev": "eth1"}, {"names": ("out_of_buffer",)}]
)
def test_names_that_are_the_same_object_are_not_enough_for_a_plan(change) -> None:
    """Two directories can have the same names; a plan belongs to one of them. Back and forth, so that both plans are made twice."""
    device = replace(DEVICE, ports=(*DEVICE.ports, Port(2, "Ethernet")))
    one = reading("np_cnp_sent")
    other = replace(one, **change)  # type: ignore[arg-type]  # fields of a reading
    normaliser = Normaliser()
    for found in (one, other, one, one, other):
        expected = Normaliser().normalise(DeviceReadings(device, (found,)))
        assert normaliser.normalise(DeviceReadings(device, (found,))) == expected
        assert normaliser.plans["mlx5_0"].unmapped == tuple(
            (found.source, found.port, name)
            for name in found.names
            if (found.source, name) == ("counters", "np_cnp_sent")
        )


def test_readings_that_come_and_go_are_not_taken_for_others() -> None:
    normaliser, one = Normaliser(), reading("np_cnp_sent")
    two = replace(one, port=2, values=(8,))
    device = replace(DEVICE, ports=(*DEVICE.ports, Port(2, "Ethernet")))
    for readings in ((one,), (one, two), (two, one), (two,), (), (one,)):
        expected = Normaliser().normalise(DeviceReadings(device, readings))
        found = normaliser.normalise(DeviceReadings(device, readings))
        assert dict(zip(*found, strict=True)) == dict(zip(*expected, strict=True))


# Sources


def test_another_answer_is_another_reading_and_the_same_answer_the_same() -> None:
    answers = iter(({"up": 1}, {"up": 0}, {"up": 0, "speed": 3}))
    answer = next(answers)
    source = QueryReader(PAUSE, lambda: answer, "mlx5_0", 1, "eth0", numbers=dict)
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
    source = resources_reader(kernel, describe(kernel, listed))
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


# What has not changed is not converted again


def test_a_value_that_changes_and_changes_back_is_written_in_every_format() -> None:
    """Formats take turns, so each has missed a change that the other has written."""
    renderer, series = Renderer(CATALOG), cnp("1", "2")
    history = ((5, 6), (5, 7), (5, 6), (None, 6), (4, 6), (None, 7), (5, None), (5, 6))
    forms = (Format.TEXT, Format.OPENMETRICS, Format.OPENMETRICS)
    for number, values in enumerate(history * 3):
        form = forms[number % 3]
        # Numbers are new objects, as from a file that was read again.
        fresh = tuple(None if value is None else int(str(value + 10**6)) for value in values)
        parts = (Samples(series, fresh),)
        assert renderer.render(parts, form) == Renderer(CATALOG).render(parts, form)


def test_values_that_do_not_fit_the_series_are_an_error() -> None:
    renderer, series = Renderer(CATALOG), cnp("1", "2")
    renderer.render((Samples(series, (5, 6)),), Format.TEXT)
    with pytest.raises(ValueError, match="1 values for 2 series"):
        renderer.render((Samples(series, (5,)),), Format.TEXT)


def test_only_the_same_samples_are_served_again() -> None:
    served, series = ServedSeries(MetricSet.STANDARD), cnp("1")
    part = Samples(series, (5,))
    first = served.select((part,))
    assert served.select((part,))[0] is first[0]
    assert served.select((Samples(series, (6,)),))[0].values == (6,)
    assert served.select((part,))[0].values == (5,)


def test_only_the_same_readings_are_the_same_for_the_audit() -> None:
    auditor = Auditor(load_profile("auto"))
    one, other = settings(1), settings(0)
    first = audited(auditor, one)
    assert audited(auditor, one) is first
    assert audited(auditor, other) != first
    assert audited(auditor, one) == first
    assert audited(auditor, ()) != first


async def test_a_device_without_a_change_keeps_its_samples_and_another_does_not() -> None:
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5", "mlx5"])
    exporter, (first, second) = await observe(kernel, 2)
    for before, after in zip(first.samples[:2], second.samples[:2], strict=True):
        assert dict(zip(*after, strict=True)) == dict(zip(*before, strict=True))
    for found in second.snapshot.devices:
        known = exporter._devices[found.device.name]
        assert exporter._normalise_device(found)[0] is known[1]
        changed = replace(
            found, readings=tuple(replace(one, values=(None,) * len(one.names)) for one in found.readings)
        )
        assert set(exporter._normalise_device(changed)[0].values) <= {1, None}
        assert exporter._normalise_device(found)[0] == known[1]


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


def test_a_setting_that_moves_to_another_port_is_evaluated_again() -> None:
    """Only the readings with settings are compared, so each is compared with its port."""
    auditor, device = (
        Auditor(load_profile("auto")),
        replace(DEVICE, ports=(*DEVICE.ports, Port(2, "Ethernet"))),
    )
    on = Reading("hw_counters", "mlx5_0", 1, ("roce_adp_retrans", "roce_adp_retrans_to"), (1, 1))
    other = Reading("hw_counters", "mlx5_0", 1, ("np_cnp_sent",), (7,))
    signatures = {
        auditor._signature_of(DeviceReadings(device, readings))
        for readings in (
            (on, replace(other, port=2)),
            (other, replace(on, port=2)),
            (on, replace(on, port=2)),
            (other, replace(other, port=2)),
        )
    }
    assert len(signatures) == 4


def test_names_that_come_and_go_are_never_mistaken_for_others() -> None:
    """An `id` may be reused after its object is deleted, so the auditor keeps references to the names."""
    auditor = Auditor(load_profile("auto"))
    for number in range(2 * MOST_PICKS):
        audited(auditor, settings(number % 2, f"name_{number}"))
        assert len(auditor._picks) <= MOST_PICKS
    assert all(id(names) == key for key, (names, _) in auditor._picks.items())
    assert audited(auditor, settings(1)) != audited(auditor, settings(0))


def test_the_exporters_own_series_follow_its_sources() -> None:
    own = SelfSamples()
    up = SourceState("counters", "mlx5_0", "", True, 0.1)
    first = own.samples(Snapshot(states=(up,)), ())
    assert own.samples(Snapshot(states=(up,)), ()).series is first.series
    absent = own.samples(Snapshot(states=(up._replace(up=None),)), ())
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
