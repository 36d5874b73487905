"""The only door to the operating system: one `Kernel`, with one implementation per kind of host.

`live` is this Linux host, `recorded` a host written down. Paths are relative to the sysfs root
(`class/infiniband/mlx5_0/ports/1/state`). Every method may block and is called from worker threads only,
never on the event loop.

Two kinds of refusal are kept apart: `Absent` says that the host does not have the interface, which is
no failure; any other `OSError` says that the interface is there and broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from roce_exporter.kernel.dcb_netlink import Dcb
    from roce_exporter.model import RdmaDevice, RdmaPort


class Absent(OSError):  # noqa: N818 - it is an answer, not an error
    """The host, or the device, does not have this interface."""


FILE_BYTES = 64
"""As much of a counter file as is read: a 64-bit number needs 21 bytes."""

TEXT_BYTES = 4096
"""As much of any other file as is read: a sysfs attribute holds one page."""


class Files(Protocol):
    """Some files of one device, kept open from one collection to the next."""

    def read(self, skip: Collection[int] = ()) -> list[bytes | OSError | None]:
        """What every file says now, at most `FILE_BYTES` each, in the order the files were given.

        A file that cannot be read gives its `OSError` in its place (ENODEV: the device went away), a file whose
        position is in `skip` gives None and is not touched.
        """

    def close(self) -> None:
        """Give the descriptors back."""


class Kernel(Protocol):
    """What the exporter may ask a host. Nothing here writes."""

    def begin(self) -> None:
        """A collection begins. A recording that holds several moments moves on to the next."""

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory.

        Raises:
            Absent: there is no such directory.
        """

    def text(self, path: str) -> str:
        """The content of a file, at most `TEXT_BYTES`, stripped, undecodable bytes replaced.

        Raises:
            Absent: there is no such file.
            OSError: the file is there and cannot be read.
        """

    def link(self, path: str) -> str:
        """The last component of where a symbolic link leads.

        Raises:
            Absent: there is no such link.
        """

    def identity(self, path: str) -> int:
        """A number that changes when what is at this path is replaced by another of the same name.

        Raises:
            Absent: there is nothing.
        """

    def open_files(self, paths: Sequence[str], size: int = FILE_BYTES) -> Files:
        """Keep these files at hand, to read at most `size` bytes of each. One that cannot be opened says so then."""

    def rdma_devices(self) -> tuple[RdmaDevice, ...]:
        """Every RDMA device that netlink shows of this host.

        Raises:
            Absent: this host has no RDMA netlink.
        """

    def rdma_ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        """The ports of one device.

        Raises:
            Absent: netlink does not tell.
        """

    def rdma_statistics(self, device: RdmaDevice, port: int) -> Mapping[str, int]:
        """Every hardware counter of one port, one snapshot (RDMA_NLDEV_CMD_STAT_GET).

        Raises:
            Absent: the driver has no port statistics.
        """

    def rdma_optional_counters(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        """Which optional counters one port has, and whether each is on (RDMA_NLDEV_CMD_STAT_GET_STATUS).

        Raises:
            Absent: the kernel is older than 5.16 or the driver has none.
        """

    def rdma_resources(self, device: RdmaDevice) -> Mapping[str, int]:
        """Objects in use by kind: `qp`, `cq`, `mr`, `pd`, `cm_id`, ... (RDMA_NLDEV_CMD_RES_GET).

        Raises:
            Absent: netlink does not tell.
        """

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        """Names and values of the driver's private counters, as `ethtool -S` prints them.

        The names are the same object as long as they have not changed. A name may stand there twice: the first counts.

        Raises:
            Absent: the driver has none.
        """

    def ethtool_driver(self, netdev: str) -> str:
        """The kernel driver of a network device: `mlx5_core`, `bnxt_en`, ...

        Raises:
            Absent: it has none, or there is no such network device.
        """

    def ethtool_pause(self, netdev: str) -> Mapping[str, int]:
        """Global pause (802.3x): `autonegotiate`, `receive`, `transmit` as 1 or 0, and what the driver counts of it.

        That is `receive_frames`, `transmit_frames` and `transmit_storm_events`; what it does not count is left out.

        Raises:
            Absent: the driver does not tell.
        """

    def ethtool_link(self, netdev: str) -> Mapping[str, int]:
        """The link: `up`, `full_duplex` as 1 or 0, `speed` in bytes per second, `lanes`, `extended_state`, `down_events`.

        Raises:
            Absent: the driver does not tell.
        """

    def ethtool_fec(self, netdev: str) -> Mapping[str, int]:
        """Forward error correction: `corrected_blocks`, `uncorrectable_blocks`, `corrected_bits`.

        On Linux 6.18 and newer also codewords per number of wrong symbols, by the names of `kernel.fec_bins`.

        Raises:
            Absent: the driver does not count.
        """

    def ethtool_standard(self, netdev: str) -> Mapping[str, int]:
        """The counters of IEEE 802.3 and RFC 2819 under their own names: `eth-mac-FrameCheckSequenceErrors`, ...

        Raises:
            Absent: the driver does not count.
        """

    def ethtool_settings(self, netdev: str) -> Mapping[str, int]:
        """Settings of the driver: `pfc_prevention_timeout` in milliseconds, and `flag_NAME` as 1 or 0.

        Of bnxt `stats_block_microseconds` too: every so often its counters are refreshed, at 0 never.

        Raises:
            Absent: the driver has neither.
        """

    def transceiver(self, netdev: str) -> Mapping[str, int]:
        """What the pluggable transceiver measures of itself, by the names and in the units of `kernel.transceiver`.

        Raises:
            Absent: no module, one that measures nothing, or no right to ask it (CAP_NET_ADMIN).
        """

    def dcb(self, netdev: str) -> Dcb:
        """PFC, scheduling, priority mapping and buffers of a network device.

        Raises:
            Absent: the driver has no DCB.
        """

    def close(self) -> None:
        """Give everything back."""
