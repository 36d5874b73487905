"""Every query to a recorded host."""

import contextlib
import json
import math
from collections.abc import Mapping

from roce_exporter.catalog import INDEX
from roce_exporter.host.recorded.ethtool_text import parse_transceiver, print_transceiver
from roce_exporter.host.recorded.rdma_text import print_object, print_processes, read_objects
from roce_exporter.host.recorded.recorded import RecordedKernel
from roce_exporter.host.recorded.scrub import Scrubber, scrub_process
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.sources.netdev import MAC_ADDRESS, read_netdev_identity
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import ObjectKind, RdmaObject
from roce_exporter.owners.identify import owner_of

PATHS = ("class/infiniband", "class/infiniband/mlx5_0/ports/1/state", "class/net/eth0", "a", "..", "")
LARGEST_DIGITS = 10**20
LARGEST_STATISTIC = 10**64
"""`ethtool -S` as text: a value of more than 64 bits is counted as unreadable, not skipped."""


def visit(kernel: RecordedKernel) -> None:
    """Read two moments of a host. Each query may fail with OSError; numbers fit the code that prints them."""
    for _ in range(2):
        kernel.begin()
        files(kernel)
        ethernet(kernel)
        with contextlib.suppress(OSError):
            for device in kernel.rdma_devices()[:4]:
                rdma(kernel, device)
                objects(kernel, device)
        process(kernel)


def files(kernel: RecordedKernel) -> None:
    for path in PATHS:
        for read in (kernel.entries, kernel.text, kernel.link, kernel.identity, kernel.content):
            with contextlib.suppress(OSError):
                read(path)
    kernel.open_files(PATHS).read()


def ethernet(kernel: RecordedKernel) -> None:
    for read in (kernel.ethtool_pause, kernel.ethtool_link, kernel.ethtool_fec, kernel.ethtool_settings):
        with contextlib.suppress(OSError):
            numbers(read("eth0"))
    with contextlib.suppress(OSError):
        names, values = kernel.ethtool_statistics("eth0")
        assert len(names) == len(values)
        assert all(0 <= value < LARGEST_STATISTIC for value in values)
    with contextlib.suppress(OSError):
        found = kernel.transceiver("eth0")
        assert parse_transceiver(print_transceiver(found)).keys() <= found.keys()
    with contextlib.suppress(OSError):
        kernel.ethtool_driver("eth0")
    with contextlib.suppress(OSError):
        kernel.dcb("eth0")
    with contextlib.suppress(OSError):
        (name,) = read_netdev_identity(kernel, "eth0")
        assert INDEX.claimed("", MAC_ADDRESS, name)


def rdma(kernel: RecordedKernel, device: RdmaDevice) -> None:
    with contextlib.suppress(OSError):
        numbers(kernel.rdma_resources(device))
    with contextlib.suppress(OSError):
        for port in kernel.rdma_ports(device)[:4]:
            with contextlib.suppress(OSError):
                numbers(kernel.rdma_statistics(device, port.number))
            with contextlib.suppress(OSError):
                kernel.rdma_optional_counters(device, port.number)


def objects(kernel: RecordedKernel, device: RdmaDevice) -> None:
    """What is read of objects fits the labels and the JSON that it goes to, and is printed so that it is read again."""
    for kind in ObjectKind:
        with contextlib.suppress(OSError):
            listed = kernel.open_objects(device, kind)
            for one in (one for part in iter(listed.next_part, None) for one in part):
                assert one.kind is kind
                assert min(one.pid, one.port, one.number, one.remote, one.size) >= 0
                assert not (one.pid and one.kernel)
                row = json.dumps([{"ifname": "a"} | print_object(one, "a")])
                assert read_object(kind, row) == one
    with contextlib.suppress(OSError):
        for one in kernel.counter_sets(device, 1):
            numbers(one.values)
    with contextlib.suppress(OSError):
        kernel.object_limits(device)


def read_object(kind: ObjectKind, row: str) -> RdmaObject:
    tree = Tree()
    path = f"rdma/resource-{kind.value}.json"
    tree.files[path] = row.encode()
    tree.add(path)
    (one,) = read_objects(tree, "FILE")["a", kind]
    return one


def process(kernel: RecordedKernel) -> None:
    """A process is scrubbed and printed without a fault, and read again with the same start and command."""
    with contextlib.suppress(OSError):
        facts = scrub_process(Scrubber(), kernel.process(7))
        assert math.isfinite(facts.created)
        print_processes({7: facts})
        owner_of(facts)


def numbers(found: Mapping[str, int]) -> None:
    for name, value in found.items():
        assert isinstance(name, str)
        # A hundred gigabit per second is stored in bytes per second: Mbit/s times 125,000.
        assert 0 <= value < LARGEST_DIGITS * 125_000, (name, value)
