"""One history for all tests: made once, by the real exporter, promtool and Prometheus."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from dashboard_history import SECONDS
from dashboard_past import Prometheus
from past import make, wanted

if TYPE_CHECKING:
    from collections.abc import Iterator


def _need(program: str) -> None:
    if shutil.which(program) is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{program} is not installed")


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus with the last `SECONDS` of every host, and the results of the rules."""
    _need("promtool")
    _need("prometheus")
    folder = tmp_path_factory.mktemp("past")
    prometheus = Prometheus(folder / "data")
    make(prometheus, SECONDS, wanted())
    prometheus.start()
    yield prometheus
    prometheus.stop()
