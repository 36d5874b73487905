"""The data that flows from the kernel to the scrape: frozen, slotted, no I/O.

**Identity.** Several caches on the scrape path decide by `is` whether something has changed, because comparing hundreds
of names costs more than the work that is saved: `Reading.names`, `Samples.series`, `DeviceReadings.device`, the answers
of `kernel.netlink.remembered`. The rule for all of them:

1. Whoever makes such an object returns the same object as long as it is equal, and a new one as soon as it is not.
2. So the object is immutable, all the way down: tuples, frozen dataclasses, `MappingProxyType`. To change one in place
   would show old values under new names.
3. A cache keeps a reference to the object that it compares with: an `id` alone may be given to another object.
4. A fresh object that is equal costs time and nothing else: results never depend on a cache hit.

`tests/unit/test_identity.py` has a test per cache that fails when its invalidation is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


WHOLE_DEVICE = 0
"""Port number of a value that belongs to the device as a whole, as the kernel numbers it."""


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """One device as RDMA netlink lists it (RDMA_NLDEV_CMD_GET)."""

    index: int
    name: str
    node_guid: str
    """Four groups of four hexadecimal digits, as sysfs prints it; empty when not told."""
    protocol: str
    """`roce`, `ib`, `iw`, `opa`; empty on kernels that do not tell."""
    firmware: str


class RdmaPort(NamedTuple):
    """One port as RDMA netlink lists it (RDMA_NLDEV_CMD_PORT_GET)."""

    number: int
    netdev: str
    """Name of the network device; empty when there is none in this network namespace."""


@dataclass(frozen=True, slots=True)
class Gid:
    """One used slot of a port's GID table (InfiniBand Architecture Specification, annex A17 for RoCEv2)."""

    index: int
    type: str
    """`RoCE v2` or `IB/RoCE v1`, as the kernel spells it."""
    netdev: str
    address: str
    """An IPv4-mapped GID as dotted quad, any other as compressed IPv6."""


class Loss(NamedTuple):
    """One value that could not be had in one collection, and why."""

    name: str
    reason: str
    """An errno name such as `EINVAL`, or one of `sources.values` (`not_available`, `garbage`, ...)."""


class Netdev(NamedTuple):
    """One network device behind a port."""

    name: str
    role: str
    """`port`, `bond` (the LAG master) or `member` (a leg of the LAG)."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of an RDMA device."""

    number: int
    link_layer: str
    """`Ethernet` or `InfiniBand`, as the kernel spells it; empty when it does not say."""
    netdevs: tuple[Netdev, ...] = ()
    gids: tuple[Gid, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One RDMA device as the inventory found it. An empty text means that the host does not tell."""

    name: str
    driver: str
    """Kernel driver of the function below the RDMA device: `mlx5_core`, `bnxt_en`, `ice`, ..."""
    dialect: str
    """The catalogue's name for how this driver spells its counters; empty when unknown."""
    protocol: str = ""
    """`roce`, `ib`, `iw` (iWARP) or `opa`, as RDMA netlink says or the node type and link layer imply."""
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
    """The device as RDMA netlink knows it; None where it does not."""
    netlink_errno: int = 0
    """Why RDMA netlink could not be asked, although the host should have it; 0 when it could or need not be."""
    incarnation: int = 0
    """Changes when a device of the same name was taken out and put in again."""
    ports: tuple[Port, ...] = ()
    losses: tuple[Loss, ...] = ()
    """What the host refuses to tell of the device; in the fields above it is empty."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source said about one port, raw: `names[i]` had `values[i]`.

    `names` is the same object from one collection to the next as long as the set of names has not changed; see the
    module. A value that could not be had is None, never 0, and is listed in `losses`.
    """

    source: str
    device: str
    port: int
    names: tuple[str, ...]
    values: Sequence[int | None]
    losses: tuple[Loss, ...] = ()
    netdev: str = ""
    """The network device that was asked, of a source that asks one; of a LAG there are several."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """How one source of one device fared in one collection."""

    source: str
    device: str
    netdev: str
    up: bool | None
    """None: the device does not have this interface, which is no failure."""
    seconds: float
    error: str = ""
    """Why `up` is False, in words; empty otherwise."""
    errors_total: int = 0
    unreadable: int = 0
    """Values that the source lists and that could not be had in this collection."""
    quarantined: int = 0
    """Files that are left alone for a while because they kept failing."""


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
    """Devices left alone because of a filter."""
    unfinished: int = 0
    """Reads that this caller could not wait for. Above 0 the snapshot is partial: nothing may be concluded from absence."""
