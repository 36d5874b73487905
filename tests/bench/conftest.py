"""The tests measure with the parts of the benchmarks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

WATCHERS: list[list[object]] = []


def _note_opens(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        for watcher in WATCHERS:
            watcher.append(arguments[0])


@pytest.fixture(scope="session")
def _audited() -> None:
    # Only once: an audit hook cannot be removed.
    sys.addaudithook(_note_opens)


@pytest.fixture
def opened(_audited) -> Iterator[list[object]]:
    """The files opened since the test began, by open() or os.open()."""
    watcher: list[object] = []
    WATCHERS.append(watcher)
    yield watcher
    WATCHERS.remove(watcher)
