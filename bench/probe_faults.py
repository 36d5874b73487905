"""What the probes of eight hosts name when a router between them is faulty: python bench/probe_faults.py [RUNS [FAULT...]].

Each host is a process in a network namespace, and a ninth namespace forwards between them: its kernel loses, delays, marks and remarks.
Two of the faults are of a process: stopped, and running a fifth of the time. The judge is that of `check fabric`. Needs root, `ip` and
`iptables-legacy`; the faults of netem need sch_netem, which the lab's guests have, and are left out without it:

    tests/lab/boot.sh -t 7200 -- python bench/probe_faults.py 5
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import ipaddress
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.fabric_check import fabric_report
from roce_exporter.checks.finding import Status
from roce_exporter.model import Device, Gid, Port
from roce_exporter.probe.plan import ProbeTarget, SendRate
from roce_exporter.probe.sender import LOST
from roce_exporter.probe.service import ProbeService, ProbeSettings
from roce_exporter.view.host_view import TimedSamples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

RACKS = (4, 4)
RATE = SendRate(interval=3.0, most=100.0, burst=38, per_target=8.0)
"""Every path of the full mesh in every burst."""
SECONDS = 15.0
"""Of each run."""
PATIENCE = 3.0
"""Seconds that a host may take to answer its parent."""
PREFIX = f"pf{os.getpid()}-"
ROUTER = f"{PREFIX}router"
GATEWAY = "169.254.1.1"
CLONE_NEWNET = 0x40000000
TARGETS = tuple(
    ProbeTarget(f"r{rack}", f"h{rack}{one}", "", ipaddress.ip_address(f"10.88.{rack}.{one + 1}"), 10124)
    for rack, hosts in enumerate(RACKS)
    for one in range(hosts)
)


def run(text: str) -> None:
    """Run a command; its words have no spaces."""
    subprocess.run(text.split(), check=True)  # noqa: S603 - the words are literals of this file


def serve(target: ProbeTarget, parent: Connection) -> None:
    """One host: probe from the first message on, and answer each later one with samples and source ports."""
    descriptor = os.open(f"/run/netns/{PREFIX}{target.host}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.nice(-19)  # other programs of the machine would make it a busy host
    asyncio.run(_probe(target, parent))


async def _probe(target: ProbeTarget, parent: Connection) -> None:
    async def read() -> Sequence[ProbeTarget]:
        return TARGETS

    service = ProbeService(ProbeSettings(rate=RATE), read, time.monotonic)
    await service.refresh()
    gid = Gid(0, "RoCE v2", "e0", str(target.address))
    service.follow([Device("rxe0", "rdma_rxe", "rxe", ports=(Port(1, "Ethernet", gids=(gid,)),))])
    parent.send("ready")
    await asyncio.to_thread(parent.recv)

    def answer() -> None:
        parent.recv()
        service.collect()
        values: dict[str, dict[tuple[str, ...], float]] = {}
        for series, value in zip(*service.samples(), strict=True):
            labels = series.labels[:-1] if series.suffix in ("_sum", "_count") else series.labels
            values.setdefault(series.row.name + series.suffix, {})[labels] = value or 0
        (port,) = service._ports.values()  # noqa: SLF001 - no page shows source ports without a loss
        paths = port.sender._paths.values()  # noqa: SLF001
        parent.send((TimedSamples(time.time(), values), [path.socket.port for path in paths]))

    asyncio.get_running_loop().add_reader(parent.fileno(), answer)
    await service.run()


class Host(NamedTuple):
    """A process, and the end of its pipe."""

    process: multiprocessing.process.BaseProcess
    pipe: Connection

    def read(self) -> tuple[TimedSamples, list[int]] | None:
        """Its samples and source ports; None if it does not answer."""
        while self.pipe.poll():
            self.pipe.recv()  # it did not answer in time before
        self.pipe.send("read")
        return self.pipe.recv() if self.pipe.poll(PATIENCE) else None


@contextmanager
def probing() -> Iterator[dict[str, Host]]:
    """All hosts, after their first burst."""
    hosts = {}
    context = multiprocessing.get_context("fork")
    gc.freeze()  # so that the processes share its pages
    try:
        for target in TARGETS:
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(target, theirs), daemon=True)
            process.start()
            hosts[target.host] = Host(process, ours)
        for step in ("ready", "begin"):
            for host in hosts.values():
                host.pipe.recv() if step == "ready" else host.pipe.send(step)
        while not all((found := host.read()) and found[1] for host in hosts.values()):
            time.sleep(0.1)
        yield hosts
    finally:
        for host in hosts.values():
            host.process.kill()
            host.process.join()


@contextmanager
def behind_a_router() -> Iterator[None]:
    """The namespaces and their links; `hNN` is the router's end of the link of that host."""
    names = [ROUTER, *(PREFIX + one.host for one in TARGETS)]
    try:
        for name in names:
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
        run(f"ip netns exec {ROUTER} sysctl -qw net.ipv4.ip_forward=1")
        for one in TARGETS:
            run(f"ip link add e0 netns {PREFIX}{one.host} type veth peer name {one.host} netns {ROUTER}")
            run(f"ip -n {ROUTER} addr add {GATEWAY}/32 dev {one.host}")
            run(f"ip -n {PREFIX}{one.host} addr add {one.address}/32 dev e0")
            run(f"ip -n {ROUTER} link set {one.host} up")
            run(f"ip -n {PREFIX}{one.host} link set e0 up")
            run(f"ip -n {ROUTER} route add {one.address}/32 dev {one.host}")
            run(f"ip -n {PREFIX}{one.host} route add {GATEWAY} dev e0")
            run(f"ip -n {PREFIX}{one.host} route add default via {GATEWAY} src {one.address}")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)  # noqa: S603, S607


