"""Plans: base units, sums, one spelling per series while the device stays."""

from dataclasses import replace

import pytest
from catalog_rows import counter, spelt

from roce_exporter.catalog import check
from roce_exporter.catalog.row import GAUGE, HW_COUNTERS, Row
from roce_exporter.model import WHOLE_DEVICE, Device, DeviceReadings, Port, Reading
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.normalise.series import Value

ROWS = (
    counter(
        "roce_first_total",
        "packets",
        "First.",
        spelt("mlx5", HW_COUNTERS, "new"),
        spelt("mlx5", HW_COUNTERS, "old"),
    ),
    counter("roce_words_total", "bytes", "Words.", spelt("mlx5", HW_COUNTERS, "words", times=4)),
    counter("roce_pause_seconds_total", "seconds", "Pause.", spelt("mlx5", HW_COUNTERS, "us", per=1_000_000)),
    counter("roce_sum_total", "packets", "Sum.", spelt("mlx5", HW_COUNTERS, "part a", "part b")),
    Row(
        "roce_state",
        GAUGE,
        "bool",
        "Difference.",
        (spelt("mlx5", HW_COUNTERS, "begun", "over", bits=32, difference=True),),
    ),
    Row(
        "roce_by_priority_total",
        "counter",
        "packets",
        "By priority.",
        (spelt("mlx5", HW_COUNTERS, "rx_prio{priority}_pause"),),
        ("device", "port", "priority"),
    ),
    counter("roce_pairs_total", "packets", "Pairs.", spelt("mlx5", HW_COUNTERS, "pairs", times=2)),
    counter("roce_halves_total", "packets", "Halves.", spelt("mlx5", HW_COUNTERS, "halves", per=2)),
    counter("roce_ticks_total", "seconds", "Ticks.", spelt("mlx5", HW_COUNTERS, "ticks", times=8, per=1000)),
    counter(
        "roce_common_total",
        "packets",
        "Of every driver.",
        spelt("bnxt_re", HW_COUNTERS, "theirs"),
        spelt("*", HW_COUNTERS, "common"),
    ),
    Row(
        "roce_by_netdev_total",
        "counter",
        "packets",
        "By network device.",
        (spelt("mlx5", HW_COUNTERS, "wire"),),
        ("device", "port", "netdev"),
    ),
)
DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet"),))


def normalise(
    normaliser: Normaliser, values: dict[str, int | None], device: Device = DEVICE, port: int = 1
) -> dict[str, Value]:
    reading = Reading(HW_COUNTERS, device.name, port, tuple(values), tuple(values.values()))
    samples = normaliser.normalise(DeviceReadings(device, (reading,)))
    return {
        " ".join((series.row.name, *series.labels[1:])): value
        for series, value in zip(*samples, strict=True)
        if series.row in normaliser.index.rows
    }


@pytest.fixture
def normaliser() -> Normaliser:
    return Normaliser(check(ROWS))


def test_a_difference_is_starts_minus_ends(normaliser) -> None:
    assert normalise(normaliser, {"over": 4, "begun": 5}) == {"roce_state 1": 1}
    assert normalise(normaliser, {"over": 5, "begun": 5}) == {"roce_state 1": 0}
    assert normalise(normaliser, {"over": None, "begun": 5}) == {"roce_state 1": None}
    assert normalise(normaliser, {"begun": 5}) == {}
    assert normalise(normaliser, {"over": 2**32 - 1, "begun": 0}) == {"roce_state 1": 1}, "across a wrap"


@pytest.mark.parametrize(
    ("raw", "value", "expected"),
    [
        ("words", 230539874932483, {"roce_words_total 1": 922159499729932}),
        ("words", 2**62 + 1, {"roce_words_total 1": 4 * (2**62 + 1)}),  # beyond what a float holds
        ("us", 1_500_001, {"roce_pause_seconds_total 1": 1.500001}),
        ("pairs", 21, {"roce_pairs_total 1": 42}),
        ("halves", 21, {"roce_halves_total 1": 10.5}),
        ("ticks", 250, {"roce_ticks_total 1": 2}),
    ],
)
def test_the_factor_and_the_divisor_of_a_row_apply(normaliser, raw, value, expected) -> None:
    assert normalise(normaliser, {raw: value}) == expected


