"""Numbers and words in the replies of switches: values, or the reason why they are none."""

import pytest

from roce_exporter.switches.readings import LABEL_CHARACTERS, Unreadable, label_text
from roce_exporter.switches.reply_values import is_absent, number, switched

GARBAGE = Unreadable("garbage")
UNKNOWN = Unreadable("unknown_word")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        (" 42 ", 42),
        (7, 7),
        (True, 1),
        ("18446744073709551614", 2**64 - 2),
        ("1,234,567", 1234567),
        ("18446744073709551615", Unreadable("not_available")),
        ("18446744073709551616", Unreadable("out_of_range")),
        (2**64, Unreadable("out_of_range")),
        (-1, Unreadable("out_of_range")),
        ("-1", GARBAGE),
        ("1.5", GARBAGE),
        (1.5, GARBAGE),
        ("NaN", GARBAGE),
        ("1e3", GARBAGE),
        ("1,23", GARBAGE),
        ("٣", GARBAGE),
        ("1" * 5000, GARBAGE),
        ("", GARBAGE),
        ([], GARBAGE),
        ({}, GARBAGE),
        (None, GARBAGE),
    ],
)
def test_only_unsigned_64_bit_numbers_are_numbers(value, expected) -> None:
    found = number(value)
    assert found == expected
    assert bool(found) is bool(isinstance(found, int) and found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Enabled", 1),
        ("[Disabled]", 0),
        ("Not Enabled", 0),
        ("YES", 1),
        ("No", 0),
        (True, 1),
        ("perhaps", UNKNOWN),
        (1, UNKNOWN),
    ],
)
def test_on_and_off_in_the_words_of_switches(text, expected) -> None:
    assert switched(text) == expected


def test_what_switches_write_for_no_value() -> None:
    assert all(map(is_absent, ("", "-", "N/A", None)))
    assert not any(map(is_absent, ("0", 0, "x")))


def test_a_label_is_one_printable_line_of_limited_length() -> None:
    assert label_text("gpu\x1b[31m-001\n\tx\x00") == "gpu [31m-001 x"
    assert label_text("x" * 10**6) == "x" * LABEL_CHARACTERS
    assert label_text(7) == "7"
