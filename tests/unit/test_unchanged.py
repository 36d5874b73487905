"""Files that have not changed are not parsed again. Every step of a history is compared with a reader that has no past."""

import errno
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from roce_exporter.host.sources import files as counter_files
from roce_exporter.host.sources.files import MOST_FAILURES, CounterFiles, ParsedFiles
from roce_exporter.host.sources.state_files import parse_mtu, port_reader
from roce_exporter.model import Device, Port, Reading

Text = bytes | OSError

EIO = OSError(errno.EIO, "bad")
NAMES = ("a", "b", "c")
HISTORY: tuple[tuple[Text, ...], ...] = (
    (b"1\n", b"2\n", b"3\n"),
    (b"1\n", b"2\n", b"3\n"),
    (b"1\n", b"5\n", b"3\n"),
    (b"1\n", b"2\n", b"3\n"),
    (b"3\n", b"1\n", b"2\n"),
    (b"3\n", b"1\n", b"20\n"),
    (b"3\n", EIO, b"20\n"),
    (b"4\n", b"1\n", b"20\n"),
    (b"4\n", b"N/A (no PMA)\n", b"20\n"),
    (b"4\n", b"N/A (no PMA)\n", b"20\n"),
    (b"4\n", b"1\n", b"garbage\n"),
    (b"4\n", b"1\n", b"garbage\n"),
    (b"4\n", b"1\n", b"20\n"),
    (b"18446744073709551615\n", b"1\n", b"20\n"),
    (b"18446744073709551614\n", b"1\n", b"20\n"),
    (b"", b"", b""),
    (b"4\n", b"1\n", b"20\n"),
    (b"4", b"1", b"20"),
    (b"04\n", b" 1\n", b"20\n"),
)


class ScriptedFiles:
    """Files whose content a test sets."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self.texts = texts

    def read(self, skip: Collection[int] = ()) -> list[bytes | OSError | None]:
        # New objects with equal content, as a kernel returns them.
        return [
            None if position in skip else bytes(bytearray(text)) if isinstance(text, bytes) else text
            for position, text in enumerate(self.texts)
        ]

    def close(self) -> None:
        pass


class ScriptedKernel:
    """A host with one directory."""

    def __init__(self, names: Sequence[str] = NAMES) -> None:
        self.names = tuple(names)
        self.texts: Sequence[Text] = ()
        self.opened: list[ScriptedFiles] = []

    def entries(self, _: str) -> tuple[str, ...]:
        return self.names

    def open_files(self, paths: Sequence[str], _: int = 0) -> ScriptedFiles:
        self.opened.append(ScriptedFiles(self.texts[: len(paths)]))
        return self.opened[-1]


def plain(reading: Reading) -> tuple[Any, ...]:
    return reading.names, tuple(reading.values), reading.losses


def counter_reader(kernel: ScriptedKernel) -> Any:
    opened = CounterFiles(kernel, 1, "x", NAMES)  # type: ignore[arg-type]  # only what is used
    return lambda now: opened.read("counters", "mlx5_0", now)


def parsed_reader(kernel: ScriptedKernel) -> Any:
    opened = ParsedFiles(kernel, {name: (name, parse_mtu) for name in NAMES})  # type: ignore[arg-type]  # the same
    return lambda now: opened.read("sensors", "mlx5_0", now)


@pytest.mark.parametrize("make", [counter_reader, parsed_reader])
def test_a_reader_with_a_past_reads_what_one_without_reads(make) -> None:
    """Each content after each other one, so that every change and every way back occurs."""
    for first, second, third in itertools.product(HISTORY, repeat=3):
        kernel = ScriptedKernel()
        kernel.texts = first
        reader = make(kernel)
        for number, texts in enumerate((first, second, third)):
            kernel.opened[0].texts = texts
            new = ScriptedKernel()
            new.texts = texts
            expected = make(new)(0.0)
            assert plain(reader(float(number))) == plain(expected), (first, second, third)


def test_only_what_changed_is_parsed(monkeypatch) -> None:
    parsed: list[Sequence[object]] = []
    parse = counter_files.parse_counters
    monkeypatch.setattr(counter_files, "parse_counters", lambda texts: parsed.append(texts) or parse(texts))
    kernel = ScriptedKernel()
    kernel.texts = HISTORY[0]
    read = counter_reader(kernel)
    first = read(0.0)
    assert read(1.0) is first
    kernel.opened[0].texts = HISTORY[2]
    assert read(2.0).values == (1, 5, 3)
    assert parsed == [[b"1\n", b"2\n", b"3\n"], [b"5\n"]]


def test_a_file_in_quarantine_has_no_old_value() -> None:
    kernel = ScriptedKernel()
    kernel.texts = HISTORY[0]
    read = counter_reader(kernel)
    read(0.0)
    kernel.opened[0].texts = (b"1\n", EIO, b"3\n")
    for number in range(MOST_FAILURES):
        assert read(float(number)).values == (1, None, 3)
    kernel.opened[0].texts = HISTORY[0]
    assert read(5.0).values == (1, None, 3), "not read for half a minute"
    assert read(100.0).values == (1, 2, 3)


STATES: tuple[tuple[Text, ...], ...] = (
    (b"4: ACTIVE\n", b"5: LinkUp\n", b"100 Gb/sec (4X EDR)\n"),
    (b"1: DOWN\n", b"3: Disabled\n", b"100 Gb/sec (4X EDR)\n"),
    (b"?\n", b"5: LinkUp\n", b"100 Gb/sec (4X EDR)\n"),
    (EIO, b"5: LinkUp\n", b"200 Gb/sec (4X HDR)\n"),
    (b"4: ACTIVE\n", b"5: LinkUp\n", b""),
)


def test_a_port_that_changes_and_changes_back_is_shown() -> None:
    device = Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet"), Port(2, "Ethernet")))
    for history in itertools.product(STATES, repeat=3):
        kernel = ScriptedKernel(("state", "phys_state", "rate"))
        kernel.texts = history[0]
        state = port_reader(kernel, device)  # type: ignore[arg-type]  # only what is used
        state.read(0.0)
        for texts in history:
            kernel.opened[0].texts = texts
            new = ScriptedKernel(kernel.names)
            new.texts = texts
            expected = port_reader(new, device).read(0.0)[0]  # type: ignore[arg-type]  # the same
            first, second = state.read(0.0)
            assert plain(first) == plain(expected)
            assert second.port == 2
            assert plain(second)[1] != plain(first)[1] or texts == history[0]
