"""The data that flows from the kernel to the scrape: frozen and slotted, without I/O.

**Identity.** Several caches on the scrape path decide by `is` whether something has changed, because comparing hundreds
of names costs more than the saved work: `Reading.names`, `Samples.series`, `DeviceReadings.device`, the results of
`kernel.netlink.remembered`; and, of values that were read and are the ones of the last collection, `Reading`, `DeviceReadings`,
`Samples` and `Samples.values`. The rule for all of them:

1. A producer of such an object returns the same object as long as it is equal, and a new one as soon as it is not.
2. So the object is immutable at every level: tuples, frozen dataclasses, `MappingProxyType`. Changing one in place would
   show old values under new names.
3. A cache keeps a reference to the object that it compares with: Python may reuse an `id`.
4. A new but equal object only costs time: results never depend on a cache hit.

`tests/unit/test_identity.py` has a test per cache that fails when its invalidation is removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import NamedTuple


def are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether two sequences consist of the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


WHOLE_DEVICE = 0
"""Port number of a value that belongs to the device as a whole, as the kernel numbers it."""
IWARP = "iw"  # of `Device.protocol`


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """One device as RDMA netlink lists it (RDMA_NLDEV_CMD_GET)."""

    index: int
    name: str
    node_guid: str
    """Four groups of four hexadecimal digits, as in sysfs; empty if not reported."""
    protocol: str
    """`roce`, `ib`, `iw`, `opa`; empty on kernels that do not report it."""
    firmware: str


class RdmaPort(NamedTuple):
    """One port as RDMA netlink lists it (RDMA_NLDEV_CMD_PORT_GET)."""

    number: int
    netdev: str
    """Name of the network device; empty without one in this network namespace."""


@dataclass(frozen=True, slots=True)
class Gid:
    """One used slot of a port's GID table (InfiniBand Architecture Specification, annex A17 for RoCEv2)."""

    index: int
    type: str
    """`RoCE v2` or `IB/RoCE v1`, as the kernel writes it."""
    netdev: str
    address: str
    """An IPv4-mapped GID as dotted quad, any other as compressed IPv6."""


class Loss(NamedTuple):
    """One value that could not be read in one collection, and why."""

    name: str
    reason: str
    """An errno name such as `EINVAL`, or one of `model.values` (`not_available`, `garbage`, ...)."""


class Netdev(NamedTuple):
    """One network device behind a port."""

    name: str
    role: str
    """`port`, `bond` (the LAG master) or `member` (a member port of the LAG)."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of an RDMA device."""

    number: int
    link_layer: str
    """`Ethernet` or `InfiniBand`, as the kernel writes it; empty if not reported."""
    netdevs: tuple[Netdev, ...] = ()
    gids: tuple[Gid, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One RDMA device as the inventory found it. An empty string means that the host does not report the property."""

    name: str
    driver: str
    """Kernel driver of the function below the RDMA device: `mlx5_core`, `bnxt_en`, `ice`, ..."""
    dialect: str
    """The catalogue's name for how this driver spells its counters; empty if unknown."""
    protocol: str = ""
    """`roce`, `ib`, `iw` (iWARP) or `opa`, from RDMA netlink or from the node type and link layer."""
    firmware: str = ""
    board: str = ""
    model: str = ""
    node_guid: str = ""
    pci: str = ""
    function: str = ""
    """`pf`, `vf` or empty."""
    physical_function: str = ""
    """PCI address of the PF of a VF."""
    netlink: RdmaDevice | None = None
    """The device as RDMA netlink lists it; None if it does not."""
    netlink_errno: int = 0
    """The errno with which RDMA netlink failed, although the host should have it; 0 without a failure."""
    incarnation: int = 0
    """Changes when the device is replaced by another of the same name."""
    ports: tuple[Port, ...] = ()
    losses: tuple[Loss, ...] = ()
    """The properties that could not be read; their fields above are empty."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The raw values of one port from one source: `names[i]` had `values[i]`.

    `names` is the same object from one collection to the next as long as the set of names has not changed; see the
    module. A value that could not be read is None, never 0, and is listed in `losses`.
    """

    source: str
    device: str
    port: int
    names: tuple[str, ...]
    values: Sequence[int | None]
    losses: tuple[Loss, ...] = ()
    netdev: str = ""
    """The network device, for a source that reads each one separately; a LAG has several."""


class SourceState(NamedTuple):
    """The result of one source of one device in one collection."""

    source: str
    device: str
    netdev: str
    up: bool | None
    """None: the device does not have this interface, which is not a failure."""
    seconds: float
    error: str = ""
    """The reason why `up` is False; empty otherwise."""
    errors_total: int = 0
    unreadable: int = 0
    """Values that the source lists but that could not be read in this collection."""
    quarantined: int = 0
    """Files that are not read for a while because they kept failing."""


@dataclass(frozen=True, slots=True)
class DeviceReadings:
    """One device in one collection."""

    device: Device
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One collection of the whole host."""

    devices: tuple[DeviceReadings, ...] = ()
    states: tuple[SourceState, ...] = ()
    seconds: float = 0.0
    excluded: int = 0
    """Devices excluded by a filter."""
    unfinished: int = 0
    """Reads that this caller could not wait for. Above 0 the snapshot is partial: absence has no meaning then."""


MOST_BYTES = 8192
"""PRINTK_MESSAGE_MAX (CONSOLE_EXT_LOG_MAX before Linux 6.4): no record is longer; a read with less space fails with EINVAL."""

MOST_TEXT = 1024
"""Characters of a text that are kept. `dev_printk` cuts texts at about this length, too."""

_HEAD = re.compile(rb"([0-9]{1,10}),([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,256};")

_DEVICE = b"\n DEVICE="

_FACILITY_SHIFT = 3


class LogRecord(NamedTuple):
    """One message of the kernel."""

    sequence: int
    """Increases by one from record to record."""
    text: str
    """The first line, at most `MOST_TEXT` characters, still with the escapes of the kernel."""
    device: str
    """The device of its tag `DEVICE=`, without the subsystem: `0000:3b:00.0`; empty without such a tag."""
    level: int = 6
    """Severity of syslog (RFC 5424): 3 is an error, 6 information."""


def decode_record(raw: bytes) -> LogRecord | None:
    """The record; without a text if it is not from the kernel. None if this is not a record at all."""
    head = _HEAD.match(raw)
    if head is None:
        return None
    sequence = int(head[2])
    if int(head[1]) >> _FACILITY_SHIFT:
        return LogRecord(sequence, "", "")
    end = raw.find(b"\n", head.end())
    line = raw[head.end() :] if end < 0 else raw[head.end() : end]
    return LogRecord(sequence, line[:MOST_TEXT].decode("ascii", "replace"), _device(raw), int(head[1]))


def _device(raw: bytes) -> str:
    found = raw.find(_DEVICE)
    if found < 0:
        return ""
    tag = raw[found + len(_DEVICE) :][:256].partition(b"\n")[0].decode("ascii", "replace")
    # `+pci:0000:3b:00.0`; other forms are numbers of device nodes and of network interfaces
    return tag.partition(":")[2] if tag.startswith("+") else ""
