"""What the tests share: the flag that rewrites the golden files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

collect_ignore = ["recordings"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write tests/golden/*.prom anew from the recordings; read the diff",
    )
