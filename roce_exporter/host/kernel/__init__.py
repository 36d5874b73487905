"""The only interface to the operating system: one `Kernel`, with one implementation per kind of host.

`live` is this Linux host, `recorded.recorded` a recorded one, `simulated.kernel` one that moves by itself. Paths are relative
to the sysfs root (`class/infiniband/mlx5_0/ports/1/state`). Every method may block and is called from worker threads only,
never on the event loop. No method writes.

Two kinds of errors are distinguished: `Absent` means that the host does not have the interface, which is not a failure;
any other `OSError` means that the interface exists and is broken.

A devlink instance (Documentation/networking/devlink) is named by its bus and its name on it: `pci/0000:3b:00.0`,
`auxiliary/mlx5_core.eth.0`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar

from roce_exporter.model.values import FILE_BYTES

if TYPE_CHECKING:
    from roce_exporter.host.kernel.dcb_netlink import Dcb
    from roce_exporter.host.kernel.kmsg import KernelLog
    from roce_exporter.host.kernel.rtnetlink import VirtualFunction
    from roce_exporter.model import RdmaDevice, RdmaPort
    from roce_exporter.model.ip import IpFacts, IpPath
    from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject


class ObjectList(Protocol):
    """A list of objects that is read part by part, so that the caller decides how fast the driver is queried."""

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        """The next objects; None at the end of the list. Objects that come or go meanwhile may be missing or repeated.

        OSError: the kernel or the driver fails, or the device was removed (ENODEV). The list is over then.
        """

    def close(self) -> None:
        """Give up the rest. May be called again, also from another thread once no call is in flight."""


class ObjectKernel(Protocol):
    """Objects and processes of a host."""

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> ObjectList:
        """Begin to list the objects of one kind. Those of a PID namespace that is not this one or below have no process.

        Raises:
            Absent: the kernel does not list this kind.
            OSError: netlink fails.
        """

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        """The counter sets that are bound to queue pairs of one port, made per process or not.

        Raises:
            Absent: the driver or kernel has none (mlx5 and ionic have them).
            OSError: netlink or the driver fails.
        """

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        """The most objects that the device can have at once: `max_qp`, `max_cq`, `max_mr`, by the names of `ibv_devinfo`.

        Absent: nothing here reports them, or the option that permits it is not set (see `kernel.uverbs`).
        """

    def process(self, pid: int) -> ProcessFacts:
        """What /proc reports of one process.

        Raises:
            Absent: there is no such process any more.
            OSError: EACCES or EPERM where /proc hides processes of other users (`hidepid`, `ProtectProc=`).
        """

    def process_start(self, pid: int) -> float:
        """When a process or thread began, in a unit of the implementation: the same process ID and start are the same process.

        Much cheaper than `process`, and raises the same errors.
        """


VNIC = "vnic"
"""The reporter of mlx5 with counters of the function (Documentation/networking/devlink/mlx5.rst)."""
FIXED, RUNNING, STORED = "fixed", "running", "stored"
"""Versions of the board, of what runs now, and of what runs after the next reset."""


class HealthReporter(NamedTuple):
    """One health reporter of a devlink instance or of one of its ports."""

    name: str
    is_healthy: bool
    errors: int
    """Errors reported since the driver was loaded."""
    recoveries: int
    """Successful recoveries since then."""
    dumped: float | None = None
    """When the stored dump was taken, in seconds since 1970; None without a dump."""


class ComponentVersion(NamedTuple):
    """One version of a device. Serial numbers are not read: they identify the machine."""

    stage: str
    """`FIXED`, `RUNNING` or `STORED`."""
    component: str
    """As the driver names it: `fw.version`, `fw.psid`, `board.id`."""
    version: str


P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Absent(OSError):  # noqa: N818 - it is a regular result, not an error
    """The host, or the device, does not have this interface."""


def read_or(other: S, read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | S:
    """The result of a read; `other` if it fails, for what all else is served without."""
    try:
        return read(*arguments, **named)
    except OSError:
        return other


def entries_of(kernel: Texts, folder: str) -> tuple[str, ...]:
    """The names in a folder; empty if it is absent. OSError: it cannot be read."""
    try:
        return kernel.entries(folder)
    except Absent:
        return ()


class Texts(Protocol):
    """The part of a kernel that reads small files."""

    def entries(self, path: str) -> tuple[str, ...]: ...

    def text(self, path: str) -> str: ...


# Bytes read of any other file: a sysfs attribute has at most one page.
TEXT_BYTES = 4096
BYTES_PER_MEGABIT = 125_000


class Files(Protocol):
    """Files of one device, kept open from one collection to the next."""

    def read(self, skip: Collection[int] = ()) -> list[bytes | OSError | None]:
        """The current content of every file, at most `FILE_BYTES` each, in the order of the paths.

        The result of a file that cannot be read is its `OSError` (ENODEV: the device went away). A file whose position
        is in `skip` is not touched, and its result is None.
        """

    def close(self) -> None:
        """Close the descriptors."""


class Kernel(ObjectKernel, Protocol):
    """All that the exporter reads from a host. No method writes."""

    def begin(self) -> None:
        """Mark the begin of a collection. A recording with several moments advances to the next one."""

    def with_cached_names(self) -> Kernel:
        """The same host for the fast loop, which need not read the names of counters in every sample."""

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory. Absent: there is no such directory."""

    def text(self, path: str) -> str:
        """The content of a file, at most `TEXT_BYTES`, stripped, undecodable bytes replaced.

        Raises:
            Absent: there is no such file.
            OSError: the file exists and cannot be read.
        """

    def link(self, path: str) -> str:
        """The last component of a symbolic link's target. Absent: there is no such link."""

    def identity(self, path: str) -> int:
        """A number that changes when the object at this path is replaced by another of the same name. Absent: the path does not exist."""

    def open_files(self, paths: Sequence[str], size: int = FILE_BYTES) -> Files:
        """Prepare to read at most `size` bytes of each file. A file that cannot be opened fails when it is read."""

    def rdma_devices(self) -> tuple[RdmaDevice, ...]:
        """Every RDMA device of this host that netlink lists. Absent: this host has no RDMA netlink."""

    def rdma_ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        """The ports of one device. Absent: netlink does not report them."""

    def rdma_statistics(self, device: RdmaDevice, port: int) -> Mapping[str, int]:
        """Every hardware counter of one port, one snapshot (RDMA_NLDEV_CMD_STAT_GET). Absent: the driver has no port statistics."""

    def rdma_optional_counters(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        """The optional counters of one port, and whether each is on (RDMA_NLDEV_CMD_STAT_GET_STATUS).

        Absent: the kernel is older than 5.16 or the driver has none.
        """

    def rdma_resources(self, device: RdmaDevice) -> Mapping[str, int]:
        """Objects in use by kind: `qp`, `cq`, `mr`, `pd`, `cm_id`, ... (RDMA_NLDEV_CMD_RES_GET). Absent: netlink does not report them."""

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        """Names and values of the driver's private counters, as `ethtool -S` prints them. Absent: the driver has none.

        The names are the same object as long as they have not changed. Names may repeat; the first one wins.
        """

    def ethtool_driver(self, netdev: str) -> str:
        """The kernel driver of a network device: `mlx5_core`, `bnxt_en`, ...

        Absent: it has no driver, or there is no such network device.
        """

    def ethtool_pause(self, netdev: str) -> Mapping[str, int]:
        """Global pause (802.3x): `autonegotiate`, `receive`, `transmit` as 1 or 0, and the driver's counters.

        These are `receive_frames`, `transmit_frames` and `transmit_storm_events`; missing counters are left out.
        Absent: the driver does not report it.
        """

    def ethtool_link(self, netdev: str) -> Mapping[str, int]:
        """The link: `up`, `full_duplex` as 1 or 0, `speed` in bytes per second, `lanes`, `extended_state`, `extended_substate`, `down_events`.

        Absent: the driver does not report it.
        """

    def ethtool_fec(self, netdev: str) -> Mapping[str, int]:
        """Forward error correction: `corrected_blocks`, `uncorrectable_blocks`, `corrected_bits`.

        On Linux 6.18 and newer also codewords per number of wrong symbols, by the names of `kernel.ethtool_netlink`.
        Absent: the driver does not count them.
        """

    def ethtool_standard(self, netdev: str) -> Mapping[str, int]:
        """The counters of IEEE 802.3 and RFC 2819 under their own names: `eth-mac-FrameCheckSequenceErrors`, ...

        Absent: the driver does not count them.
        """

    def ethtool_settings(self, netdev: str) -> Mapping[str, int]:
        """Settings of the driver: `pfc_prevention_timeout` in milliseconds, and `flag_NAME` as 1 or 0.

        For bnxt also `stats_block_microseconds`, the interval at which its counters are refreshed; 0: never.
        Absent: the driver has no settings.
        """

    def transceiver(self, netdev: str) -> Mapping[str, int]:
        """The measurements of the pluggable transceiver, with the names and units of `kernel.transceiver`.

        Absent: no module, a module without measurements, or no permission to read it (CAP_NET_ADMIN).
        """

    def mac_address(self, netdev: str) -> str:
        """The address by which the other end of the link knows a network device: see `kernel.rtnetlink`.

        Absent: no such network device here, or it has no Ethernet address of its own.
        """

    def virtual_functions(self, netdev: str) -> tuple[VirtualFunction, ...]:
        """The VFs of a network device, at most `kernel.rtnetlink.MOST_VFS`. Absent: it has none."""

    def ip_facts(self, netdev: str) -> IpFacts:
        """Addresses, neighbours and routes of a network device, and the policy rules of its network namespace.

        Absent: no such network device here, or not recorded.
        """

    def ip_paths(self, pairs: Sequence[tuple[str, str]]) -> tuple[IpPath, ...]:
        """How a packet from the first to the second address leaves, for each pair.

        The first address is one of this host's. Its version of IP is that of the second.
        """

    def hostname(self) -> str:
        """The host's own name, as `uname -n` prints it; LLDP announces it as the system's name. Absent: it is not set, or not recorded."""

    def dcb(self, netdev: str) -> Dcb:
        """PFC, scheduling, priority mapping and buffers of a network device. Absent: the driver has no DCB."""

    def devlink_reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance and of its ports, in the kernel's order. Needs no privilege.

        Absent: there is no such instance, or it has no reporters.
        """

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of an instance. Needs no privilege; the driver may query its firmware.

        Absent: there is no such instance, or its driver reports none.
        """

    def devlink_vnic(self, instance: str) -> Mapping[str, int]:
        """The numbers that the reporter `vnic` of an instance diagnoses, by the driver's names.

        Raises:
            Absent: there is no such instance, or it has no such reporter.
            PermissionError: without CAP_NET_ADMIN.
        """

    def open_kernel_log(self, *, oldest: bool) -> KernelLog:
        """A position in the kernel log: before the oldest record that is kept, or after the newest.

        Raises:
            Absent: this host has no kernel log.
            LogHiddenError: this process may not read it.
            OSError: it is broken.
        """
