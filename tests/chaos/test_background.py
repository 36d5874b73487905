"""A fault of the exporter in the background: of a part it costs what the part shows, and is logged once and counted.

Of the server or the first collection it ends the daemon: with its traceback, a status on which systemd restarts it, and no further notification.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from chaos_daemon import Daemon, key
from faulty_daemon import ENDING, LASTING
from servers import FREE, listening, process
from waiting import HUNG_SECONDS, wait_until

from roce_exporter.collect.rounds import background

pytestmark = pytest.mark.ci


PROGRAM = str(Path(__file__).with_name("faulty_daemon.py"))


@pytest.mark.parametrize("fault", sorted(LASTING))
def test_a_fault_of_a_part_costs_no_scrape_and_is_logged_once_and_counted(tmp_path, fault) -> None:
    flags = ("--host.simulate=quiet", "--metrics.set=full", f"--web.listen-address={FREE}")
    source = "sampler" if fault == "fast_loop" else fault
    errors = key("roce_exporter_read_errors_total", source=source)
    with process([sys.executable, PROGRAM, "serve", *flags], tmp_path / "log", {"FAULT": fault}) as running:
        address = wait_until(lambda: "ready: " in (tmp_path / "log").read_text() and listening(running.pid))
        daemon = Daemon(running, address, tmp_path / "log")
        seen = wait_until(lambda: (now := daemon.scrape()).get(errors, 0) >= 3 and now)
        assert seen[key("roce_exporter_source_up", source=source)] == 0
        assert any(name == "roce_port_receive_packets_total" for name, _ in seen)
        assert daemon.stop() == 0
    assert daemon.log.count("Traceback") == 1 + (fault == "fast_loop"), "with that of the thread"
    assert daemon.log.count(f'fault in source {source}"') == 1


@pytest.mark.parametrize("fault", sorted(ENDING))
def test_a_fault_without_which_nothing_is_served_ends_the_process(tmp_path, fault) -> None:
    command = [sys.executable, PROGRAM, "serve", "--host.simulate=quiet", f"--web.listen-address={FREE}"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        environment = {"FAULT": fault, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
        with process(command, tmp_path / "log", environment) as running:
            if fault == "accept":
                knock(running)
            assert running.wait(HUNG_SECONDS) == 1
        systemd.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while systemd.recv(100):
                pass
        with pytest.raises(BlockingIOError):
            systemd.recv(100)
    log = (tmp_path / "log").read_text()
    assert "Traceback" in log
    assert log.rstrip().endswith("RuntimeError: a fault put in by the test")
    assert "never retrieved" not in log


def knock(running: subprocess.Popen[bytes]) -> None:
    """Connect until the daemon has ended."""
    while running.poll() is None:
        host, _, port = listening(running.pid).rpartition(":")
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, int(port or 0)), timeout=1) as client,
        ):
            client.recv(1)


async def test_a_failed_task_cancels_the_block_and_the_other_tasks() -> None:
    ended: list[str] = []

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("lasting")

    async def failing() -> None:
        await asyncio.sleep(0)
        raise LookupError("the fault")

    async def block() -> None:
        async with background(lasting(), failing()):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("block")

    with pytest.raises(LookupError, match="the fault"):
        await block()
    assert sorted(ended) == ["block", "lasting"]


async def test_at_the_end_of_the_block_the_tasks_are_cancelled() -> None:
    began = asyncio.Event()

    async def lasting() -> None:
        began.set()
        await asyncio.Event().wait()

    async def short() -> None:
        return

    tasks = asyncio.all_tasks()
    async with background(lasting(), short()):
        await began.wait()
    assert asyncio.all_tasks() == tasks


async def test_a_fault_of_the_block_itself_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with background(asyncio.sleep(60)):
            raise KeyError("the block's own")


async def test_a_task_that_loses_a_cancellation_is_cancelled_again(monkeypatch) -> None:
    monkeypatch.setattr("roce_exporter.collect.rounds.AGAIN_SECONDS", 0.01)
    began, lost = asyncio.Event(), asyncio.Event()

    async def careless() -> None:
        began.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        lost.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(HUNG_SECONDS):
        async with background(careless()):
            await began.wait()
        assert lost.is_set()
