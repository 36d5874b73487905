"""One page of faults: what each costs while it lasts, and how many scrapes later everything is as before.

`python tests/chaos/test_chaos_page.py FOLDER` prints the table; the test compares it with the one in README.md. The clock of the host
moves only here: by 15 s from scrape to scrape, in which the fast loop polls, and by the time after which a read that hangs is given up.
Descriptors and threads are counted after each fault, memory once after all.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import re
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest
from switch_fakes import FakeSwitch, leaf, prober
from test_soak_tree import LEAST_THREADS, PASSING, Host, open_files
from waiting import HUNG_SECONDS, until

from roce_exporter.collect.collector import Settings
from roce_exporter.exposition import Format
from roce_exporter.fastloop import sampler
from roce_exporter.net import NetError
from roce_exporter.switches import probe as probe_module
from roce_exporter.switches.readings import Module
from roce_exporter.view.host_view import HostClock
from roce_exporter.web import ClientLimits, Request, Response, Server
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages
from roce_exporter.web.web_config_file import WebConfigFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from roce_exporter.collect.batch import Batch

    Change = tuple[Callable[[Host], object], Callable[[Host], object]]

pytestmark = pytest.mark.ci

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- faults: written by test_chaos_page.py -->\n", "<!-- end -->"
HEAD = "| fault | where | lost while it lasts | back after | left open |\n| --- | --- | --- | --- | --- |\n"
CLOCK = HostClock()
SETTINGS = Settings(timeout=2.0, overtake=0.25, refresh=60.0)
INTERVAL = 15.0
MOST_SCRAPES = 8
"""Two minutes: a file that kept failing is left alone for as long, and settings are read once a minute."""
MEGABYTE = 1 << 20
COUNTER = "mlx5_1/ports/1/counters/symbol_error"
HARDWARE = "mlx5_1/ports/1/hw_counters/np_cnp_sent"
STATE = "mlx5_1/ports/1/state"


class Fault(NamedTuple):
    """A fault of the host: what begins it, and what ends it."""

    name: str
    begin: Callable[[Host], object]
    end: Callable[[Host], object]
    where: str = "host"


def failing(place: str, error: Exception) -> Change:
    return lambda host: host.kernel.broken.update({place: error}), lambda host: host.kernel.broken.pop(place)


def hanging(place: str) -> Change:
    return (
        lambda host: host.kernel.hung.update({place: threading.Event()}),
        lambda host: host.kernel.hung.pop(place).set(),
    )


def content(place: str, text: str) -> Change:
    """A file of the devices' folder with another text."""
    before: list[str] = []

    def begin(host: Host) -> None:
        path = host.tree.infiniband / place
        before.append(path.read_text())
        path.write_text(text)

    return begin, lambda host: (host.tree.infiniband / place).write_text(before.pop())


