"""What the tests share: the flag that rewrites the golden files, and a host observed with a clock that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from roce_exporter.exporter import Observation
    from roce_exporter.kernel import Kernel

    Observe = Callable[..., Awaitable[tuple[Exporter, list[Observation]]]]

collect_ignore = ["recordings"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write tests/golden/*.prom anew from the recordings; read the diff",
    )


@pytest.fixture
def observe() -> Observe:
    return _observe


async def _observe(kernel: Kernel, times: int = 1) -> tuple[Exporter, list[Observation]]:
    """So many collections of one kernel, by a clock that stands still: whatever is timed lasts 0 s."""
    collector = Collector(kernel, Settings(), clock=lambda: 0.0)
    exporter = Exporter(collector)
    try:
        return exporter, [await exporter.observe(5.0) for _ in range(times)]
    finally:
        collector.close()
        kernel.close()
