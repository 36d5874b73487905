"""Shared by all tests: the tiers, the profiles of Hypothesis, and what every test leaves as it was."""

import functools
import gc
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from worker_threads import WorkerThreads

from roce_exporter.collect.collector import Collector

# A busy machine is slow: no timing decides a test. New random examples belong to the nightly run, so that no change fails by chance.
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("random", deadline=None)
settings.load_profile("same")

TIERS = ("test", "ci", "nightly")
"""The markers `ci` and `nightly` put a test into a later tier; of two markers the later tier counts. docs/testing.md says which is for what."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="rewrite tests/golden/*.prom from the recordings; read the diff",
    )
    parser.addoption(
        "--tier", choices=TIERS, help="run the tests of this tier alone (default: those of all tiers)"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--tier") == "nightly":
        settings.load_profile("random")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test of the chosen tier are not imported: collecting all of them takes seconds in each worker."""
    tier = config.getoption("--tier")
    return True if tier and collection_path.match("test_*.py") and ignores(collection_path, tier) else None


@functools.cache
def ignores(file: Path, tier: str) -> bool:
    """Whether a file has no test of a tier, by its text."""
    text = file.read_text()
    if tier == "test":
        return bool(re.search(r"^pytestmark = .*\bmark\.(ci|nightly)\b", text, re.MULTILINE))
    return f"mark.{tier}" not in text


def tier_of(item: pytest.Item) -> str:
    """The tier of a test."""
    return next((tier for tier in reversed(TIERS) if item.get_closest_marker(tier)), "test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier is None:
        lost = [item.nodeid for item in items if ignores(item.path, tier_of(item))]
        if lost:
            raise pytest.UsageError(
                f"no tier runs {lost}: `ignores` in tests/conftest.py does not see their marker"
            )
        return
    others = [item for item in items if tier_of(item) != tier]
    items[:] = [item for item in items if tier_of(item) == tier]
    config.hook.pytest_deselected(items=others)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What collection makes stays to the end: no garbage collection goes through it, neither meanwhile nor in a test that calls `gc.collect`."""
    gc.disable()
    try:
        result = yield
    finally:
        gc.freeze()
        gc.enable()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """What a failed test left open is closed without a warning, which the next test would get: the failure is reported."""
    failed = item.session.testsfailed
    result = yield
    if item.session.testsfailed > failed:
        # The last exception has the frames of the test, and these what it opened.
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            if hasattr(sys, name):
                delattr(sys, name)
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            gc.collect()
        finally:
            sys.unraisablehook = hook
    return result


@pytest.fixture(autouse=True)
def without_columns(monkeypatch) -> None:
    """No output is wrapped because of the terminal that the tests run in.

    readline, which pytest imports, sets COLUMNS and LINES where programs see them and `os.environ` does not.
    """
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """A command that a test runs sets the level and the handlers of all logs; the next test begins with the usual ones."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def golden(request) -> Callable[[Path, str], None]:
    """Compares a text with that of a file, which `--rewrite-golden` writes."""

    def compare(place: Path, text: str) -> None:
        if request.config.getoption("--rewrite-golden"):
            place.write_text(text)
        assert text == place.read_text()

    return compare


@pytest.fixture
def worker_threads(monkeypatch) -> WorkerThreads:
    """The threads that the package starts during this test."""
    return WorkerThreads(monkeypatch)


@pytest.fixture(autouse=True)
def collectors_end(monkeypatch) -> Iterator[None]:
    """The collectors that a test has made: their threads and files would slow down all tests after it."""
    made: list[Collector] = []
    make = Collector.__init__

    def noted(self: Collector, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(Collector, "__init__", noted)
    yield
    for collector in made:
        collector.close()