EIO, GONE = OSError(errno.EIO, "Input/output error"), OSError(errno.ENODEV, "No such device")
# fmt: off - one fault a line
FAULTS = (
    Fault("a counter returns EIO", *failing(COUNTER, EIO)),
    Fault("a counter returns EINVAL", *failing(COUNTER, OSError(errno.EINVAL, "Invalid argument"))),
    Fault(
        "a hardware counter returns EACCES",
        *failing(HARDWARE, PermissionError(errno.EACCES, "Permission denied")),
    ),
    Fault("a counter returns ENODEV", *failing(COUNTER, GONE)),
    Fault("a counter holds text", *content(COUNTER, "garbage\n")),
    Fault("a counter has 30 digits", *content(COUNTER, "9" * 30 + "\n")),
    Fault("a counter is negative", *content(COUNTER, "-1\n")),
    Fault("a counter is empty", *content(COUNTER, "")),
    Fault("the firmware version returns EIO", *failing("mlx5_1/fw_ver", EIO)),
    Fault("the state of a port holds text", *content(STATE, "?\n")),
    Fault("the state of a port returns EIO", *failing(STATE, EIO)),
    Fault("a counter hangs", *hanging(COUNTER)),
    Fault("a hardware counter hangs", *hanging(HARDWARE)),
    Fault("the statistics of ethtool hang", *hanging("eth1/statistics")),
    Fault("the statistics of ethtool return ENODEV", *failing("eth1/statistics", GONE)),
    Fault(
        "the exporter fails on the statistics of ethtool", *failing("eth1/statistics", ValueError("a fault"))
    ),
    Fault("the settings of ethtool hang", *hanging("eth1/settings")),
    Fault("a device is unplugged", lambda host: host.unplug(1), lambda host: host.plug(1)),
    Fault(
        "all devices are unplugged",
        lambda host: [host.unplug(n) for n in range(3)],
        lambda host: [host.plug(n) for n in range(3)],
    ),
    Fault(
        "the list of devices is gone",
        lambda host: host.tree.infiniband.rename(host.tree.root / "away"),
        lambda host: (host.tree.root / "away").rename(host.tree.infiniband),
    ),
    Fault(
        "the process stood still for two hours",
        lambda _: setattr(CLOCK, "now", CLOCK.now + 7200.0),
        lambda _: None,
        "clock",
    ),
    *(
        Fault(
            f"the wall clock is set to {year}",
            lambda host, wall=wall: setattr(host.sampler, "_wall", lambda: wall),
            lambda host: setattr(host.sampler, "_wall", time.time),
            "clock",
        )
        for year, wall in (("2060", 2.8e9), ("1970", 0.0), ("1901", -2.1e9))
    ),
)
# fmt: on


def all_hang(host: Host, batch: Batch) -> bool:
    """Whether every read under way hangs, one of this batch among them. No read is under way twice in a batch."""
    reads = host.collector._in_flight.since()
    hang = len(reads) + len(host.sampler._in_flight.since()) == len(host.kernel.held)
    return hang and reads == host.collector._in_flight.since() and not batch.pending().isdisjoint(reads)


async def pass_interval(host: Host) -> None:
    """Let the fast loop poll until the time of the next scrape; a read that hangs is given up as `supervise` does."""
    end = CLOCK.now + INTERVAL

    def poll() -> None:
        while (due := host.sampler.tick()) is not None:
            CLOCK.now = min(due, end)
            if due >= end:
                return

    while CLOCK.now < end:
        thread = threading.Thread(target=poll)
        thread.start()
        await until(lambda: not thread.is_alive() or thread.ident in host.kernel.held)  # noqa: B023 - awaited here
        if thread.is_alive():
            CLOCK.now += sampler.TIMEOUT + 0.01
            host.sampler._give_up()


async def scraped(host: Host) -> set[tuple[str, ...]]:
    """The series of one scrape, 15 s after the last."""
    await pass_interval(host)
    collector = host.collector
    scrape = asyncio.ensure_future(host.exporter.observe())
    await until(lambda: scrape.done() or (collector._batch and all_hang(host, collector._batch)))
    if not scrape.done():
        CLOCK.now += SETTINGS.overtake + 0.01
        await until(lambda: collector._batch.unfinished == 1 and all_hang(host, collector._batch))  # type: ignore[union-attr]
        CLOCK.now += SETTINGS.timeout
    observation = await scrape
    # What the slow chain reads after a collection is in the next one.
    slow = collector._slow._batch
    await until(lambda: slow is None or slow.is_over or all_hang(host, slow))
    return {
        (one.row.name, *one.labels)
        for part in observation.samples
        for one, value in zip(part.series, part.values, strict=True)
        if value is not None and one.row.name not in PASSING and not one.row.name.startswith("roce_exporter_")
    }


async def left_open(files: Counter[str]) -> str:
    """What of the descriptors does not come back; the thread of a read that hung closes its own when it ends."""
    try:
        await until(lambda: not Counter(open_files()) - files)
    except AssertionError:
        return "descriptors"
    return ""


def row(name: str, where: str, lost: str, scrapes: int, left: object) -> str:
    back = {0: "", 1: "the next scrape"}.get(scrapes, "two minutes at most")
    return f"| {name} | {where} | {lost} | {back} | {left or 'nothing'} |"


