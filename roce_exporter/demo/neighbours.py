"""Prometheus and Alertmanager next to the exporter, as far as they are installed, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

from roce_exporter.demo import monitoring
from roce_exporter.demo.asking import fetch_alerts
from roce_exporter.demo.children import Child, obituary, running
from roce_exporter.demo.scene import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from roce_exporter.demo.scene import Alert

ANSWER = 1.0
"""Seconds that Prometheus has to answer."""


@dataclass(slots=True)
class Neighbours:
    """What runs next to the exporter. `notes` only grows."""

    addresses: list[Address] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    alive: list[Child] = field(default_factory=list)
    prometheus: str | None = None
    """Its address while it runs."""
    _alerts: tuple[Alert, ...] = ()

    async def alerts(self) -> tuple[Alert, ...] | None:
        """The alerts now, or those of the last answer; None where there is no Prometheus."""
        self._mourn()
        if self.prometheus is None:
            return None
        with contextlib.suppress(OSError):  # it begins, or is busy: ask again the next time
            async with asyncio.timeout(ANSWER):
                self._alerts = await fetch_alerts(self.prometheus)
        return self._alerts

    def _mourn(self) -> None:
        for child in [child for child in self.alive if not child.alive]:
            self.alive.remove(child)
            self.notes.append(obituary(child))
            if child.name == "prometheus":
                self.prometheus = None


@contextlib.asynccontextmanager
async def neighbours(target: str, folder: Path) -> AsyncIterator[Neighbours]:
    """Begins in `folder` what is on the PATH, to watch `target`; at the end of the block it is gone."""
    found = Neighbours()
    async with contextlib.AsyncExitStack() as stack:
        prometheus = monitoring.find_program(monitoring.PROMETHEUS)
        if prometheus is None:
            found.notes.append("prometheus is not on the PATH: no alerts here until it is installed")
        else:
            alertmanager = await _begin_alertmanager(found, stack, folder)
            address = monitoring.free_address()
            _write_prometheus_config(found, folder, target, alertmanager)
            command = monitoring.prometheus_command(prometheus, folder, address)
            if await _begin(found, stack, "prometheus", command, folder):
                found.prometheus = address
                found.addresses.append(Address("prometheus", f"http://{address}/alerts"))
        yield found


async def _begin_alertmanager(
    found: Neighbours, stack: contextlib.AsyncExitStack, folder: Path
) -> str | None:
    program = monitoring.find_program(monitoring.ALERTMANAGER)
    if program is None:
        found.notes.append("alertmanager is not on the PATH: alerts are not grouped or muted")
        return None
    place = monitoring.find_file(monitoring.ROUTES, monitoring.alert_folders())
    config = monitoring.alertmanager_config(place.read_text() if place else None)
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
    address = monitoring.free_address()
    command = monitoring.alertmanager_command(program, folder, address)
    if not await _begin(found, stack, "alertmanager", command, folder):
        return None
    found.addresses.append(Address("alertmanager", f"http://{address}/"))
    return address


def _write_prometheus_config(found: Neighbours, folder: Path, target: str, alertmanager: str | None) -> None:
    rules = monitoring.find_file(monitoring.RULES, monitoring.alert_folders())
    if rules is None:
        found.notes.append(f"{monitoring.RULES} is not there: prometheus runs without our alerts")
    else:
        (folder / monitoring.RULES).write_text(rules.read_text())
    config = monitoring.prometheus_config(target, monitoring.RULES if rules else None, alertmanager)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))


async def _begin(
    found: Neighbours,
    stack: contextlib.AsyncExitStack,
    name: str,
    command: Sequence[str],
    folder: Path,
) -> bool:
    try:
        child = await stack.enter_async_context(running(name, command, folder / f"{name}.log"))
    except OSError as error:
        found.notes.append(f"{command[0]} cannot be begun: {error.strerror}; the rest goes on")
        return False
    found.alive.append(child)
    return True