@pytest.mark.parametrize("raw", ["pairs", "halves", "ticks", "words"])
def test_a_scaled_value_that_goes_missing_and_returns(normaliser, raw) -> None:
    (first,) = normalise(normaliser, {raw: 8}).values()
    assert first
    assert [*normalise(normaliser, {raw: None}).values()] == [None]
    assert [*normalise(normaliser, {raw: 8}).values()] == [first]


def test_a_spelling_of_every_driver_counts_after_those_of_other_drivers(normaliser) -> None:
    assert normalise(normaliser, {"theirs": 1, "common": 2}) == {"roce_common_total 1": 2}


def test_a_sum_needs_all_its_parts(normaliser) -> None:
    assert normalise(normaliser, {"part b": 2, "part a": 40}) == {"roce_sum_total 1": 42}
    assert normalise(normaliser, {"part b": 2, "part a": None}) == {"roce_sum_total 1": None}
    assert normalise(normaliser, {"part b": 2}) == {}


def test_the_first_spelling_is_preferred(normaliser) -> None:
    assert normalise(normaliser, {"old": 7, "new": 5}) == {"roce_first_total 1": 5}


def test_a_chosen_spelling_is_kept_though_a_better_one_appears(normaliser) -> None:
    """A change of spelling would show 1,000,000 and then 5: a counter reset that never happened."""
    assert normalise(normaliser, {"old": 1_000_000}) == {"roce_first_total 1": 1_000_000}
    assert normalise(normaliser, {"old": 1_000_001, "new": 5}) == {"roce_first_total 1": 1_000_001}
    assert normalise(normaliser, {"new": 6}) == {}
    assert normalise(normaliser, {"old": 1_000_002, "new": 7}) == {"roce_first_total 1": 1_000_002}


def test_a_device_that_was_added_again_may_choose_again(normaliser) -> None:
    normalise(normaliser, {"old": 1_000_000})
    assert normalise(normaliser, {"old": 1, "new": 5}, replace(DEVICE, incarnation=2)) == {
        "roce_first_total 1": 5
    }


def test_a_forgotten_device_leaves_nothing_behind(normaliser) -> None:
    normalise(normaliser, {"old": 1_000_000})
    normaliser.forget(["never seen", "mlx5_0"])
    assert not normaliser.plans
    assert normalise(normaliser, {"old": 1, "new": 5}) == {"roce_first_total 1": 5}


def test_placeholders_become_labels_and_follow_the_set_of_names(normaliser) -> None:
    assert normalise(normaliser, {"rx_prio3_pause": 1, "rx_prio3_pause_duration": 2}) == {
        "roce_by_priority_total 1 3": 1
    }
    assert normalise(normaliser, {"rx_prio4_pause": 9}) == {"roce_by_priority_total 1 4": 9}


def test_values_of_the_device_belong_to_its_only_port(normaliser) -> None:
    assert normalise(normaliser, {"new": 5}, port=WHOLE_DEVICE) == {"roce_first_total 1": 5}
    two = replace(DEVICE, name="mlx5_9", ports=(Port(1, ""), Port(2, "")))
    assert normalise(normaliser, {"new": 5}, two, WHOLE_DEVICE) == {"roce_first_total all": 5}


def test_values_of_the_port_take_precedence_over_those_of_the_device(normaliser) -> None:
    readings = (
        Reading(HW_COUNTERS, "mlx5_0", WHOLE_DEVICE, ("new", "words"), (100, 100)),
        Reading(HW_COUNTERS, "mlx5_0", 1, ("new",), (1,)),
    )
    series, values = normaliser.normalise(DeviceReadings(DEVICE, readings))
    found = {one.row.name: value for one, value in zip(series, values, strict=True)}
    assert found["roce_first_total"] == 1
    assert found["roce_words_total"] == 400


def test_names_without_a_row_are_recorded(normaliser) -> None:
    normalise(normaliser, {"new": 1, "old": 1, "rx_prio3_pause": 1, "mystery": 1, "part a": 1, "vport_in": 1})
    assert normaliser.plans["mlx5_0"].unmapped == ((HW_COUNTERS, 1, "mystery"),)
