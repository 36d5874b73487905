"""A real Alertmanager with our configuration, whose receivers are web hooks of the tests."""

from collections.abc import Iterator

import pytest
import servers
from alert_hooks import Alertmanager, Hooks, hooked
from tools import need


@pytest.fixture(scope="session")
def promtool() -> str:
    return need("promtool")


@pytest.fixture(scope="session")
def amtool() -> str:
    return need("amtool")


@pytest.fixture(scope="session")
def alertmanager(tmp_path_factory) -> Iterator[Alertmanager]:
    hooks = Hooks()
    try:
        with servers.alertmanager(tmp_path_factory.mktemp("alertmanager"), hooked(hooks)) as running:
            yield Alertmanager(running.url, hooks)
    finally:
        hooks.close()
