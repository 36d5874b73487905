"""RDMA netlink: lists of objects part by part, and counter sets."""

import contextlib

from fuzz_targets.wire import Wire, counts
from roce_exporter.host.kernel.object_netlink import open_object_dump, read_counter_sets
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import ObjectKind

ALLOWED = (OSError,)
CORE = (
    "host/kernel/object_netlink.py",
    "host/kernel/object_netlink.py",
    "host/kernel/object_netlink.py",
    "host/kernel/object_netlink.py",
)
DEVICE = RdmaDevice(0, "rxe0", "", "", "")
KINDS = tuple(ObjectKind)
SETS = len(KINDS)


def decode(data: bytes) -> None:
    if not data:
        return
    question = data[0] % (SETS + 1)
    wire = Wire(data[1:])
    with contextlib.suppress(*ALLOWED):
        if question < SETS:
            objects(wire, KINDS[question])
        else:
            sets(wire)


def asked(wire: Wire) -> RdmaNetlink:
    """Errors are explained from the same input."""
    return RdmaNetlink(lambda _: wire)


def objects(wire: Wire, kind: ObjectKind) -> None:
    listed = open_object_dump(lambda: asked(wire), DEVICE, kind, lambda _: wire)
    while (part := listed.next_part()) is not None:
        for one in part:
            assert one.kind is kind
            counts(dict(enumerate_numbers(one)))
            assert "\0" not in one.kernel + one.type + one.state + one.peer
    assert listed.next_part() is None


def enumerate_numbers(one):
    return ((name, value) for name, value in one._asdict().items() if isinstance(value, int))


def sets(wire: Wire) -> None:
    for one in read_counter_sets(lambda: asked(wire), DEVICE, 1, lambda _: wire):
        counts(dict(one.values))
        assert one.number >= 0
        assert one.pid >= 0
