"""One process with every reader of other programs' replies and a web server, for `test_hostile_peers.py`.

It reads again and again until its standard input ends, then prints what it has seen as JSON: how many rounds, the most calls of Python between two
turns of the event loop, and the largest thing that the loop decoded itself; or, uncounted, the longest step of the loop for each reader.
"""

import asyncio
import contextlib
import json
import os
import resource
import sys
import time
from asyncio.base_events import BaseEventLoop
from collections import Counter
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.errors import UserError
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.kernel.kmsg import LiveKernelLog
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host_sources import HostSources
from roce_exporter.host_sources.kernel_log import KernelLogFollower
from roce_exporter.host_sources.pod_resources import PodResources
from roce_exporter.host_sources.rdma_namespaces import RdmaNamespaces
from roce_exporter.net import gnmi_messages, json_reply
from roce_exporter.net.http import Access
from roce_exporter.probe import target_source
from roce_exporter.switches import probe
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

ROUNDS = 4
"""Of each reader: each kind of reply at least once for those that send several requests in one."""


class Turns:
    """Counts the calls of Python in the thread of the loop, between two of its turns."""

    def __init__(self) -> None:
        self.calls, self.where = Counter[str](), ""
        self.most = self.decoded = 0

    def note(self, frame: Any, event: str, _: object) -> None:
        if event == "call":
            if frame.f_code is BaseEventLoop._run_once.__code__:
                if (calls := self.calls.total()) > self.most:
                    self.most, self.where = calls, str(self.calls.most_common(4))
                self.calls.clear()
            self.calls[frame.f_code.co_qualname] += 1

    def watch(self, module: Any, name: str) -> None:
        """Note the sizes that this function decodes in the thread of the loop."""
        decode, own = getattr(module, name), os.getpid()

        def watched(*arguments: Any, **options: Any) -> Any:
            if sys.getprofile() and os.getpid() == own:
                self.decoded = max(
                    self.decoded, *(len(one) for one in arguments if isinstance(one, bytes | str)), 0
                )
            return decode(*arguments, **options)

        setattr(module, name, watched)


READING: ContextVar[str] = ContextVar("reading", default="other")
"""The reader of a task and of the callbacks that it leads to."""


def watch_steps() -> dict[str, float]:
    """By reader: the longest step of the event loop, in milliseconds of CPU time of its thread. It grows from now on."""
    longest: dict[str, float] = {}
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun, reader = time.thread_time(), handle._context.get(READING, "other")  # type: ignore[attr-defined]
        run(handle)
        longest[reader] = max(longest.get(reader, 0.0), (time.thread_time() - begun) * 1e3)

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    return longest


class EndlessLog(LiveKernel):
    """A host whose kernel log has no end, and whose RDMA devices are in other namespaces."""

    def open_kernel_log(self, *, oldest: bool) -> LiveKernelLog:
        records = self._records()
        return LiveKernelLog(-1, lambda *_: next(records))

    def _records(self) -> Any:
        number = 0
        while True:
            number += 1
            yield b"4,%d,1,-;mlx5_core 0000:3b:00.0 eth0: %s\n" % (number, b"x" * (number % 8000))

    def rdma_namespaces_shared(self) -> bool:
        return False


async def main(given: dict[str, Any]) -> None:
    target_source.SECONDS = 4.0
    turns, rounds, is_enough = Turns(), Counter[str](), False
    for module, name in ((json_reply.DECODER, "decode"), (gnmi_messages.LeafReader, "add")):
        turns.watch(module, name)
    kernel = EndlessLog("/nonexistent", netlink=False)
    sources = {
        one.source: HostSources((one,), time.monotonic)
        for one in (
            PodResources(given["kubelet"], kernel),
            RdmaNamespaces(kernel, given["namespaces"]),
            KernelLogFollower(kernel),
        )
    }
    collector = Collector(simulate("quiet", clock=time.monotonic), Settings(), time.monotonic)
    exporter = Exporter(collector, list(sources.values()))
    server = Server(Application((HostPages(exporter, 0.0),)), None)
    probe.PAUSE_AFTER = 1 << 30  # each probe is to read: one that is left alone answers at once
    prober = Prober(read_switches_file(given["switches"]))
    (address,) = await server.start(["127.0.0.1:0"])

    async def again(name: str, read: Any) -> None:
        nonlocal is_enough
        READING.set(name)
        while True:
            with contextlib.suppress(UserError):
                await read()
            rounds[name] += 1
            if len(rounds) == len(reads) and min(rounds.values()) >= ROUNDS and not is_enough:
                is_enough = True
                sys.stdout.write("enough\n")
                sys.stdout.flush()

    reads = {
        **{name: one.read_once for name, one in sources.items()},
        **{url: lambda url=url: target_source.read_remote(url, Access()) for url in given["prometheus"]},
        **{name: lambda name=name: prober.probe(name, "", 60.0) for name in prober.targets},
    }
    exporter.render(await exporter.observe(), Format.TEXT)  # the first one has more work than all later ones
    steps = {} if given["counted"] else watch_steps()
    sys.setprofile(turns.note if given["counted"] else None)
    tasks = [asyncio.create_task(again(*one)) for one in reads.items()]
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    sys.setprofile(None)
    faults = [task.exception() for task in tasks if task.done()]
    seen = {
        "rounds": sorted(rounds.values()),
        "calls": turns.most,
        "where": turns.where,
        "decoded": turns.decoded,
        "steps": steps,
    }
    sys.stdout.write(json.dumps(seen | {"faults": list(map(repr, faults))}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # what a peer keeps open is not waited for


if __name__ == "__main__":
    document = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (document["address_space"],) * 2)
    if document["group"]:
        Path(document["group"], "cgroup.procs").write_text("0")
    asyncio.run(main(document))
