"""The demo as a whole: start the exporter and its servers, show scenes until the end, stop everything."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.assemble import assemble
from roce_exporter.background import background
from roce_exporter.demo.figures import SURVEY_SECONDS, WANTED, Moments, priorities, shown_owners, storm_events
from roce_exporter.demo.scene import Address, Scene
from roce_exporter.demo.servers import LOOPBACK, SwitchJob, monitoring_servers
from roce_exporter.demo.switch_end import switch_end
from roce_exporter.demo.views import view
from roce_exporter.fastloop import Sampler
from roce_exporter.host.simulated import SCENARIOS
from roce_exporter.owners import SurveyLimits
from roce_exporter.view.history import timed_samples
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from roce_exporter.assemble import Parts
    from roce_exporter.demo.servers import MonitoringServers
    from roce_exporter.demo.switch_end import SwitchEnd
    from roce_exporter.exporter import Exporter
    from roce_exporter.host.simulated.kernel import SimulatedKernel
    from roce_exporter.host.simulated.simulated_switch import SimulatedSwitch

SCENE_SECONDS = 0.5
"""Between two scenes."""

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_demo(
    kernel: SimulatedKernel,
    leaf: SimulatedSwitch,
    parts: Parts,
    scenario: str,
    *,
    seconds: float | None = None,
) -> int:
    """Show the scenario that the kernel and the switch simulate, for `seconds` or until a signal; returns 0.

    Raises:
        ListenError: no port on loopback is free.
    """
    stop = _stop_event(seconds)
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="roce-exporter-demo-") as folder:
        async with (
            served_exporter(kernel, parts) as served,
            switch_end(leaf, Path(folder), notes) as switch,
            monitoring_servers(
                served.address,
                Path(folder),
                notes,
                SwitchJob(switch.name, switch.address) if switch else None,
            ) as servers,
        ):
            with view(sys.stdout) as show:
                async for scene in scenes(scenario, served, switch, servers, stop):
                    show(scene)
    return 0


def _stop_event(seconds: float | None) -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in END_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    if seconds is not None:
        loop.call_later(seconds, stop.set)
    return stop


class ServedExporter(NamedTuple):
    """An exporter with its web server."""

    address: str
    exporter: Exporter


@contextlib.asynccontextmanager
async def served_exporter(kernel: SimulatedKernel, parts: Parts) -> AsyncIterator[ServedExporter]:
    """An exporter of this host on a free port of loopback; closed at the end of the block."""
    exporter = assemble(kernel, replace(parts, owners=SurveyLimits(interval=SURVEY_SECONDS)))
    endpoints = Application((HostPages(exporter),))
    server = Server(endpoints, None)
    (address,) = await server.start([f"{LOOPBACK}:0"])
    try:
        async with background(server.accept(), *exporter.work()):
            await exporter.observe()
            endpoints.ready = True
            yield ServedExporter(address, exporter)
    finally:
        await server.close()
        exporter.close()


async def scenes(
    scenario: str,
    served: ServedExporter,
    switch: SwitchEnd | None,
    servers: MonitoringServers,
    stop: asyncio.Event,
) -> AsyncIterator[Scene]:
    """A scene every `SCENE_SECONDS` until `stop` is set."""
    sampler = served.exporter.part(Sampler)
    moments, began = Moments(), time.monotonic()
    pages = (switch.page,) if switch else ()
    addresses = (Address("exporter", f"http://{served.address}/"), *pages, *servers.addresses)
    while not stop.is_set():
        observation = await served.exporter.observe(SCENE_SECONDS)
        now = time.monotonic()
        moments.add(timed_samples(observation.samples, now, WANTED))
        switch_view = await switch.view() if switch else None
        alerts = await servers.alerts()
        yield Scene(
            scenario,
            SCENARIOS[scenario].description,
            now - began,
            addresses,
            priorities(moments),
            storm_events(sampler.events() if sampler else []),
            alerts,
            tuple(servers.notes),
            switch_view,
            shown_owners(moments),
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), SCENE_SECONDS)
