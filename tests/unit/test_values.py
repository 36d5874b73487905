"""Text of the kernel becomes a number, or a reason why it is not valid; no bytes lead to anything else."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.host.sources.files import FIRST_SECONDS, LONGEST_SECONDS, Quarantine
from roce_exporter.host.sources.state_files import parse_mtu, parse_rate, parse_state
from roce_exporter.model.values import check_counter, check_counters, make_reading, parse_counter

LARGEST = 2**64 - 2


@given(st.integers(0, LARGEST))
def test_every_64_bit_number_is_read(number) -> None:
    assert parse_counter(b"%d\n" % number) == number
    assert check_counter(number) == number


@given(
    st.lists(
        st.one_of(st.integers(0, LARGEST + 1), st.sampled_from([0, 2**56 - 1, 2**64 - 256, LARGEST + 1]))
    )
)
def test_a_view_of_the_kernels_numbers_is_checked_as_a_tuple_of_them(numbers) -> None:
    view = memoryview(struct.pack(f"={len(numbers)}Q", *numbers)).cast("Q")
    names = tuple(map(str, range(len(numbers))))
    of_view = make_reading("ethtool", "mlx5_0", 1, names, check_counters(view))
    of_tuple = make_reading("ethtool", "mlx5_0", 1, names, check_counters(tuple(numbers)))
    assert tuple(of_view.values) == tuple(of_tuple.values)
    assert of_view.losses == of_tuple.losses


def test_a_view_without_a_missing_value_is_not_copied() -> None:
    view = memoryview(struct.pack("=2Q", 7, LARGEST)).cast("Q")
    assert make_reading("ethtool", "mlx5_0", 1, ("a", "b"), check_counters(view)).values is view


@given(st.binary(max_size=80))
def test_text_that_is_not_a_number_gives_a_reason(text) -> None:
    found = parse_counter(text)
    if isinstance(found, int):
        assert int(text) == found
        assert 0 <= found <= LARGEST
        assert text.strip().isdigit()
    else:
        assert found in {"not_available", "empty", "garbage", "too_long", "out_of_range"}


@given(st.binary(max_size=80))
def test_no_bytes_break_the_port_parsers(text) -> None:
    for parse in (parse_state, parse_rate, parse_mtu):
        found = parse(text)
        assert found in {"empty", "garbage"} if isinstance(found, str) else found >= 0


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (parse_counter, b"0\n", 0),
        (parse_counter, b"  42  \n", 42),
        (parse_counter, b"18446744073709551615\n", "not_available"),
        (parse_counter, b"18446744073709551616\n", "out_of_range"),
        (parse_counter, b"N/A (no PMA)\n", "not_available"),
        (parse_counter, b"-1\n", "garbage"),
        (parse_counter, b"+1\n", "garbage"),
        (parse_counter, b"1_0\n", "garbage"),
        (parse_counter, b"0x1f\n", "garbage"),
        (parse_counter, b"1.5\n", "garbage"),
        (parse_counter, "٣\n".encode(), "garbage"),
        (parse_counter, b"\n", "empty"),
        (parse_counter, b"", "empty"),
        (parse_counter, b"1" * 64, "too_long"),
        (parse_rate, b"100 Gb/sec (4X EDR)\n", 12_500_000_000),
        (parse_rate, b"2.5 Gb/sec (1X SDR)\n", 312_500_000),
        (parse_rate, b"800 Gb/sec (4X XDR)\n", 100_000_000_000),
        (parse_rate, b"10 Gb/sec (1X FDR10)\n", 1_250_000_000),
        (parse_rate, b"\n", "empty"),
        (parse_rate, b"fast\n", "garbage"),
        (parse_rate, b"9999999999 Gb/sec\n", "garbage"),
        (parse_state, b"4: ACTIVE\n", 4),
        (parse_state, b"1: DOWN\n", 1),
        (parse_state, b"0: NOP\n", 0),
        (parse_state, b"ACTIVE\n", "garbage"),
        (parse_state, b"444: X", "garbage"),
        (parse_state, b"", "empty"),
    ],
)
def test_what_a_file_has_is_a_number_or_a_reason(read, value, expected) -> None:
    assert read(value) == expected


def test_quarantine_begins_with_the_third_failure_and_grows_to_an_hour() -> None:
    quarantine, now = Quarantine(), 0.0
    for _ in range(2):
        quarantine.failed(7, "EIO", now)
        assert 7 not in quarantine.skipped(now)
        assert quarantine
    waits = []
    for _ in range(12):
        quarantine.failed(7, "EIO", now)
        end = now
        while 7 in quarantine.skipped(end):
            end += 1.0
        waits.append(end - now)
        now = end
    assert waits[:3] == [FIRST_SECONDS, FIRST_SECONDS * 2, FIRST_SECONDS * 4]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_SECONDS
    quarantine.recovered(7)
    assert len(quarantine) == 0
    assert not quarantine


def test_absent_values_are_never_quarantined() -> None:
    quarantine = Quarantine()
    for _ in range(10):
        quarantine.failed(0, "not_available", 0.0)
    assert not quarantine


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_a_readable_file_is_never_quarantined(events) -> None:
    quarantine = Quarantine()
    for now, (position, answers) in enumerate(events):
        if answers:
            quarantine.recovered(position)
            assert position not in quarantine.skipped(now)
        else:
            quarantine.failed(position, "EIO", float(now))
        assert len(quarantine) >= len(quarantine.skipped(now))
