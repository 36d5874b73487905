"""A switch behind every module."""

from collections.abc import Sequence

import pytest
from switch_fakes import FakeSwitch

from roce_exporter.switches import probe as probe_module
from roce_exporter.switches.readings import Module
from roce_exporter.switches.targets import Route, SwitchTarget


@pytest.fixture
def switch(monkeypatch) -> FakeSwitch:
    fake = FakeSwitch()
    fake.gate.set()
    monkeypatch.setattr(
        probe_module, "load_module", lambda name: Module(name, "sonic", fake.query, fake.read)
    )
    return fake


@pytest.fixture(autouse=True)
def reachable(request, monkeypatch) -> None:
    """Addresses of fake switches accept connections; a test with the mark `dials` connects."""
    if "dials" not in request.keywords:

        async def accept(_: SwitchTarget, routes: Sequence[Route]) -> Route:
            return routes[0]

        monkeypatch.setattr("roce_exporter.switches.probe.dial", accept)
