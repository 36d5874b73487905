"""The kernel of a simulated host: a recording of everything constant, overlaid by a `World` with changing values.

See `roce_exporter.host.simulated` for the world. Time is injected: the world begins at the clock's first value, and every read
advances it to the clock.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import FILE_BYTES, TEXT_BYTES, Absent
from roce_exporter.host.recorded.recorded import HeldFiles, RecordedKernel
from roce_exporter.host.recorded.recorded_objects import HeldObjects
from roce_exporter.host.simulated.drivers import amounts
from roce_exporter.host.simulated.faults import ETHTOOL, NETLINK, refuse, spoil
from roce_exporter.host.simulated.functions import physical_function, virtual_functions
from roce_exporter.host.simulated.hosts import (
    VENDORS,
    ScenarioError,
    ScriptedPort,
    make_scenario_world,
    make_scripted_world,
)
from roce_exporter.host.simulated.job_objects import LIMITS, PORT, counter_sets, device_objects
from roce_exporter.host.simulated.jobs import process_facts
from roce_exporter.host.simulated.kernel_lines import SimulatedLog
from roce_exporter.host.simulated.reporters import MLX5, SimulatedDevlink
from roce_exporter.host.simulated.still import dcb, function_macs, record, slot_of
from roce_exporter.host.simulated.sysfs_files import moving_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roce_exporter.host.kernel import ComponentVersion, HealthReporter
    from roce_exporter.host.kernel.dcb_netlink import Dcb
    from roce_exporter.host.kernel.rtnetlink import VirtualFunction
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev, World
    from roce_exporter.model import RdmaDevice, RdmaPort
    from roce_exporter.model.ip import IpFacts, IpPath
    from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts

__all__ = ["VENDORS", "ScenarioError", "ScriptedPort", "SimulatedKernel", "simulate", "simulate_script"]

BITS_PER_BYTE = 8


class SimulatedKernel:
    """A host that exists in memory only."""

    def __init__(self, world: World, host: int = 1) -> None:
        """`host` distinguishes the MAC addresses and the name of this host from those of others."""
        self.world = world
        """The simulated truth: devices, `netdevs`, `storms`, `resets`."""
        self._host = host
        self._positions = {card.name: position for position, card in enumerate(world.cards)}
        self._cards = {card.name: card for card in world.cards}
        self._netdevs = {member.netdev: member for member in world.netdevs}
        self._moving = moving_files(world.cards)
        self._devlink = SimulatedDevlink({slot_of(number): card for number, card in enumerate(world.cards)})
        self._still = RecordedKernel([record(world.cards, tuple(self._moving), host)])

    def begin(self) -> None:
        pass  # time advances with the clock

    def with_cached_names(self) -> SimulatedKernel:
        return self

    def content(self, path: str) -> bytes:
        """The current content of a whole file below /sys.

        Raises:
            Absent: there is no such file.
            OSError: it is a folder, or has a simulated fault.
        """
        place = self._moving.get(path)
        if place is None:
            return self._still.content(path)
        with self.world.lock:
            text = place.content(self.world.now())
        return spoil(place.faults, path, f"{text}\n".encode())

    def entries(self, path: str) -> tuple[str, ...]:
        return self._still.entries(path)

    def text(self, path: str) -> str:
        return self.content(path)[:TEXT_BYTES].decode("utf-8", "replace").strip()

    def link(self, path: str) -> str:
        return self._still.link(path)

    def identity(self, path: str) -> int:
        """Number of reloads of an RDMA device's driver; 0 for all other paths."""
        self._still.identity(path)
        card = self._cards.get(path.removeprefix("class/infiniband/"))
        netdevs = {member.netdev for member in card.members} if card else set()
        return sum(reset.netdev in netdevs for reset in self.world.resets)

    def open_files(self, paths: Sequence[str], size: int = FILE_BYTES) -> HeldFiles:
        return HeldFiles(self.content, paths, size)

    def rdma_devices(self) -> tuple[RdmaDevice, ...]:
        return self._still.rdma_devices()

    def rdma_ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        return self._still.rdma_ports(device)

    def rdma_statistics(self, device: RdmaDevice, port: int) -> Mapping[str, int]:
        card = self._cards.get(device.name)
        if card is None or port != 1:
            raise Absent(errno.EINVAL, "no such port", f"{device.name}/{port}")
        refuse(card.members[0].setup.faults, NETLINK, device.name)
        reported = card.driver.hw_counters
        with self.world.lock:
            values = amounts(reported, card.facts(self.world.now()))
        return {one.raw: value for one, value in zip(reported, values, strict=True)}

    def rdma_optional_counters(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        return self._still.rdma_optional_counters(device, port)

    def rdma_resources(self, device: RdmaDevice) -> Mapping[str, int]:
        return self._still.rdma_resources(device)

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        member = self._netdev(netdev)
        with self.world.lock:
            return member.statistics(self.world.now())

    def ethtool_driver(self, netdev: str) -> str:
        return self._still.ethtool_driver(netdev)

    def ethtool_pause(self, netdev: str) -> Mapping[str, int]:
        self._netdev(netdev)
        return self._still.ethtool_pause(netdev)

    def ethtool_link(self, netdev: str) -> Mapping[str, int]:
        # Without a link there is no speed.
        member = self._netdev(netdev)
        with self.world.lock:
            now = self.world.now()
            conditions, facts = member.conditions(now), member.facts(now)
        found = {"up": int(conditions.up), "down_events": int(facts.get("carrier_downs", 0))}
        if conditions.up:
            found |= {"speed": (conditions.speed or 0) // BITS_PER_BYTE, "lanes": 4, "full_duplex": 1}
        return found

    def ethtool_fec(self, netdev: str) -> Mapping[str, int]:
        member = self._netdev(netdev)
        with self.world.lock:
            facts = member.reported(self.world.now())
        return {
            name: int(facts.get(name, 0))
            for name in ("corrected_blocks", "uncorrectable_blocks", "corrected_bits")
        }

    def ethtool_standard(self, netdev: str) -> Mapping[str, int]:
        return self._still.ethtool_standard(netdev)

    def ethtool_settings(self, netdev: str) -> Mapping[str, int]:
        self._netdev(netdev)
        return self._still.ethtool_settings(netdev)

    def transceiver(self, netdev: str) -> Mapping[str, int]:
        # A copper cable has no measurements.
        self._netdev(netdev)
        return self._still.transceiver(netdev)

    def mac_address(self, netdev: str) -> str:
        self._netdev(netdev)
        return self._still.mac_address(netdev)

    def virtual_functions(self, netdev: str) -> tuple[VirtualFunction, ...]:
        member = self._netdev(netdev)
        place = physical_function(self.world.cards)
        if place is None or self.world.cards[place].netdev != netdev:
            raise Absent(errno.EOPNOTSUPP, "no virtual functions", netdev)
        with self.world.lock:
            facts = member.facts(self.world.now())
        return tuple(virtual_functions(function_macs(self._host, netdev), facts))

    def ip_facts(self, netdev: str) -> IpFacts:
        return self._still.ip_facts(netdev)

    def ip_paths(self, pairs: Sequence[tuple[str, str]]) -> tuple[IpPath, ...]:
        return self._still.ip_paths(pairs)

    def hostname(self) -> str:
        return self._still.hostname()

    def open_kernel_log(self, *, oldest: bool) -> SimulatedLog:
        return SimulatedLog(self.world, oldest=oldest)

    def dcb(self, netdev: str) -> Dcb:
        member = self._netdevs.get(netdev)
        if member is None or not member.driver.dcb:
            raise Absent(errno.EOPNOTSUPP, "no DCB", netdev)
        with self.world.lock:
            now = self.world.now()
            return dcb(member, member.conditions(now).lossless or (), member.reported(now))

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> HeldObjects:
        card = self._card(device)
        with self.world.lock:
            broken = card.broken(self.world.now())
        objects = device_objects(self._positions[card.name], len(self._cards), broken)
        return HeldObjects([one for one in objects if one.kind is kind])

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        card = self._card(device)
        refuse(card.members[0].setup.faults, NETLINK, device.name)
        if card.driver.module != MLX5 or port != PORT:
            raise Absent(errno.EOPNOTSUPP, "no counter sets", f"{device.name}/{port}")
        with self.world.lock:
            facts = card.facts(self.world.now())
        return tuple(counter_sets(self._positions[card.name], len(self._cards), facts))

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        self._card(device)
        return LIMITS

    def process(self, pid: int) -> ProcessFacts:
        facts = process_facts(pid, self._host)
        if facts is None:
            raise Absent(errno.ESRCH, "no such simulated process", str(pid))
        return facts

    def process_start(self, pid: int) -> float:
        return self.process(pid).created

    def devlink_reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        with self.world.lock:
            return self._devlink.reporters(instance, self.world.now())

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        return self._devlink.versions(instance)

    def devlink_vnic(self, instance: str) -> Mapping[str, int]:
        with self.world.lock:
            return self._devlink.vnic(instance, self.world.now())

    def _card(self, device: RdmaDevice) -> Card:
        card = self._cards.get(device.name)
        if card is None:
            raise Absent(errno.ENODEV, "no such simulated device", device.name)
        return card

    def _netdev(self, netdev: str) -> SimulatedNetdev:
        member = self._netdevs.get(netdev)
        if member is None:
            raise Absent(errno.EOPNOTSUPP, "no such simulated network device", netdev)
        refuse(member.setup.faults, ETHTOOL, netdev)
        return member


def simulate(
    scenario: str,
    *,
    clock: Callable[[], float],
    vendors: Sequence[str] = ("mlx5", "mlx5", "mlx5", "mlx5"),
    seed: int = 1,
) -> SimulatedKernel:
    """A host of 1 to 16 ports, one of `VENDORS` each, that plays a scenario on this clock (monotonic seconds).

    The same scenario, vendors and seed give the same host. Seed 7 is named gpu-007, and its eth3 has the MAC address
    02:00:00:07:00:03: see `simulation.still`.

    Raises:
        ScenarioError: unknown scenario or vendor, or an invalid number of ports; one line that lists the valid ones.
    """
    return SimulatedKernel(make_scenario_world(scenario, clock, vendors, seed), seed)


def simulate_script(ports: Sequence[ScriptedPort], *, clock: Callable[[], float]) -> SimulatedKernel:
    """A host whose 1 to 16 ports play scripts, from the clock's first value on.

    Raises:
        ScenarioError: unknown vendor, or an invalid number of ports; one line that lists the valid ones.
    """
    return SimulatedKernel(make_scripted_world(ports, clock))
