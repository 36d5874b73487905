"""What the tests share: the flag that rewrites the golden files, and which tests run in the same worker of pytest-xdist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
"""A busy machine takes its time: timings decide no test."""

collect_ignore = ["recordings"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write tests/golden/*.prom anew from the recordings; read the diff",
    )


CHEAP = frozenset({"promtool", "amtool", "materials", "_audited"})
"""Fixtures of a module or session that each worker may make."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist=loadgroup`, one worker runs all tests that share a fixture, so that it is made once.

    The group is named after the place of the fixture: a module, or the folder of a conftest.py.
    """
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if places := [definition.baseid for definition in _shared(item)]:
                item.add_marker(pytest.mark.xdist_group(min(places, key=len)))


def _shared(item: pytest.Item) -> Iterator[pytest.FixtureDef[object]]:
    for name, (*_, fixture) in item._fixtureinfo.name2fixturedefs.items():
        if (
            fixture.scope in {"module", "session"}
            and fixture.baseid.startswith("tests/")
            and name not in CHEAP
        ):
            yield fixture
