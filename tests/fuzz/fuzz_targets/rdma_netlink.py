"""RDMA netlink: lists of devices and ports, counters (also with a learnt layout), optional counters, objects."""

import contextlib

from fuzz_targets.pieces import join, split
from fuzz_targets.wire import Wire, counts
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
from roce_exporter.model import RdmaDevice

ALLOWED = (OSError,)
CORE = ("host/kernel/rdma_netlink.py", "host/kernel/netlink.py", "host/kernel/rdma_netlink.py")
DEVICES = tuple(RdmaDevice(index, name, "", "", "") for index, name in enumerate(("rxe0", "rxe1", "mlx5_0")))


def decode(data: bytes) -> None:
    if not data:
        return
    question, number = divmod(data[0] % 15, 3)
    device = DEVICES[number]
    with contextlib.suppress(*ALLOWED):
        (devices, ports, statistics, optional, resources)[question](data[1:], device)


def reader(data: bytes) -> RdmaNetlink:
    wire = Wire(data)
    return RdmaNetlink(lambda _: wire)


def devices(data: bytes, _: RdmaDevice) -> None:
    for device in reader(data).devices():
        assert device.index >= 0
        assert len(device.name.splitlines()) <= 1 or "\0" not in device.name


def ports(data: bytes, device: RdmaDevice) -> None:
    for port in reader(data).ports(device):
        assert port.number >= 0


def statistics(data: bytes, device: RdmaDevice) -> None:
    """A learnt layout reads the same from the second reply as a reader without one."""
    once = reader(data)
    counts(once.statistics(device, 1))
    (_, *rest) = split(data)
    try:
        slow = reader(join(*rest)).statistics(device, 1)
    except OSError:
        return
    assert once.statistics(device, 1) == slow


def optional(data: bytes, device: RdmaDevice) -> None:
    found = reader(data).optional_counters(device, 1)
    assert set(map(type, found.values())) <= {bool}


def resources(data: bytes, device: RdmaDevice) -> None:
    counts(dict(reader(data).resources(device)))