RACK1 = tuple(one.host for one in TARGETS if one.rack == "r1")
Injected = Callable[[dict[str, Host]], AbstractContextManager[None]]


@contextmanager
def healthy(_: dict[str, Host]) -> Iterator[None]:
    """No fault."""
    yield


def forwarded(rule: str, *hosts: str) -> Injected:
    """A rule of the router for what goes to these hosts, or for all."""

    @contextmanager
    def made(_: dict[str, Host]) -> Iterator[None]:
        rules = [f"mangle -I FORWARD -o {host} {rule}" for host in hosts]
        for one in rules:
            run(f"ip netns exec {ROUTER} iptables-legacy -t {one}")
        yield
        for one in rules:
            run(f"ip netns exec {ROUTER} iptables-legacy -t {one.replace('-I', '-D')}")

    return made


def queued(how: str, host: str) -> Injected:
    """A queueing discipline at the router's end of a link."""

    @contextmanager
    def made(_: dict[str, Host]) -> Iterator[None]:
        run(f"tc -n {ROUTER} qdisc add dev {host} root {how}")
        yield
        run(f"tc -n {ROUTER} qdisc del dev {host} root")

    return made


@contextmanager
def lossy_path(hosts: dict[str, Host]) -> Iterator[None]:
    """Drop one source port of h00; ports from the third on are for the other rack alone, which has more paths."""
    _, ports = hosts["h00"].read() or (None, [])
    with forwarded(f"-p udp --sport {ports[5]} -j DROP", *RACK1)(hosts):
        yield


@contextmanager
def stopped(hosts: dict[str, Host]) -> Iterator[None]:
    """Stop the process of h01."""
    os.kill(hosts["h01"].process.pid or 0, signal.SIGSTOP)
    yield
    os.kill(hosts["h01"].process.pid or 0, signal.SIGCONT)


@contextmanager
def busy(hosts: dict[str, Host]) -> Iterator[None]:
    """Run the process of h01 for a fifth of the time, as a quota of the processor does."""
    pid, over = hosts["h01"].process.pid or 0, threading.Event()

    def hold() -> None:
        while not over.wait(0.2):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.87)  # with 0.2: no divisor of the interval of bursts
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=hold)
    thread.start()
    yield
    over.set()
    thread.join()


LOSS, ROCE = "-m statistic --mode random --probability 0.1 -j DROP", "-m tos --tos 0x68/0xfc -j TOS --set-tos"
FAULTS: dict[str, tuple[Injected, set[tuple[str, str]]]] = {
    "healthy": (healthy, set()),
    "port loses 10 %": (forwarded(LOSS, "h12"), {("probe_loss", "h12")}),
    "ToR loses 10 %": (forwarded(LOSS, *RACK1), {("probe_loss", "ToR r1")}),
    "one source port is lost": (lossy_path, {("probe_loss", "path of h00")}),
    "ToR marks": (forwarded(f"{ROCE} 0x03/0x03", *RACK1), {("probe_marked", "ToR r1")}),
    "ToR clears the DSCP": (forwarded(f"{ROCE} 0x00/0xfc", *RACK1), {("probe_remarked", "ToR r1")}),
    "responder stopped": (stopped, {("probe_loss", "h01")}),
    "responder busy": (busy, {("probe_busy_host", "h01")}),
    "netem: port loses 10 %": (queued("netem loss 10%", "h12"), {("probe_loss", "h12")}),
    "netem: port delays by 20 ms": (queued("netem delay 20ms", "h12"), {("probe_delay", "h12")}),
}


def judged(name: str, runs: int) -> Iterator[set[tuple[str, str]]]:
    """What is named after `SECONDS` of a fault, as check and place, in each run."""
    inject, _ = FAULTS[name]
    with probing() as hosts:
        for _ in range(runs):
            time.sleep(LOST + 1)  # what was lost before is counted before
            before = [host.read() for host in hosts.values()]
            with inject(hosts):
                time.sleep(SECONDS)
                after = [host.read() for host in hosts.values()]
            ends = zip(before, after, strict=True)
            report = fabric_report([(one[0], two[0]) for one, two in ends if one and two])
            yield {
                (one.check, one.device.partition(" source port")[0])
                for one in report.findings
                if one.status > Status.OK
            }


def is_possible(name: str) -> bool:
    """Whether this kernel can make the fault."""
    if not name.startswith("netem"):
        return True
    words = f"tc -n {ROUTER} qdisc replace dev lo root netem".split()
    return subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603


def main() -> int:
    """Print the table; 1 if a fault was not named in each run."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    status = 0
    print("| fault | named | runs | named right |\n| --- | --- | ---: | ---: |")
    with behind_a_router():
        for name in sys.argv[2:] or filter(is_possible, FAULTS):
            expected = FAULTS[name][1]
            results = list(judged(name, runs))
            right = sum(one == expected for one in results)
            status |= right != runs
            words = ", ".join(f"`{check}` {place}" for check, place in expected) or "nothing"
            print(f"| {name} | {words} | {runs} | {right} |", flush=True)
            for one in results:
                if one != expected:
                    print(f"  named {sorted(one)}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
