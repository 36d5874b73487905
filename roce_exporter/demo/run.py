"""The demo as a whole: start the exporter and its servers, show scenes until the end, stop everything."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import termios
import time
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.assemble import Parts, assemble
from roce_exporter.demo import figures
from roce_exporter.demo.probed_fabric import probed_fabric
from roce_exporter.demo.screen import view
from roce_exporter.demo.servers import MonitoringServers, ScrapeTarget, monitoring_servers, served
from roce_exporter.demo.switch_end import SwitchEnd, switch_end
from roce_exporter.fastloop import Sampler
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.owners import SurveyLimits
from roce_exporter.view.host_view import timed_samples
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

if TYPE_CHECKING:
    from roce_exporter.exporter import Exporter
    from roce_exporter.host.simulated.kernel import SimulatedKernel
    from roce_exporter.host.simulated.simulated_switch import SimulatedSwitch

SCENE_SECONDS = 0.5  # between two scenes
STEPS = {b"n": 1, b"p": -1}  # from one scenario to another, round and round
QUIT = (b"q", b"")
"""The second is the end of the terminal."""
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_demo(
    kernel: SimulatedKernel,
    leaf: SimulatedSwitch,
    parts: Parts,
    scenario: str,
    *,
    starting: contextlib.AbstractAsyncContextManager[None],
    end: float | None = None,
) -> str:
    """Show the scenario that the kernel and the switch simulate, until `end` (the loop's time), a signal or a key.

    `starting` is entered while the servers start.

    Returns:
        The scenario that a key asked for; empty where the demo is over.

    Raises:
        ListenError: no port on loopback is free.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in END_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    if end is not None:
        loop.call_at(end, stop.set)
    wanted = ""

    def pressed(key: bytes) -> None:
        nonlocal wanted
        if step := STEPS.get(key):
            names = list(SCENARIOS)
            wanted = names[(names.index(scenario) + step) % len(names)]
        if wanted or key in QUIT:
            stop.set()

    notes: list[str] = []
    with keys(pressed), tempfile.TemporaryDirectory(prefix="roce-exporter-demo-") as name:
        folder = Path(name)
        async with contextlib.AsyncExitStack() as stack:
            enter = stack.enter_async_context
            async with starting:
                address, exporter = await enter(served_exporter(kernel, parts))
                probers = await enter(probed_fabric()) if SCENARIOS[scenario].probed else ()
                switch = await enter(switch_end(leaf, folder, notes))
                target = ScrapeTarget(switch.name, switch.address) if switch else None
                servers = await enter(monitoring_servers(address, folder, notes, target, probers))
            with view(sys.stdout) as show:
                async for scene in scenes(scenario, exporter, switch, servers, address=address, stop=stop):
                    show(scene)
    return wanted


@contextlib.contextmanager
def keys(pressed: Callable[[bytes], None]) -> Iterator[None]:
    """Call `pressed` for each key within the block, where a terminal is there; leaves the terminal as it was."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)

    def read() -> None:
        try:
            pressed(os.read(terminal, 1))
        except OSError:  # the terminal is gone
            pressed(b"")

    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextlib.asynccontextmanager
async def served_exporter(kernel: SimulatedKernel, parts: Parts) -> AsyncIterator[tuple[str, Exporter]]:
    """HOST:PORT of the web server, and the exporter of this host behind it; both closed at the end of the block."""
    exporter = assemble(kernel, replace(parts, owners=SurveyLimits(interval=figures.SURVEY_SECONDS)))
    endpoints = Application((HostPages(exporter),))
    with contextlib.closing(exporter):
        async with served(endpoints, *exporter.work()) as address:
            await exporter.observe()
            endpoints.ready = True
            yield address, exporter


async def scenes(
    scenario: str,
    exporter: Exporter,
    switch: SwitchEnd | None,
    servers: MonitoringServers,
    *,
    address: str,
    stop: asyncio.Event,
) -> AsyncIterator[figures.Scene]:
    """A scene every `SCENE_SECONDS` until `stop` is set."""
    sampler = exporter.part(Sampler)
    moments, began = figures.Moments(), time.monotonic()
    pages = (switch.page,) if switch else ()
    addresses = (figures.Address("exporter", f"http://{address}/"), *pages, *servers.addresses)
    while not stop.is_set():
        observation = await exporter.observe(SCENE_SECONDS)
        now = time.monotonic()
        moments.add(timed_samples(observation.samples, now, figures.WANTED))
        switch_view = await switch.view() if switch else None
        alerts = await servers.alerts()
        yield figures.Scene(
            scenario,
            SCENARIOS[scenario].description,
            now - began,
            addresses,
            figures.priorities(moments),
            figures.storm_events(sampler.events() if sampler else []),
            alerts,
            tuple(servers.notes),
            switch_view,
            figures.shown_owners(moments),
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), SCENE_SECONDS)
