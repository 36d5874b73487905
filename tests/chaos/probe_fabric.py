"""Hosts in network namespaces behind a router in this process: the kernel's UDP and its timestamps, and faults on the way.

Each host has a TUN device, whose other end the router reads. netem would need a module that few build machines have. Needs root.
"""

import ctypes
import fcntl
import ipaddress
import os
import select
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from clock import Clock
from waiting import wait_until

from roce_exporter.model import Device, Gid, Port
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.probe.service import ProbeService, ProbeSettings

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
UDP = 17
LIBC = ctypes.CDLL(None, use_errno=True)


class Seen(NamedTuple):
    """A packet at the router."""

    source: str
    target: str
    source_port: int
    target_port: int
    tos: int
    is_request: bool


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Sockets that are opened within belong to this namespace. Only this thread moves there."""
    own, other = (
        os.open("/proc/thread-self/ns/net", os.O_RDONLY),
        os.open(f"/run/netns/{namespace}", os.O_RDONLY),
    )
    try:
        _set(other)
        yield
    finally:
        _set(own)
        os.close(own)
        os.close(other)


def _set(descriptor: int) -> None:
    if LIBC.setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Router(threading.Thread):
    """Forwards packets between TUN devices. `fault` decides: True forwards, False drops, a number is the new TOS octet."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.fault: Callable[[Seen], bool | int] = lambda _: True
        self.links: dict[str, int] = {}
        self.handled = 0
        """Probes and replies that were forwarded or dropped."""
        self.requests: Counter[str] = Counter()
        """Probes that were forwarded, by target."""
        self._port = port
        self._wake, self._waker = os.pipe()

    def attach(self, namespace: str, address: str) -> None:
        """Give a host its device."""
        with inside(namespace):
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", b"t0", IFF_TUN | IFF_NO_PI))
        for command in (f"addr add {address}/16 dev t0", "link set t0 up", "link set lo up"):
            subprocess.run(["ip", "-n", namespace, *command.split()], check=True)
        self.links[address] = device

    def run(self) -> None:
        while True:
            ready = select.select([*self.links.values(), self._wake], [], [])[0]
            if self._wake in ready:
                return
            for device in ready:
                self._forward(os.read(device, 2048))

    def _forward(self, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[9] != UDP:
            return
        source, target = (str(ipaddress.ip_address(packet[at : at + 4])) for at in (12, 16))
        ports = struct.unpack_from("!HH", packet, 20)
        seen = Seen(source, target, *ports, packet[1], is_request=ports[1] == self._port)
        verdict = self.fault(seen)
        if verdict is not False and target in self.links:
            os.write(self.links[target], packet if verdict is True else _with_tos(packet, verdict))
            self.requests[target] += seen.is_request
        self.handled += 1

    def close(self) -> None:
        """Stop, and remove the devices."""
        os.write(self._waker, b"x")
        self.join()
        for device in (*self.links.values(), self._wake, self._waker):
            os.close(device)


def _with_tos(packet: bytes, tos: int) -> bytes:
    head = bytearray(packet[:20])
    head[1], head[10:12] = tos, b"\0\0"
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head[10:12] = struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)
    return bytes(head) + packet[20:]


class ProbeFabric:
    """Racks of hosts that probe each other. Time moves from burst to burst."""

    PORT = 10124

    def __init__(self, prefix: str, racks: Sequence[int]) -> None:
        self.clock = Clock()
        self.router = Router(self.PORT)
        self.namespaces: list[str] = []
        self.silent: set[str] = set()
        """Hosts whose responder does not run."""
        self.services: dict[str, ProbeService] = {}
        self.targets = [
            ProbeTarget(
                f"r{rack}",
                f"h{rack}{number}",
                "",
                ipaddress.ip_address(f"10.88.{rack}.{number + 1}"),
                self.PORT,
            )
            for rack, hosts in enumerate(racks)
            for number in range(hosts)
        ]
        for target in self.targets:
            namespace = f"{prefix}{target.host}"
            subprocess.run(["ip", "netns", "add", namespace], check=True)
            self.namespaces.append(namespace)
            self.router.attach(namespace, str(target.address))
        self.router.start()

    async def open(self) -> None:
        """Open the sockets of every host."""
        for target, namespace in zip(self.targets, self.namespaces, strict=True):
            service = self.services[target.host] = ProbeService(ProbeSettings(), self._read, self.clock)
            gid = Gid(0, "RoCE v2", "t0", str(target.address))
            with inside(namespace):
                service.follow([Device("rxe0", "rdma_rxe", "rxe", ports=(Port(1, "Ethernet", gids=(gid,)),))])
            await service.refresh()

    async def _read(self) -> Sequence[ProbeTarget]:
        return self.targets

    def bursts(self, count: int) -> None:
        """As many bursts of every host, five seconds apart. Each ends when no packet is on its way."""
        for _ in range(count):
            for service, namespace in zip(self.services.values(), self.namespaces, strict=True):
                with inside(namespace):
                    service.burst(self.clock.wall())
            wait_until(self._is_quiet)
            # Before time moves on: the kernel begins to stamp packets a moment after the first socket wants it, and until then the
            # prober's own clock counts.
            for _ in range(2):
                for service in self.services.values():
                    service.collect()
                self.clock.now += 2.5

    def _is_quiet(self) -> bool:
        """Whether what was sent has been seen by the router, and what that forwarded has been answered."""
        handled = self.router.handled  # first: all that it counts is in the other counts then
        sent = answered = owed = 0
        for host, service in self.services.items():
            for port in service._ports.values():
                sent += sum(path.socket.sent for path in port.sender._paths.values())
                if host not in self.silent:
                    port.responder.work()
                    owed += self.router.requests[str(port.target.address)]
                answered += port.responder.answered
        return handled == sent + answered and answered == owed

    def close(self) -> None:
        """Remove everything."""
        for service in self.services.values():
            service.close()
        self.router.close()
        for namespace in self.namespaces:
            subprocess.run(["ip", "netns", "del", namespace], check=True)