async def of_host(root: Path) -> AsyncIterator[str]:
    host = Host(root, SETTINGS, CLOCK)
    for _ in range(8):
        whole = await scraped(host)
    files = Counter(open_files())
    for fault in FAULTS:
        fault.begin(host)
        for _ in range(5):
            during = await scraped(host)
        fault.end(host)
        await until(
            lambda: not host.kernel.held and not host.collector._in_flight and not host.sampler._in_flight
        )
        scrapes, found = 1, await scraped(host)
        while found != whole and scrapes < MOST_SCRAPES:
            scrapes, found = scrapes + 1, await scraped(host)
        missing = whole - during
        names = ", ".join(sorted({one[1] for one in missing if len(one) > 1}))
        lost = f"{len(missing)} of {len(whole)} series ({names})" if missing else "nothing"
        assert found == whole, f"{fault.name}: {sorted(found ^ whole)[:5]}"
        yield row(fault.name, fault.where, lost, scrapes if missing else 0, await left_open(files))
    host.sampler.close()
    host.collector.close()


REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
RESET = struct.pack("ii", 1, 0)


async def of_web(root: Path) -> AsyncIterator[str]:
    host = Host(root, Settings(timeout=HUNG_SECONDS))
    application = Application((HostPages(host.exporter),))
    server = Server(application, None, ClientLimits())
    (address,) = await server.start(["127.0.0.1:0"])
    port = int(address.rpartition(":")[2])

    async def honest() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST + b"Connection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return b"roce_port_up" in answer

    assert await honest()
    files = Counter(open_files())
    for name, sent, reset in (
        ("300 idle clients", b"", False),
        ("300 clients send half a request", REQUEST, False),
        ("300 clients send a request and read nothing", REQUEST + b"\r\n", False),
        ("300 clients send a request and reset the connection", REQUEST + b"\r\n", True),
        ("300 clients send what is no HTTP", b"\x16\x03\x01\0\xff", False),
    ):
        clients = []
        for _ in range(300):
            with contextlib.suppress(OSError):
                clients.append((await asyncio.open_connection("127.0.0.1", port))[1])
                clients[-1].write(sent)
        if reset:
            for one in clients:
                one.get_extra_info("socket").setsockopt(1, 13, RESET)  # SOL_SOCKET, SO_LINGER
                one.transport.abort()
        answered = await honest()
        for one in clients:
            one.transport.abort()
        clients.clear()
        assert await honest()
        yield row(name, "web", "nothing" if answered else "1 scrape", 0, await left_open(files))
    await server.close()
    host.collector.close()


