"""A switch behind every module."""

from __future__ import annotations

import pytest
from switch_fakes import FakeSwitch

from roce_exporter.switches import probe as probe_module
from roce_exporter.switches.readings import Module


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> FakeSwitch:
    fake = FakeSwitch()
    fake.gate.set()
    monkeypatch.setattr(
        probe_module, "load_module", lambda name: Module(name, "sonic", fake.query, fake.read)
    )
    return fake
