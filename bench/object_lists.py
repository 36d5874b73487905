"""RDMA netlink's lists of a made-up host, byte by byte as the kernel sends them, for the real decoder.

The entries have the attributes of `fill_res_qp_entry` and its neighbours in drivers/infiniband/core/nldev.c. What is not
here is the kernel's own time: walking its memory, and a query of the firmware per queue pair.
"""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import (
    DONE,
    MULTIPART,
    Message,
    encode_attribute,
    encode_message,
    encode_u32,
)
from roce_exporter.host.kernel.object_netlink import (
    LISTINGS,
    ONLY_SEQUENCE,
    PART_BYTES,
    RES_LQPN,
    RES_MRLEN,
    RES_PID,
    RES_RQPN,
    RES_STATE,
    RES_TYPE,
    open_object_dump,
)
from roce_exporter.host.kernel.processes import read_process, read_process_start
from roce_exporter.host.kernel.rdma_netlink import DEV_INDEX, DEV_NAME, PORT_INDEX
from roce_exporter.model import Device, DeviceReadings, Port, RdmaDevice
from roce_exporter.model.owner import ObjectKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.kernel import ObjectList
    from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
    from roce_exporter.model.owner import CounterSet, ProcessFacts

SEND_PSN, RECEIVE_PSN, MIGRATION, PROTECTION_DOMAIN = 24, 23, 25, 60
CONTEXT_NUMBER, ENTRIES, USERS = 64, 37, 38
"""Of a context and of a completion queue; `rdma` lists none without them."""
RC, RTS = 2, 3
REGION = 1 << 26
OWNERS = 8
"""Jobs that the processes belong to."""


def made_devices(count: int) -> list[DeviceReadings]:
    """Devices with one port each."""
    return [
        DeviceReadings(
            Device(
                f"mlx5_{number}",
                "mlx5_core",
                "mlx5",
                netlink=RdmaDevice(number, f"mlx5_{number}", "", "roce", ""),
                ports=(Port(1, "Ethernet"),),
            ),
            (),
        )
        for number in range(count)
    ]


class ReplayedSocket:
    """A socket that has received one list: a datagram per call."""

    def __init__(self, datagrams: Sequence[bytes]) -> None:
        self._left = list(reversed(datagrams))

    def getsockname(self) -> tuple[int, int]:
        """Port id 0, as in the messages."""
        return 0, 0

    def send(self, data: bytes, /) -> int:
        """Accept the request."""
        return len(data)

    def recvmsg_into(
        self, buffers: Sequence[bytearray], /
    ) -> tuple[int, list[tuple[int, int, bytes]], int, tuple[int, int]]:
        """The next datagram."""
        datagram = self._left.pop()
        buffers[0][: len(datagram)] = datagram
        return len(datagram), [], 0, (0, 0)

    def close(self) -> None:
        """Give up the rest."""


class ReplayedHost:
    """Every device has the same objects; the processes are those of this machine."""

    def __init__(self, pids: Sequence[int], pairs: int) -> None:
        self._counts = {
            ObjectKind.CONTEXT: len(pids),
            ObjectKind.COMPLETION_QUEUE: pairs,
            ObjectKind.MEMORY_REGION: 2 * pairs,
            ObjectKind.QUEUE_PAIR: pairs,
            ObjectKind.CONNECTION: 0,
        }
        self._pids = pids
        self._lists: dict[tuple[int, ObjectKind, int], list[bytes]] = {}

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> ObjectList:
        """A list that was encoded before."""
        datagrams = self.encode(device, kind)
        return open_object_dump(_no_connection, device, kind, lambda _: ReplayedSocket(datagrams))

    def encode(self, device: RdmaDevice, kind: ObjectKind, size: int = PART_BYTES) -> list[bytes]:
        """The datagrams of one list, encoded once; the kernel makes them as large as the receiver's buffer, `size`."""
        key = (device.index, kind, size)
        if key not in self._lists:
            self._lists[key] = list(self._datagrams(device, kind, size))
        return self._lists[key]

    def rdma_resources(self, _device: RdmaDevice) -> Mapping[str, int]:
        """As many as are listed."""
        return {kind.value: count for kind, count in self._counts.items()}

    def counter_sets(self, device: RdmaDevice, _port: int) -> tuple[CounterSet, ...]:
        """None."""
        raise Absent(errno.EOPNOTSUPP, "no counter sets", device.name)

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        """None."""
        raise Absent(errno.EOPNOTSUPP, "no limits", device.name)

    def process(self, pid: int) -> ProcessFacts:
        """What this machine's /proc reports, but for the cgroup: a step of a Slurm job."""
        job = self._pids.index(pid) % OWNERS
        return read_process(pid)._replace(
            cgroups=f"0::/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0\n"
        )

    def process_start(self, pid: int) -> float:
        """What this machine's /proc reports."""
        return read_process_start(pid)

    def _datagrams(self, device: RdmaDevice, kind: ObjectKind, size: int) -> Iterator[bytes]:
        listing, entries = LISTINGS[kind], b""
        named = encode_u32(DEV_INDEX, device.index) + encode_attribute(DEV_NAME, device.name.encode() + b"\0")
        room = size - len(named) - 64

        def datagram() -> bytes:
            table = encode_attribute(listing.table, entries)
            return encode_message(Message(listing.command, MULTIPART, ONLY_SEQUENCE, 0, named + table))

        for number in range(self._counts[kind]):
            entry = encode_attribute(listing.entry, self._entry(kind, number))
            if len(entries) + len(entry) > room:
                yield datagram()
                entries = b""
            entries += entry
        if entries:
            yield datagram()
        yield encode_message(Message(DONE, MULTIPART, ONLY_SEQUENCE, 0, bytes(4)))

    def _entry(self, kind: ObjectKind, number: int) -> bytes:
        fields = encode_u32(RES_PID, self._pids[number % len(self._pids)])
        if kind is ObjectKind.MEMORY_REGION:
            fields += encode_attribute(RES_MRLEN, REGION.to_bytes(8, sys.byteorder))
        if kind is ObjectKind.CONTEXT:
            fields += encode_u32(CONTEXT_NUMBER, number)
        if kind is ObjectKind.COMPLETION_QUEUE:
            fields += encode_u32(ENTRIES, 1023) + encode_attribute(USERS, (2).to_bytes(8, sys.byteorder))
        if kind is ObjectKind.QUEUE_PAIR:
            for name, value in (
                (PORT_INDEX, 1),
                (RES_LQPN, 1000 + number),
                (RES_RQPN, 5000 + number),
                (RECEIVE_PSN, number),
                (SEND_PSN, number),
                (PROTECTION_DOMAIN, 1),
            ):
                fields += encode_u32(name, value)
            for name, byte in ((MIGRATION, 0), (RES_TYPE, RC), (RES_STATE, RTS)):
                fields += encode_attribute(name, bytes((byte,)))
        return fields


def _no_connection() -> RdmaNetlink:
    raise OSError(errno.EPROTO, "the replayed lists contain an error")
