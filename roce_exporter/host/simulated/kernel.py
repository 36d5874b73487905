"""The kernel of a simulated host: a recording of everything constant, overlaid by a `World` with changing values.

Changing are files below /sys (state and counters of the RDMA ports, carrier and drops of the network devices), what netlink and
ethtool report, and the kernel log, to which drivers write changes of links, and of transceivers on mlx5.

See `roce_exporter.host.simulated` for the world. Time is injected: the world begins at the clock's first value, and every read
advances it to the clock.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from roce_exporter.host.kernel import Absent, ComponentVersion, HealthReporter
from roce_exporter.host.kernel.dcb_netlink import Dcb
from roce_exporter.host.kernel.kmsg import LogPart
from roce_exporter.host.kernel.rtnetlink import VirtualFunction
from roce_exporter.host.recorded.rdma_text import HeldObjects
from roce_exporter.host.recorded.recorded import RecordedKernel
from roce_exporter.host.simulated import drivers, jobs
from roce_exporter.host.simulated.conditions import ETHTOOL, HOT, NETLINK, UNPLUGGED, refuse, spoil
from roce_exporter.host.simulated.static_files import dcb, function_macs, record, slot_of
from roce_exporter.host.simulated.world import (
    VENDORS,
    Card,
    ConditionChange,
    ScenarioError,
    SimulatedNetdev,
    World,
    make_scenario_world,
)
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts

MEGABIT = 10**6
Content = Callable[[float], str]
"""The content of a file at a given time."""


def _moving_files(cards: Sequence[Card]) -> Iterator[tuple[str, tuple[Content, frozenset[str]]]]:
    """Every file with changing content by its path below /sys, with the simulated faults of its port."""
    for card in cards:
        faults = card.members[0].setup.faults
        for path, content in _port_files(card):
            yield f"class/infiniband/{card.name}/ports/1/{path}", (content, faults)
        for member in card.members:
            for path, content in _netdev_files(member):
                yield f"class/net/{member.netdev}/{path}", (content, member.setup.faults)


def _port_files(card: Card) -> Iterator[tuple[str, Content]]:
    yield "state", lambda now: "4: ACTIVE" if card.up(now) else "1: DOWN"
    yield "phys_state", lambda now: "5: LinkUp" if card.up(now) else "2: Polling"
    yield "rate", lambda now: drivers.rate_text(card.speed(now)) if card.up(now) else card.driver.down_rate
    groups = {"hw_counters": card.driver.hw_counters, "counters": card.driver.counters}
    for folder, reported in groups.items():
        for one in reported:
            yield f"{folder}/{one.raw}", partial(_value, card, one)


def _value(card: Card, one: drivers.DriverCounter, now: float) -> str:
    return str(*drivers.amounts((one.fact,), (one.per,), card.facts(now)))


def _netdev_files(member: SimulatedNetdev) -> Iterator[tuple[str, Content]]:
    files = {
        "carrier_changes": "carrier_changes",
        "carrier_up_count": "carrier_ups",
        "carrier_down_count": "carrier_downs",
        "statistics/rx_dropped": "kernel_drops",
    }
    for path, fact in files.items():
        yield path, lambda now, fact=fact: str(int(member.facts(now).get(fact, 0)))  # type: ignore[misc]
    yield "carrier", lambda now: str(int(member.conditions(now).up))
    yield "flags", lambda _: "0x1003"
    yield "operstate", lambda now: "up" if member.conditions(now).up else "down"
    yield (
        "speed",
        lambda now: str((member.conditions(now).speed or 0) // MEGABIT if member.conditions(now).up else -1),
    )


_LINK = {
    "mlx5_core": ("Link down", "Link up"),
    "bnxt_en": ("NIC Link is Down", "NIC Link is Up, 400000 Mbps full duplex, Flow control: none"),
    "ionic": ("Link down", "Link up - 400 Gbps"),
    "ice": ("NIC Link is Down", "NIC Link is up 100 Gbps Full Duplex"),
}
"""By driver: without and with a link."""

_PLUGGED = "Port module event: module 0, Cable plugged"
_MODULE = {
    "mlx5_core": {
        HOT: "Port module event[error]: module 0, Cable error, High Temperature",
        UNPLUGGED: "Port module event: module 0, Cable unplugged",
    }
}

_INFORMATION = 6  # LOG_INFO of syslog(3), facility 0


class SimulatedLog:
    """A position in the kernel log of a simulated host."""

    def __init__(self, world: World, *, oldest: bool) -> None:
        self._world = world
        self._heads = {
            member.netdev: (card.driver.module, slot_of(number))
            for number, card in enumerate(world.cards)
            for member in card.members
        }
        self._passed = 0 if oldest else len(self._texts())

    def read(self, most: int) -> LogPart:
        texts = self._texts()[self._passed : self._passed + most]
        first, self._passed = self._passed, self._passed + len(texts)
        records = (
            f"{_INFORMATION},{number},{number},-;{text}\n".encode()
            for number, text in enumerate(texts, first)
        )
        return LogPart(tuple(records), 0)

    def close(self) -> None:
        pass  # nothing is open

    def _texts(self) -> list[str]:
        return [text for change in self._world.changes for text in self._lines(change)]

    def _lines(self, change: ConditionChange) -> Iterator[str]:
        driver, address = self._heads[change.netdev]
        if change.old.module != change.new.module and driver in _MODULE:
            yield f"{driver} {address}: {_MODULE[driver].get(change.new.module, _PLUGGED)}"
        if change.old.up != change.new.up and driver in _LINK:
            yield f"{driver} {address} {change.netdev}: {_LINK[driver][change.new.up]}"


__all__ = ["VENDORS", "ScenarioError", "SimulatedKernel", "simulate"]
BITS_PER_BYTE = 8


class SimulatedKernel(RecordedKernel):
    """A host that exists in memory only."""

    def __init__(self, world: World, host: int = 1) -> None:
        """`host` distinguishes the MAC addresses and the name of this host from those of others."""
        self.world = world
        """The simulated truth: devices, `netdevs`, `storms`, `resets`."""
        self._host = host
        self._positions = {card.name: position for position, card in enumerate(world.cards)}
        self._cards = {card.name: card for card in world.cards}
        self._netdevs = {member.netdev: member for member in world.netdevs}
        self._moving = dict(_moving_files(world.cards))
        self._devlinks = jobs.SimulatedDevlink(
            {slot_of(number): card for number, card in enumerate(world.cards)}
        )
        super().__init__([record(world.cards, tuple(self._moving), host)])

    def content(self, path: str) -> bytes:
        """The current content of a whole file below /sys."""
        place = self._moving.get(path)
        if place is None:
            return super().content(path)
        content, faults = place
        return spoil(faults, path, f"{self.world.read(content)}\n".encode())

    def identity(self, path: str) -> int:
        """Number of reloads of an RDMA device's driver; 0 for all other paths."""
        super().identity(path)
        card = self._cards.get(path.removeprefix("class/infiniband/"))
        netdevs = {member.netdev for member in card.members} if card else set()
        return sum(reset.netdev in netdevs for reset in self.world.resets)

    def rdma_statistics(self, device: RdmaDevice, port: int) -> Mapping[str, int]:
        card = self._cards.get(device.name)
        if card is None or port != 1:
            raise Absent(errno.EINVAL, "no such port", f"{device.name}/{port}")
        refuse(card.members[0].setup.faults, NETLINK, device.name)
        names, facts, per = zip(*card.driver.hw_counters, strict=True)
        return dict(zip(names, drivers.amounts(facts, per, self.world.read(card.facts)), strict=True))

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        return self.world.read(self._netdev(netdev).statistics)

    def ethtool_link(self, netdev: str) -> Mapping[str, int]:
        # Without a link there is no speed.
        member = self._netdev(netdev)
        conditions, facts = self.world.read(lambda now: (member.conditions(now), member.facts(now)))
        found = {"up": int(conditions.up), "down_events": int(facts.get("carrier_downs", 0))}
        if conditions.up:
            found |= {"speed": (conditions.speed or 0) // BITS_PER_BYTE, "lanes": 4, "full_duplex": 1}
        return found

    def ethtool_fec(self, netdev: str) -> Mapping[str, int]:
        facts = self.world.read(self._netdev(netdev).reported)
        names = ("corrected_blocks", "uncorrectable_blocks", "corrected_bits")
        return {name: int(facts.get(name, 0)) for name in names}

    def virtual_functions(self, netdev: str) -> tuple[VirtualFunction, ...]:
        member = self._netdev(netdev)
        place = jobs.physical_function(self.world.cards)
        if place is None or self.world.cards[place].netdev != netdev:
            raise Absent(errno.EOPNOTSUPP, "no virtual functions", netdev)
        macs = function_macs(self._host, netdev)
        return tuple(jobs.virtual_functions(macs, self.world.read(member.facts)))

    def open_kernel_log(self, *, oldest: bool) -> SimulatedLog:
        return SimulatedLog(self.world, oldest=oldest)

    def dcb(self, netdev: str) -> Dcb:
        member = self._netdevs.get(netdev)
        if member is None or not member.driver.dcb:
            raise Absent(errno.EOPNOTSUPP, "no DCB", netdev)
        return self.world.read(
            lambda now: dcb(member, member.conditions(now).lossless or (), member.reported(now))
        )

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> HeldObjects:
        card = self._card(device)
        broken = self.world.read(card.broken)
        objects = jobs.device_objects(self._positions[card.name], len(self._cards), broken)
        return HeldObjects([one for one in objects if one.kind is kind])

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        card = self._card(device)
        refuse(card.members[0].setup.faults, NETLINK, device.name)
        if card.driver.module != jobs.MLX5_CORE or port != jobs.PORT:
            raise Absent(errno.EOPNOTSUPP, "no counter sets", f"{device.name}/{port}")
        facts = self.world.read(card.facts)
        return tuple(jobs.counter_sets(self._positions[card.name], len(self._cards), facts))

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        self._card(device)
        return jobs.LIMITS

    def process(self, pid: int) -> ProcessFacts:
        facts = jobs.process_facts(pid, self._host)
        if facts is None:
            raise Absent(errno.ESRCH, "no such simulated process", str(pid))
        return facts

    def process_start(self, pid: int) -> float:
        return self.process(pid).created

    def devlink_reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        return self.world.read(partial(self._devlinks.reporters, instance))

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        return self._devlinks.versions(instance)

    def devlink_vnic(self, instance: str) -> Mapping[str, int]:
        return self.world.read(partial(self._devlinks.vnic, instance))

    def _ethtool(self, netdev: str, kind: str) -> str:
        if kind != "driver":  # sysfs has it where ethtool fails
            self._netdev(netdev)
        return super()._ethtool(netdev, kind)

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
    02:00:00:07:00:03: see `simulated.static_files`.
    """
    return SimulatedKernel(make_scenario_world(scenario, clock, vendors, seed), seed)
