"""Shared by all tests: the flag that rewrites the golden files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

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
