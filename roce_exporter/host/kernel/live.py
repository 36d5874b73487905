"""This Linux host: sysfs below a root path, RDMA netlink, ethtool by ioctl and netlink, rtnetlink.

Follows Documentation/ABI/stable/sysfs-class-infiniband and include/uapi/rdma/rdma_netlink.h. Needs no privilege.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from roce_exporter.host.kernel import TEXT_BYTES, Absent, ComponentVersion, HealthReporter, ObjectList
from roce_exporter.host.kernel.dcb_netlink import Dcb, DcbNetlink
from roce_exporter.host.kernel.devlink_netlink import DevlinkNetlink
from roce_exporter.host.kernel.ethtool_ioctl import NAMES_SECONDS, EthtoolIoctl
from roce_exporter.host.kernel.ethtool_netlink import EthtoolNetlink
from roce_exporter.host.kernel.ip_netlink import read_ip_facts, read_ip_paths
from roce_exporter.host.kernel.kmsg import LiveKernelLog, open_live_log
from roce_exporter.host.kernel.names import decode_name, encode_name, given_hostname
from roce_exporter.host.kernel.object_netlink import open_object_dump, read_counter_sets, read_object_limits
from roce_exporter.host.kernel.processes import read_process, read_process_start
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
from roce_exporter.host.kernel.rtnetlink import (
    VirtualFunction,
    choose_mac_address,
    read_link_addresses,
    read_virtual_functions,
)
from roce_exporter.host.kernel.transceiver import read_transceiver
from roce_exporter.host.kernel.uverbs import read_limits
from roce_exporter.model import RdmaDevice, RdmaPort
from roce_exporter.model.ip import IpFacts, IpPath
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts
from roce_exporter.model.values import FILE_BYTES

T = TypeVar("T")
S = TypeVar("S", RdmaNetlink, EthtoolIoctl, EthtoolNetlink, DcbNetlink)
SYSFS = "/sys"
BNXT = "bnxt_en"
AUTOMATIC = 0xFFFF
"""PFC_STORM_PREVENTION_AUTO of include/uapi/linux/ethtool.h."""

# Descriptors reserved for 256 connections, sockets of threads, and files that are open only briefly.
RESERVE = 320
_NO_SUCH = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ENXIO)
"""Errors of readlink, readdir and open that mean that the path does not exist (EINVAL: not a link)."""


class LiveFiles:
    """Descriptors kept open and read with pread, which makes the kernel compute the attribute again each time."""

    def __init__(self, paths: Sequence[bytes], pread: Callable[[int, int, int], bytes], size: int) -> None:
        self._paths = tuple(paths)
        self._size = size
        self._pread = pread
        self._descriptors: list[int] = [-1] * len(self._paths)
        self._all_open = False
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = limit - min(RESERVE, limit // 2)

    def read(self, skip: Collection[int] = ()) -> list[bytes | OSError | None]:
        found: list[bytes | OSError | None] = []
        if skip or not self._all_open:
            return self._read_rest(found, skip)
        pread, size, append = self._pread, self._size, found.append
        try:
            for descriptor in self._descriptors:
                append(pread(descriptor, size, 0))
        except OSError as error:
            append(self._again(len(found), error))
            return self._read_rest(found, skip)
        return found

    def _read_rest(
        self, found: list[bytes | OSError | None], skip: Collection[int]
    ) -> list[bytes | OSError | None]:
        """The files after those in `found`, some of which may not be open, must not be read or fail."""
        pread, size = self._pread, self._size
        for position in range(len(found), len(self._descriptors)):
            if position in skip:
                found.append(None)
                continue
            descriptor = self._descriptors[position]
            try:
                found.append(pread(descriptor, size, 0) if descriptor >= 0 else self._open(position))
            except OSError as error:
                found.append(self._again(position, error))
        self._all_open = -1 not in self._descriptors
        return found

    def _open(self, position: int) -> bytes:
        descriptor = os.open(self._paths[position], os.O_RDONLY | os.O_CLOEXEC)
        if descriptor < self._most:
            self._descriptors[position] = descriptor
            return self._pread(descriptor, self._size, 0)
        # Near the limit the file is reopened for every read: slower, but leaves descriptors for clients.
        try:
            return self._pread(descriptor, self._size, 0)
        finally:
            os.close(descriptor)

    def _again(self, position: int, error: OSError) -> bytes | OSError:
        # A descriptor of a removed device keeps failing with ENODEV, even after the device has returned.
        if error.errno != errno.ENODEV:
            return error
        self._forget(position)
        try:
            return self._open(position)
        except OSError as second:
            return second if second.errno != errno.ENOENT else error

    def _forget(self, position: int) -> None:
        self._all_open = False
        descriptor, self._descriptors[position] = self._descriptors[position], -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        for position in range(len(self._descriptors)):
            self._forget(position)


class LiveKernel:
    """This host. A sysfs root other than /sys counts as the same host only for devices with equal GUIDs."""

    def __init__(
        self,
        sysfs: str = SYSFS,
        pread: Callable[[int, int, int], bytes] = os.pread,
        netlink: bool = True,
        names_for: float = 0.0,
        limits: bool = False,
    ) -> None:
        """`names_for` is the number of seconds for which names of private counters are cached; see `kernel.ethtool_ioctl`.

        `limits` permits to open a context on each device once, to read its limits; see `kernel.uverbs`.
        """
        self._root = os.path.abspath(sysfs)
        self._pread = pread
        self._netlink = netlink
        self._names_for = names_for
        self._limits = limits
        self._local = threading.local()
        self._devlink = DevlinkNetlink()

    def with_cached_names(self) -> LiveKernel:
        return LiveKernel(self._root, self._pread, self._netlink, NAMES_SECONDS)

    def begin(self) -> None:
        pass  # the counters of a live host change by themselves

    def entries(self, path: str) -> tuple[str, ...]:
        return _or_absent(lambda: tuple(sorted(map(decode_name, os.listdir(self._at(path))))), path)

    def text(self, path: str) -> str:
        descriptor = _or_absent(lambda: os.open(self._at(path), os.O_RDONLY | os.O_CLOEXEC), path)
        try:
            return decode_name(self._pread(descriptor, TEXT_BYTES, 0)).strip()
        finally:
            os.close(descriptor)

    def link(self, path: str) -> str:
        return decode_name(os.path.basename(_or_absent(lambda: os.readlink(self._at(path)), path)))

    def identity(self, path: str) -> int:
        """The inode number: kernfs assigns a new one to a device that is registered again."""
        return _or_absent(lambda: os.stat(self._at(path)).st_ino, path)

    def open_files(self, paths: Sequence[str], size: int = FILE_BYTES) -> LiveFiles:
        return LiveFiles([self._at(path) for path in paths], self._pread, size)

    def rdma_devices(self) -> tuple[RdmaDevice, ...]:
        # Below a foreign root, only the devices with the same GUID there.
        devices = self._rdma().devices()
        return devices if self._root == SYSFS else tuple(filter(self._is_below_root, devices))

    def rdma_ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        return self._rdma().ports(device)

    def rdma_statistics(self, device: RdmaDevice, port: int) -> Mapping[str, int]:
        return self._rdma().statistics(device, port)

    def rdma_optional_counters(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        return self._rdma().optional_counters(device, port)

    def rdma_resources(self, device: RdmaDevice) -> Mapping[str, int]:
        return self._rdma().resources(device)

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> ObjectList:
        self._rdma()  # Absent where RDMA netlink is switched off
        return open_object_dump(self._rdma, device, kind)

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        self._rdma()
        return read_counter_sets(self._rdma, device, port)

    def process(self, pid: int) -> ProcessFacts:
        return read_process(pid)

    def process_start(self, pid: int) -> float:
        return read_process_start(pid)

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        try:
            return read_object_limits(self._rdma(), device)
        except Absent:
            if not self._limits:
                raise Absent(
                    errno.EPERM,
                    "this kernel does not report limits, and owners.limits is not given",
                    device.name,
                ) from None
        return read_limits(self._rdma(), device)

    def rdma_namespaces_shared(self) -> bool:
        return self._rdma().is_shared()

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        self._check_own(netdev)
        return self._ethtool().statistics(netdev)

    def ethtool_driver(self, netdev: str) -> str:
        # sysfs has it without any privilege.
        return self.link(f"class/net/{netdev}/device/driver")

    def ethtool_pause(self, netdev: str) -> Mapping[str, int]:
        return self._of(EthtoolNetlink, netdev).pause(netdev)

    def ethtool_link(self, netdev: str) -> Mapping[str, int]:
        return self._of(EthtoolNetlink, netdev).link(netdev)

    def ethtool_fec(self, netdev: str) -> Mapping[str, int]:
        return self._of(EthtoolNetlink, netdev).fec(netdev)

    def ethtool_standard(self, netdev: str) -> Mapping[str, int]:
        return self._of(EthtoolNetlink, netdev).standard(netdev)

    def ethtool_settings(self, netdev: str) -> Mapping[str, int]:
        self._check_own(netdev)
        ioctl, found = self._ethtool(), dict[str, int]()
        with contextlib.suppress(Absent):
            # 65535 is not a time: it means automatic, and ethtool prints it without a number.
            if (timeout := ioctl.pfc_prevention_timeout(netdev)) != AUTOMATIC:
                found["pfc_prevention_timeout"] = timeout
        with contextlib.suppress(Absent):
            # Drivers without this setting return 0, too, and on bnxt 0 means that counters are never refreshed.
            if self.ethtool_driver(netdev) == BNXT:
                found["stats_block_microseconds"] = ioctl.statistics_refresh(netdev)
        with contextlib.suppress(Absent):
            found |= {f"flag_{name}": int(on) for name, on in ioctl.private_flags(netdev).items()}
        if not found:
            raise Absent(errno.EOPNOTSUPP, "the driver has no settings", netdev)
        return found

    def transceiver(self, netdev: str) -> Mapping[str, int]:
        netlink = self._of(EthtoolNetlink, netdev)
        return read_transceiver(lambda place: netlink.module_page(netdev, place))

    def mac_address(self, netdev: str) -> str:
        self._check_own(netdev)
        return choose_mac_address(read_link_addresses(netdev), netdev)

    def virtual_functions(self, netdev: str) -> tuple[VirtualFunction, ...]:
        # Without VFs the kernel is not queried.
        if self.text(f"class/net/{netdev}/device/sriov_numvfs") == "0":
            raise Absent(errno.EOPNOTSUPP, "no virtual functions", netdev)
        self._check_own(netdev)
        return read_virtual_functions(netdev)

    def ip_facts(self, netdev: str) -> IpFacts:
        self._check_own(netdev)
        return read_ip_facts(netdev)

    def ip_paths(self, pairs: Sequence[tuple[str, str]]) -> tuple[IpPath, ...]:
        return read_ip_paths(pairs)

    def hostname(self) -> str:
        return given_hostname(decode_name(os.fsencode(os.uname().nodename)))

    def open_kernel_log(self, *, oldest: bool) -> LiveKernelLog:
        if self._root != SYSFS:
            raise Absent(errno.EOPNOTSUPP, f"the kernel log of the host of {self._root} is not here")
        return open_live_log(oldest=oldest)

    def dcb(self, netdev: str) -> Dcb:
        return self._of(DcbNetlink, netdev).ieee(netdev)

    def devlink_reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        return self._own_devlink(instance).reporters(instance)

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        return self._own_devlink(instance).versions(instance)

    def devlink_vnic(self, instance: str) -> Mapping[str, int]:
        return self._own_devlink(instance).diagnosis(instance)

    def _at(self, path: str) -> bytes:
        return os.fsencode(self._root) + b"/" + encode_name(path)

    def _rdma(self) -> RdmaNetlink:
        if not self._netlink:
            raise Absent(errno.EPROTONOSUPPORT, "RDMA netlink is switched off")
        return self._mine(RdmaNetlink)

    def _ethtool(self) -> EthtoolIoctl:
        return self._mine(EthtoolIoctl, partial(EthtoolIoctl, names_for=self._names_for))

    def _mine(self, kind: type[S], make: Callable[[], S] | None = None) -> S:
        # One socket per worker thread: a stuck read must not delay the other threads.
        found: S | None = getattr(self._local, kind.__name__, None)
        if found is None:
            found = make() if make else kind()
            setattr(self._local, kind.__name__, found)
        return found

    def _of(self, kind: type[S], netdev: str) -> S:
        self._check_own(netdev)
        return self._mine(kind)

    def _check_own(self, netdev: str) -> None:
        # Sockets report this network namespace, which must not be mixed with the sysfs of another host.
        if self._root != SYSFS and not all(
            _content(self._at(f"class/net/{netdev}/{name}"))
            == _content(encode_name(f"{SYSFS}/class/net/{netdev}/{name}"))
            != b""
            for name in ("address", "ifindex")
        ):
            raise Absent(errno.ENODEV, "not a network device of this namespace", netdev)

    def _own_devlink(self, instance: str) -> DevlinkNetlink:
        # Another sysfs root has the devices of this host only if they are the same objects of the kernel.
        bus, _, name = instance.partition("/")
        place = f"bus/{bus}/devices/{name}"
        if self._root != SYSFS and self.identity(place) != LiveKernel().identity(place):
            raise Absent(errno.ENODEV, "not a device of this host", instance)
        return self._devlink

    def _is_below_root(self, device: RdmaDevice) -> bool:
        try:
            return (
                bool(device.node_guid)
                and self.text(f"class/infiniband/{device.name}/node_guid") == device.node_guid
            )
        except OSError:
            return False


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one: systemd's default of 1,024 is too low for 16 ports.

    Returns:
        The new soft limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _content(path: bytes) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(TEXT_BYTES)
    except OSError:
        return b""


def _or_absent(call: Callable[[], T], path: str) -> T:
    try:
        return call()
    except OSError as error:
        if error.errno in _NO_SUCH:
            raise Absent(error.errno, os.strerror(error.errno), path) from None
        raise
