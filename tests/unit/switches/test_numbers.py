"""Numbers in the replies of switches."""

from __future__ import annotations

import pytest

from roce_exporter.switches.readings import LABEL_CHARACTERS, label_text
from roce_exporter.switches.reply_values import is_absent, number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        (" 42 ", 42),
        (7, 7),
        (True, 1),
        ("18446744073709551614", 2**64 - 2),
        ("1,234,567", 1234567),
        ("18446744073709551615", None),
        ("18446744073709551616", None),
        (2**64, None),
        (-1, None),
        ("-1", None),
        ("1.5", None),
        (1.5, None),
        ("NaN", None),
        ("1e3", None),
        ("1,23", None),
        ("٣", None),
        ("1" * 5000, None),
        ("", None),
        ([], None),
        ({}, None),
        (None, None),
    ],
)
def test_only_unsigned_64_bit_numbers_are_numbers(value: object, expected: int | None) -> None:
    assert number(value) == expected


def test_what_switches_write_for_no_value() -> None:
    assert all(map(is_absent, ("", "-", "N/A", None)))
    assert not any(map(is_absent, ("0", 0, "x")))


def test_a_label_is_one_printable_line_of_limited_length() -> None:
    assert label_text("gpu\x1b[31m-001\n\tx\x00") == "gpu [31m-001 x"
    assert label_text("x" * 10**6) == "x" * LABEL_CHARACTERS
    assert label_text(7) == "7"
