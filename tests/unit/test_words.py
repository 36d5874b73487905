"""Numbers, durations, lists and tables as text."""

import fcntl
import os
import pty
import struct
import termios

import pytest

from roce_exporter import words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (words.number(0), "0"),
        (words.number(0.5), "0.5"),
        (words.number(3.14159), "3.1"),
        (words.number(1234567.8), "1,234,568"),
        (words.counted(1, "packet"), "1 packet"),
        (words.counted(0, "packet"), "0 packets"),
        (words.counted(1200, "switch", "switches"), "1,200 switches"),
        (words.share(0.5), "50 %"),
        (words.share(0.001234), "0.123 %"),
        (words.share(0.9999), "more than 99.9 %"),
        (words.share(1), "100 %"),
        (words.share(1.5), "150 %"),
        (words.duration(0.25), "0.25 s"),
        (words.duration(1), "1 s"),
        (words.duration(14.6), "15 s"),
        (words.duration(119), "119 s"),
        (words.duration(120), "2 min"),
        (words.duration(7200), "2 h"),
        (words.duration(3 * 86400), "3 d"),
        (words.few([]), ""),
        (words.few("abcd"), "a, b, c, d"),
        (words.few("abcdef"), "a, b, c, d and 2 more"),
        (words.few(["EIO", "late", "late"], 1), "EIO and 2 more"),
    ],
)
def test_text_for_people(text, shown) -> None:
    assert text == shown


def test_times_of_prometheus_and_go_in_seconds() -> None:
    read = {"1h30m": 5400, "0.5s": 0.5, "250ms": 0.25, "2us": 2e-6, "3µs": 3e-6, "4ns": 4e-9, "1w2d": 777_600}
    assert {text: words.seconds_of(text) for text in read} == pytest.approx(read)
    assert {words.seconds_of(text) for text in ("", "10", "s", "1.s", "-1s", "1 s", "1s ", "1h30")} == {None}


ROWS = [("name", "packets", "why"), ("mlx5_0", "1,200", "the peer posts too few receive requests")]


def test_columns_are_aligned() -> None:
    assert words.table(ROWS, right={1}, indent="  ") == [
        "  name    packets  why",
        "  mlx5_0    1,200  the peer posts too few receive requests",
    ]


def test_cells_are_wrapped_to_the_width() -> None:
    assert words.table(ROWS, right={1}, width=37) == [
        "name    packets  why",
        "mlx5_0    1,200  the peer posts too\n                 few receive requests",
    ]


def test_numbers_and_narrow_columns_are_not_wrapped() -> None:
    assert words.table([("1234567890", "word")], right={0}, width=3) == ["1234567890  word"]


def test_a_terminal_has_a_width_and_a_file_has_that_of_columns(monkeypatch) -> None:
    ours, theirs = pty.openpty()
    with (
        os.fdopen(ours, "rb", buffering=0),
        os.fdopen(theirs, "w") as terminal,
        open(os.devnull, "w") as file,
    ):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 97, 0, 0))
        assert (words.terminal_width(terminal), words.terminal_width(file)) == (97, None)
        for value, width in (("80", 80), ("0", None), ("x", None)):
            monkeypatch.setenv("COLUMNS", value)
            assert words.terminal_width(file) == width


def test_one_thing_is_named_in_the_singular() -> None:
    assert words.some(1, "received packets were out of sequence") == "1 received packet was out of sequence"
    assert words.some(1, "recoveries of the PCIe link") == "1 recovery of the PCIe link"
    assert words.some(1, "losses of the link") == "1 loss of the link"
    assert words.some(1, "remote access errors") == "1 remote access error"
    assert words.some(1, "switches were silent") == "1 switch was silent"
    assert words.some(1, "times its management bus was stuck") == "1 time its management bus was stuck"
    assert words.some(1200, "RoCE packets that are cut off") == "1,200 RoCE packets that are cut off"
    assert words.duration(0.000003) == "0.003 ms"
