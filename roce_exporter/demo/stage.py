"""The demo as a whole: everything is begun, shown until it is to end, and put away."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.demo.exporting import exporting
from roce_exporter.demo.figures import Figures, storms, take
from roce_exporter.demo.neighbours import neighbours
from roce_exporter.demo.scene import Address, Scene
from roce_exporter.demo.views import view
from roce_exporter.simulation import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from roce_exporter.audit import Auditor
    from roce_exporter.collect import Settings
    from roce_exporter.demo.exporting import Exporting
    from roce_exporter.demo.neighbours import Neighbours
    from roce_exporter.kernel import Kernel

FRAME = 0.5
"""Seconds between two scenes."""

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_demo(
    kernel: Kernel,
    settings: Settings,
    scenario: str,
    seconds: float | None = None,
    auditor: Auditor | None = None,
) -> int:
    """Show the scenario that the kernel simulates until a signal comes or so many seconds have passed; returns 0.

    Raises:
        ListenError: there is no free port on loopback.
    """
    stop = _stop_event(seconds)
    with tempfile.TemporaryDirectory(prefix="roce-exporter-demo-") as folder:
        async with (
            exporting(kernel, settings, auditor) as own,
            neighbours(own.address, Path(folder)) as others,
        ):
            with view(sys.stdout) as show:
                async for scene in scenes(scenario, own, others, stop):
                    show(scene)
    return 0


def _stop_event(seconds: float | None) -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in ENDS:
        loop.add_signal_handler(number, stop.set)
    if seconds is not None:
        loop.call_later(seconds, stop.set)
    return stop


async def scenes(
    scenario: str, own: Exporting, others: Neighbours, stop: asyncio.Event
) -> AsyncIterator[Scene]:
    """A scene every `FRAME` seconds until `stop` is set."""
    figures, began = Figures(), time.monotonic()
    addresses = (Address("exporter", f"http://{own.address}/"), *others.addresses)
    while not stop.is_set():
        observation = await own.exporter.observe(FRAME)
        now = time.monotonic()
        alerts = await others.alerts()
        yield Scene(
            scenario,
            SCENARIOS[scenario].description,
            now - began,
            addresses,
            figures.priorities(take(observation.samples, now)),
            storms(own.sampler.events()),
            alerts,
            tuple(others.notes),
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), FRAME)
