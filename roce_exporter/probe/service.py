"""The sender and the responder of a host, as a part of the exporter: `follow` gives it the devices, `run` probes until cancelled.

Own ports are the addresses of RoCEv2 GIDs. A burst goes out, its replies are read shortly afterwards and once more before the next one;
nothing is read packet by packet. The list of targets is read again every `REFRESH` seconds; while it cannot be read the last one holds.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from roce_exporter.normalise.series import Histogram, Samples
from roce_exporter.probe import plan
from roce_exporter.probe.guard import Guard
from roce_exporter.probe.outcomes import BOUNDS, PortTally, ProcessCounts, probe_samples
from roce_exporter.probe.responder import Responder
from roce_exporter.probe.sender import Sender, TrafficClass
from roce_exporter.probe.stamp import DEFAULT_PORT
from roce_exporter.probe.target_source import TargetsError, without_own

if TYPE_CHECKING:
    from roce_exporter.model import Device

LOG = logging.getLogger(__name__)

SETTLE = 0.1
"""Seconds after a burst until its replies are read: nearly all have come, and their times are the kernel's anyway."""
REFRESH = 30.0  # seconds between two readings of the list of targets
WINDOW = 600.0  # seconds for which source ports stay the same
ROCE_V2 = "RoCE v2"
OTHER_CLASS = 8  # one burst in this number is of another class than RoCE's


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """What the command's options select."""

    port: int = DEFAULT_PORT
    key: bytes = b""
    allowed: tuple[plan.Network, ...] = ()
    """Networks that are answered; empty: those of the own ports and the listed targets."""
    rate: plan.SendRate = field(default_factory=plan.SendRate)
    roce_dscp: int = 26
    cnp_dscp: int = 48
    whole: bool = False
    """Whether histograms have all buckets."""

    @property
    def classes(self) -> tuple[TrafficClass, ...]:
        """What is sent: mostly the class of RoCE."""
        return (
            TrafficClass("roce", self.roce_dscp, is_ecn_capable=True),
            TrafficClass("cnp", self.cnp_dscp, is_ecn_capable=False),
            TrafficClass("default", 0, is_ecn_capable=False),
        )

    def kind(self, turn: int) -> TrafficClass:
        """The class of burst number `turn`: one in eight is of CNPs or of the default class, in turn."""
        roce, cnp, default = self.classes
        return (cnp, default)[turn // OTHER_CLASS % 2] if turn % OTHER_CLASS == OTHER_CLASS - 1 else roce


@dataclass(slots=True)
class OwnPort:
    """One address of a RoCE port of this host."""

    device: str
    port: str
    target: plan.ProbeTarget
    sender: Sender
    tally: PortTally
    responder: Responder


def own_addresses(devices: Iterable[Device]) -> dict[plan.Address, tuple[str, str, int]]:
    """Device, port and index of each address that RoCEv2 GIDs have; link-local addresses, which no other rack reaches, are left out."""
    found: dict[plan.Address, tuple[str, str, int]] = {}
    for device in devices:
        for port in device.ports:
            for gid in port.gids:
                try:
                    address = ipaddress.ip_address(gid.address)
                except ValueError:
                    continue
                if gid.type == ROCE_V2 and not address.is_link_local:
                    found.setdefault(address, (device.name, str(port.number), gid.index))
    return found


def own_networks(addresses: Iterable[plan.Address]) -> tuple[plan.Network, ...]:
    """The networks of these addresses of the host, as the kernel has them."""
    wanted = set(addresses)
    found: set[plan.Network] = set()
    for entries in psutil.net_if_addrs().values():
        for entry in entries:
            text = entry.address.partition("%")[0]
            if (
                entry.netmask
                and entry.family in (socket.AF_INET, socket.AF_INET6)
                and ipaddress.ip_address(text) in wanted
            ):
                length = int(ipaddress.ip_address(entry.netmask)).bit_count()
                found.add(ipaddress.ip_network(f"{text}/{length}", strict=False))
    return tuple(sorted(found, key=str))


class ProbeService:
    """Probes the targets, and answers other hosts. Use `close` at the end."""

    def __init__(
        self,
        settings: ProbeSettings,
        read_targets: Callable[[], Awaitable[Sequence[plan.ProbeTarget]]],
        clock: Callable[[], float],
    ) -> None:
        """`read_targets` raises `TargetsError`; `clock` returns monotonic seconds."""
        self.targets: tuple[plan.ProbeTarget, ...] = ()
        self.settings = settings
        self.fault = ""
        """Why the list of targets could not be read last time; empty if it could."""
        self._read_targets = read_targets
        self._clock = clock
        self._guard = Guard(settings.allowed, clock)
        self._ports: dict[plan.Address, OwnPort] = {}
        self._unusable: set[plan.Address] = set()
        """Own addresses that cannot be bound to or sent from; each was logged."""
        self.plans: dict[plan.ProbeTarget, tuple[plan.Probe, ...]] = {}
        """What each own port sends at present."""
        self._planned: tuple[int, tuple[plan.ProbeTarget, ...], tuple[plan.ProbeTarget, ...]] | None = None
        """What the plans are for: the minute, the list, and the own ports."""
        self._changes = 0
        self._turn = 0
        self._answered_before = 0
        self._answers = Histogram(BOUNDS)
        self._session = int(time.time()) & 0xFFFF or 1

    @property
    def own_ports(self) -> int:
        """The addresses that probes leave from and are answered at."""
        return len(self._ports)

    def follow(self, devices: Iterable[Device]) -> None:
        """Use the addresses of these devices from now on."""
        found = {address: place[:2] for address, place in own_addresses(devices).items()}
        before = {address: (port.device, port.port) for address, port in self._ports.items()}
        for address, labels in before.items():
            if found.get(address) != labels:
                self._close_port(self._ports.pop(address))
        for address in found.keys() - self._ports.keys():
            try:
                self._ports[address] = self._open_port(address, *found[address])
                self._unusable.discard(address)
            except OSError as error:
                self._note(address, error)
        self._unusable &= found.keys()
        if before != {address: (port.device, port.port) for address, port in self._ports.items()}:
            self._changes += 1
        self._allow()

    def _allow(self) -> None:
        if not self.settings.allowed:
            self._guard.allow(own_networks(self._ports), [one.address for one in self.targets])

    def _note(self, address: plan.Address, error: OSError) -> None:
        """One line in the log until the address can be used again."""
        if address not in self._unusable:
            LOG.warning("probe: %s cannot be used: %s", address, error.strerror or error)
        self._unusable.add(address)

    def _open_port(self, address: plan.Address, device: str, port: str) -> OwnPort:
        settings = self.settings
        responder = Responder(address, settings.port, self._guard, settings.key, self._answers.observe)
        asyncio.get_running_loop().add_reader(responder.socket.fileno(), responder.work)
        tally = PortTally(device, port, settings.classes, self._clock)
        tally.target = next((one for one in self.targets if one.address == address), None)
        return OwnPort(
            device,
            port,
            tally.target or plan.ProbeTarget("", "", "", address, settings.port),
            Sender(address, self._session, self._clock, settings.key),
            tally,
            responder,
        )

    def _close_port(self, port: OwnPort) -> None:
        port.sender.close()
        self._answered_before += port.responder.answered
        asyncio.get_running_loop().remove_reader(port.responder.socket.fileno())
        port.responder.close()

    async def refresh(self) -> None:
        """Read the list of targets; a list that cannot be read leaves the last one, and one line in the log."""
        try:
            found = tuple(await self._read_targets())
        except TargetsError as error:
            if str(error) != self.fault:
                LOG.warning("probe: %s; the %d targets read before are kept", error, len(self.targets))
            self.fault = str(error)
            return
        self.fault = ""
        if found != self.targets:
            self.targets = found
            self._changes += 1
        by_address = {one.address: one for one in found}
        self._allow()
        for address, port in self._ports.items():
            port.tally.target = by_address.get(address)
            port.target = port.tally.target or port.target

    async def run(self) -> None:
        """Probe until cancelled."""
        read = renewed = float("-inf")
        while True:
            now = self._clock()
            if now - read >= REFRESH:
                read = now
                await self.refresh()
            if now - renewed >= WINDOW:
                renewed = now
                for port in self._ports.values():
                    port.sender.close()  # the next burst opens new source ports, and so takes other paths
            pause = self.burst(time.time())
            await asyncio.sleep(SETTLE)
            self.collect()
            await asyncio.sleep(max(0.0, pause - SETTLE))
            self.collect()

    def burst(self, wall: float) -> float:
        """Send one burst from every port; `wall` in Unix seconds. Returns the seconds until the next one."""
        own = {port.target: port for port in self._ports.values()}
        valid = int(wall // plan.PARTNER_SECONDS), self.targets, tuple(own)
        if valid != self._planned:
            others = without_own(self.targets, own)
            self._planned = valid
            self.plans = {target: plan.plan(target, others, wall) for target in own}
        kind = self.settings.kind(self._turn)
        for target, probes in plan.bursts(self.plans, self.settings.rate, self._turn).items():
            port = own[target]
            try:
                port.sender.send([(probe, kind) for probe in probes], port.tally)
                self._unusable.discard(target.address)
            except OSError as error:
                self._note(target.address, error)
        self._turn += 1
        return plan.interval(self.plans, self.settings.rate)

    def collect(self) -> None:
        """Read what has been answered."""
        for port in self._ports.values():
            port.sender.collect(port.tally)

    def samples(self) -> Samples:
        """All samples of the probes."""
        ports = list(self._ports.values())
        dropped = Counter(self._guard.dropped)
        dropped["queue"] = sum(one.responder.socket.dropped for one in ports)
        return probe_samples(
            [port.tally for port in ports],
            ProcessCounts(
                dropped,
                self._answered_before + sum(one.responder.answered for one in ports),
                len(without_own(self.targets, [port.target for port in ports])),
                self._changes,
                self._answers,
            ),
            whole=self.settings.whole,
        )

    def close(self) -> None:
        """Close all sockets."""
        for port in self._ports.values():
            self._close_port(port)
        self._ports.clear()
