"""Shared by all tests: the flag that rewrites the golden files, the log level that each test begins with, and the end of collectors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from roce_exporter.collect.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
"""A busy machine is slow: no timing decides a test."""

collect_ignore = ["recordings"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="rewrite tests/golden/*.prom from the recordings; read the diff",
    )


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """A command that a test runs sets the level of all logs; the next test begins with the usual one."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


@pytest.fixture(autouse=True)
def collectors_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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