async def of_files(root: Path) -> AsyncIterator[str]:
    """The web config file, which is followed while clients send requests."""
    place = root / "web.yml"
    text = "http_server_config: {headers: {X-Frame-Options: deny}}\n"
    place.write_text(text)

    async def hello(_: Request) -> Response:
        return Response(200, b"hello", "text/plain; charset=utf-8")

    server = Server(hello, WebConfigFile(place), ClientLimits())
    (address,) = await server.start(["127.0.0.1:0"])

    async def honest() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(REQUEST + b"Connection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return b"hello" in answer and b"deny" in answer

    def fifo() -> None:
        place.unlink()
        os.mkfifo(place)

    def end() -> None:
        if place.is_fifo():  # who reads it gets its end
            os.close(os.open(place, os.O_WRONLY | os.O_NONBLOCK))
        place.unlink(missing_ok=True)
        place.write_text(text)

    assert await honest()
    files = Counter(open_files())
    for name, begin in (
        ("the web config file is removed", place.unlink),
        ("the web config file is empty", lambda: place.write_text("")),
        ("the web config file is half written", lambda: place.write_text(text[:30])),
        ("the web config file is 300 KB of brackets", lambda: place.write_text("[" * 300_000)),
        ("a read of the web config file hangs", fifo),
    ):
        begin()
        during = [await honest() for _ in range(3)]
        end()
        scrapes = 1
        while not await honest() and scrapes < MOST_SCRAPES:
            scrapes += 1
        lost = f"{during.count(False)} of 3 scrapes" if not all(during) else "nothing"
        yield row(name, "files", lost, scrapes if lost != "nothing" else 0, await left_open(files))
    await server.close()


async def of_switches() -> AsyncIterator[str]:
    fake = FakeSwitch()
    fake.gate.set()
    probe_module.load_module = lambda name: Module(name, "sonic", fake.query, fake.read)  # type: ignore[assignment]
    probe_module.dial = lambda _, routes: asyncio.sleep(0, routes[0])  # type: ignore[assignment]
    whole = await probed(fake)
    files = Counter(open_files())

    async def refused(_: object) -> object:
        raise NetError("connection refused")

    async def defect(_: object) -> object:
        raise ValueError("a fault")

    def route(change: Callable[..., object]) -> Callable[[], object]:
        return lambda: setattr(probe_module, "find_routes", change)

    async def unresolved(*_: object) -> object:
        raise NetError("the name does not resolve")

    async def silent(*_: object) -> object:
        return await asyncio.Event().wait()

    query, find_routes, dial = fake.query, probe_module.find_routes, probe_module.dial
    for where, name, begin, end in (
        (
            "switch",
            "one source fails",
            lambda: fake.faults.update(port_counters="no reply"),
            fake.faults.clear,
        ),
        ("switch", "a switch never answers", fake.gate.clear, fake.gate.set),
        (
            "switch",
            "a switch refuses connections",
            lambda: setattr(fake, "query", refused),
            lambda: setattr(fake, "query", query),
        ),
        (
            "switch",
            "a module of the exporter fails",
            lambda: setattr(fake, "query", defect),
            lambda: setattr(fake, "query", query),
        ),
        ("network", "the name of a switch does not resolve", route(unresolved), route(find_routes)),
        ("network", "the server of names does not answer", route(silent), route(find_routes)),
        (
            "network",
            "packets to a switch are dropped",
            lambda: setattr(probe_module, "dial", silent),
            lambda: setattr(probe_module, "dial", dial),
        ),
    ):
        begin()
        # A probe in which nothing answers loses nothing by a client that waits a short time.
        during = await probed(fake, 0.1 if name in NEVER_ANSWERS else HUNG_SECONDS)
        end()
        found, scrapes = await probed(fake), 1
        while found != whole and scrapes < MOST_SCRAPES:
            found, scrapes = await probed(fake), scrapes + 1
        lost = len(whole) - len(during & whole)
        yield row(
            name,
            where,
            f"{lost} of {len(whole)} series" if lost else "nothing",
            scrapes,
            await left_open(files),
        )


NEVER_ANSWERS = frozenset(
    {"a switch never answers", "the server of names does not answer", "packets to a switch are dropped"}
)


async def probed(fake: FakeSwitch, patience: float = HUNG_SECONDS) -> set[str]:
    """The series of a probe whose client waits `patience` seconds; those of the probe itself are left out."""
    try:
        answer = await prober(leaf()).probe("leaf1", "", patience)
    except ValueError:
        return set()
    text = answer.renderer.render(answer.samples, Format.TEXT).decode()
    named = (line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#"))
    return {one for one in named if "_probe_" not in one and "_source_" not in one and one}


async def table(root: Path) -> None:
    logging.disable(logging.CRITICAL)
    rows = [one async for one in of_host(root / "host")]
    memory = psutil.Process().memory_info().rss  # after the first part, which has loaded what there is
    rows += [one async for one in of_web(root / "web")]
    await until(lambda: len(os.listdir("/proc/self/task")) <= LEAST_THREADS)
    rows += [one async for one in of_files(root)]
    rows += [one async for one in of_switches()]  # last, for asyncio keeps the threads that interpret
    assert psutil.Process().memory_info().rss - memory < 24 * MEGABYTE
    sys.stdout.write(HEAD + "\n".join(rows) + "\n")


def test_the_table_of_faults_is_what_happens(tmp_path) -> None:
    """Runs in a separate process, as the soak does. `ROCE_WRITE=1` writes the page."""
    (tmp_path / "host").mkdir()
    (tmp_path / "web").mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    page, _, after = rest.partition(END)
    if os.environ.get("ROCE_WRITE"):
        README.write_text(before + BEGIN + done.stdout + END + after)
        return
    assert page == done.stdout
    assert len(re.findall("(?m)^\\| ", page)) > 40


if __name__ == "__main__":
    asyncio.run(table(Path(sys.argv[1])))
