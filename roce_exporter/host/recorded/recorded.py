"""A recorded host: output of the standard tools in a folder, a .tar.gz or a text (`host/recorded/archive.py`).

    HOST/sys/...                  files under /sys, as they are
    HOST/rdma/dev.json            `rdma -j dev show`
    HOST/rdma/link.json           `rdma -j link show`
    HOST/rdma/statistic.json      `rdma -j statistic show`
    HOST/rdma/mode.json           `rdma -j statistic mode`: optional counters that are on
    HOST/rdma/mode_supported.json `rdma -j statistic mode supported`: available optional counters
    HOST/rdma/resource.json       `rdma -j resource show`
    HOST/rdma/resource-qp.json    `rdma -j resource show qp`; -mr, -cq, -ctx and -cm_id likewise
    HOST/rdma/statistic-qp.json   `rdma -j statistic qp show`: counter sets that are bound to queue pairs
    HOST/ethtool/DEV.stats        `ethtool -S DEV`
    HOST/ethtool/DEV.driver       `ethtool -i DEV`
    HOST/ethtool/DEV.pause        `ethtool -I -a DEV`
    HOST/ethtool/DEV.link         `ethtool DEV`
    HOST/ethtool/DEV.fec          `ethtool -I --show-fec DEV`
    HOST/ethtool/DEV.settings     `ethtool --show-priv-flags DEV`, `--get-tunable DEV pfc-prevention-tout`, `-c DEV`
    HOST/ethtool/DEV.module       `ethtool -m DEV`
    HOST/ethtool/DEV.permaddr     `ethtool -P DEV`; where it prints no address, sys/class/net/DEV/address counts unless DEV has
                                  a master
    HOST/dcb/DEV.pfc.json         `dcb -s -j pfc show dev DEV`; .ets, .app, .buffer and .dcbx likewise
    HOST/dcb/DEV.peer_pfc.json    PFC as announced by the switch, in the format of .pfc.json: dcb itself does not print it
    HOST/ibv_devinfo/DEVICE.txt   `ibv_devinfo -v -d DEVICE`: its limits
    HOST/ip/DEV.link.json         `ip -j -s -d link show dev DEV`: its virtual functions
    HOST/devlink/health.json      `TZ=UTC devlink -j health show`
    HOST/devlink/info.json        `devlink -j dev info`
    HOST/devlink/BUS_NAME.vnic.json  `devlink -j health diagnose BUS/NAME reporter vnic`
    HOST/ip/address.json          `ip -j address show`; the files of the IP side are in `host/recorded/ip_text.py`
    HOST/ip/neigh.json            `ip -j -s neigh show`
    HOST/ip/route.json            `ip -j -4 route show table all`; route6.json with -6
    HOST/ip/rule.json             `ip -j rule show`; rule6.json with -6
    HOST/ip/get.json              replies of `ip -j route get DST from SRC`; where none is recorded, rules and routes decide
    HOST/proc/sys/...             files under /proc/sys, as they are; kernel/hostname is the host's name
    HOST/proc/PID/...             stat, status, comm and cgroup of the processes with RDMA objects, as they are
    HOST/proc/stat                its line `btime`: start times in /proc/PID/stat count from there
    HOST/dev/kmsg                 records of the kernel log, as /dev/kmsg returns them: see `log_text`
    HOST/etc/passwd               names of users; a user that it does not name is shown by number
    HOST/time                     when this was, in seconds since 1970; without it moments are 15 s apart

Every part is optional: a missing part is an interface that the host does not have. Several moments of one host
are in HOST/0/ ... HOST/n/ and are played in a loop, one per collection.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roce_exporter.host.kernel import TEXT_BYTES, Absent, ComponentVersion, HealthReporter, read_or
from roce_exporter.host.kernel.dcb_netlink import Dcb
from roce_exporter.host.kernel.kmsg import KernelLog
from roce_exporter.host.kernel.names import given_hostname
from roce_exporter.host.kernel.rtnetlink import LinkAddresses, VirtualFunction, choose_mac_address
from roce_exporter.host.recorded import ethtool_text, rdma_text
from roce_exporter.host.recorded.archive import load_tree
from roce_exporter.host.recorded.dcb_text import KINDS, read_dcb
from roce_exporter.host.recorded.devlink_text import RecordedDevlink
from roce_exporter.host.recorded.ip_text import parse_virtual_functions
from roce_exporter.host.recorded.log_text import PATH as KERNEL_LOG
from roce_exporter.host.recorded.log_text import RecordedLog
from roce_exporter.host.recorded.recorded_ip import RecordedIp, read_recorded_ip
from roce_exporter.host.recorded.tree import RecordingError, Tree
from roce_exporter.model import RdmaDevice, RdmaPort
from roce_exporter.model.ip import IpFacts, IpPath
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject
from roce_exporter.model.values import FILE_BYTES

TIME = "time"  # the name of the file
APART = 15.0  # seconds between the moments of a recording without times
_SECONDS = re.compile(rb"[0-9]{1,11}(\.[0-9]{1,9})?")


def moment_times(trees: Sequence[Tree], path: str) -> tuple[float, ...]:
    """The time of each moment, increasing; without files the first is 0 and the others follow 15 s apart."""
    named = [tree.files.get(TIME) for tree in trees]
    if all(content is None for content in named):
        return tuple(APART * number for number in range(len(trees)))
    times: list[float] = []
    for number, content in enumerate(named):
        what = f"recording {path}: moment {number}"
        if content is None:
            raise RecordingError(
                f"{what} has no file `{TIME}`, but others have; add it, or remove the others"
            )
        text = content.strip()
        if not _SECONDS.fullmatch(text):
            shown = ascii(text[:20].decode("utf-8", "replace"))
            raise RecordingError(
                f"{what}: `{TIME}` is {shown}; write seconds since 1970, as `date +%s.%N` prints them"
            )
        if times and float(text) <= times[-1]:
            raise RecordingError(
                f"{what}: its time {float(text):.3f} is not after {times[-1]:.3f}, the one before; correct the files `{TIME}`"
            )
        times.append(float(text))
    return tuple(times)


PARTS = frozenset({"sys", "rdma", "ethtool", "dcb", "debugfs", "proc", "ibv_devinfo", "ip", "devlink", "dev"})
"""The folders of a recording; one without any of them is refused."""
FAILING = re.compile(r"(sys|proc/sys|ethtool|devlink|ibv_devinfo)/.*|ip/.*\.link\.json")
"""Where a recorded host plays a read that fails: what is read when it is needed, not when the recording is opened."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a recorded host. `rdma` contains the parsed output of each recorded rdma command."""

    tree: Tree
    rdma: Mapping[str, rdma_text.Rows]
    dcb: Mapping[str, Dcb] = field(default_factory=dict)
    """By network device."""
    objects: Mapping[tuple[str, ObjectKind], tuple[RdmaObject, ...]] = field(default_factory=dict)
    """By device and kind; ("", kind) says that the kind was recorded."""
    counter_sets: Mapping[str, tuple[CounterSet, ...]] | None = None
    """By device; None: not recorded."""
    processes: Mapping[int, ProcessFacts] = field(default_factory=dict)
    ip: RecordedIp = field(default_factory=RecordedIp)


def read_moment(tree: Tree, path: str) -> Moment:
    """The moment in this tree, of the recording that came from `path`."""
    for place in tree.errors:
        if not FAILING.fullmatch(place):
            raise RecordingError(
                f"recording {path}: {place}: only reads below sys/, proc/sys/ and ethtool/ can fail; remove it"
            )
    return Moment(
        tree,
        rdma_text.read_rdma(tree, path),
        _parse_dcb(tree, path),
        rdma_text.read_objects(tree, path),
        rdma_text.read_counter_sets(tree, path),
        rdma_text.read_processes(tree, path),
        read_recorded_ip(tree, path),
    )


def without_wrapper(tree: Tree) -> Tree:
    """The recording itself: `tar czf host.tar.gz host/` puts everything below one folder."""
    names = tree.folders[""]
    if len(names) == 1 and not names & PARTS:
        (name,) = names
        if not name.isdecimal() and name in tree.folders:
            return tree.parts()[name]
    return tree


def _parse_dcb(tree: Tree, path: str) -> dict[str, Dcb]:
    documents: dict[str, dict[str, object]] = {}
    for name in sorted(tree.folders.get("dcb", ())):
        netdev, _, kind = name.removesuffix(".json").rpartition(".")
        text = tree.files.get(f"dcb/{name}", b"")
        # dcb prints an empty line if the driver does not have the requested part.
        if name.endswith(".json") and netdev and kind in KINDS and text.strip():
            documents.setdefault(netdev, {})[kind] = rdma_text.read_json(
                text, f"recording {path}: dcb/{name}", "dcb -j"
            )
    return {netdev: read_dcb(found, netdev, path) for netdev, found in documents.items()}


MAX_MOMENTS = 1000  # the maximum that `roce-exporter capture` writes


class HeldFiles:
    """Files of a host in memory: `content` returns the current content of a whole file."""

    def __init__(self, content: Callable[[str], bytes], paths: Sequence[str], size: int) -> None:
        self._content = content
        self._size = size
        self._paths = tuple(paths)

    def read(self, skip: Collection[int] = ()) -> list[bytes | OSError | None]:
        found: list[bytes | OSError | None] = []
        for position, path in enumerate(self._paths):
            try:
                found.append(None if position in skip else self._content(path)[: self._size])
            except OSError as error:
                found.append(error)
        return found

    def close(self) -> None:
        pass  # nothing is open


class RecordedKernel:
    """A host played from a recording."""

    def __init__(self, moments: Sequence[Moment], times: Sequence[float] = ()) -> None:
        self.moments = tuple(moments)
        self.times = tuple(times)
        """The time of each moment, in seconds since 1970."""
        self._now = -1
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._devlink = RecordedDevlink(self._text)

    @property
    def _moment(self) -> Moment:
        return self.moments[max(self._now, 0)]

    def begin(self) -> None:
        """Advance to the next moment, and after the last to the first."""
        self._now = (self._now + 1) % len(self.moments)

    def with_cached_names(self) -> RecordedKernel:
        return self

    def content(self, path: str) -> bytes:
        """A whole recorded file below sys/."""
        tree = self._moment.tree
        place = tree.resolve(f"sys/{path}")
        if place not in tree.files:
            number = tree.errors.get(place, errno.EISDIR)
            raise OSError(number, os.strerror(number), path)
        return tree.files[place]

    def entries(self, path: str) -> tuple[str, ...]:
        tree = self._moment.tree
        place = tree.resolve(f"sys/{path}")
        if place not in tree.folders:
            raise Absent(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return tuple(sorted(tree.folders[place]))

    def text(self, path: str) -> str:
        return self.content(path)[:TEXT_BYTES].decode("utf-8", "replace").strip()

    def link(self, path: str) -> str:
        tree = self._moment.tree
        folder, name = posixpath.split(f"sys/{path}")
        target = tree.links.get(f"{tree.resolve(folder)}/{name}")
        if target is None:
            raise Absent(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return posixpath.basename(target.rstrip("/"))

    def identity(self, path: str) -> int:
        """Always 0: a recording does not distinguish a device from its successor."""
        self._moment.tree.resolve(f"sys/{path}")
        return 0

    def open_files(self, paths: Sequence[str], size: int = FILE_BYTES) -> HeldFiles:
        # They follow the recording from moment to moment.
        return HeldFiles(self.content, paths, size)

    def rdma_devices(self) -> tuple[RdmaDevice, ...]:
        # From dev.json, or from the names in the other files.
        known = {row["ifname"]: row for row in self._moment.rdma.get("dev", ())}
        for kind in ("link", "statistic", "resource"):
            for row in self._moment.rdma.get(kind, ()):
                known.setdefault(row["ifname"], {})
        if not known:
            raise Absent(errno.EPROTONOSUPPORT, "no rdma/*.json in this recording")
        return tuple(
            RdmaDevice(
                int(row.get("ifindex", position)),
                name,
                str(row.get("node_guid", "")),
                str(row.get("protocol", "")),
                str(row.get("fw", "")),
            )
            for position, (name, row) in enumerate(known.items())
        )

    def rdma_ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        found: dict[int, str] = {}
        for kind in ("link", "statistic"):
            for row in self._moment.rdma.get(kind, ()):
                if row["ifname"] == device.name and "port" in row:
                    found.setdefault(row["port"], str(row.get("netdev", "")))
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no ports in rdma/*.json", device.name)
        return tuple(RdmaPort(number, netdev) for number, netdev in sorted(found.items()))

    def rdma_statistics(self, device: RdmaDevice, port: int) -> Mapping[str, int]:
        row = self._of_port("statistic", device, port)
        return {name: value for name, value in row.items() if name not in ("ifname", "ifindex", "port")}

    def rdma_optional_counters(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        supported = self._of_port("mode_supported", device, port).get(rdma_text.SUPPORTED, [])
        try:
            on = self._of_port("mode", device, port).get(rdma_text.ON, [])
        except Absent:
            on = []
        return {str(name): name in on for name in supported}

    def rdma_resources(self, device: RdmaDevice) -> Mapping[str, int]:
        for row in self._rdma("resource"):
            if row["ifname"] == device.name:
                return {kind: value for kind, value in row.items() if kind not in ("ifname", "ifindex")}
        raise Absent(errno.ENODEV, "not in rdma/resource.json", device.name)

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        found = rdma_text.parse_limits(self._text(f"ibv_devinfo/{device.name}.txt"))
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no limits in ibv_devinfo/*.txt", device.name)
        return found

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        names, values = ethtool_text.parse_statistics(self._ethtool(netdev, "stats"))
        if not names:
            raise Absent(errno.EOPNOTSUPP, "no counters", netdev)
        # The same object for the same names in all moments.
        return self._names.setdefault(names, names), values

    def ethtool_driver(self, netdev: str) -> str:
        return ethtool_text.parse_fields(self._ethtool(netdev, "driver")).get("driver", "")

    def ethtool_pause(self, netdev: str) -> Mapping[str, int]:
        return ethtool_text.parse("pause", self._ethtool(netdev, "pause"))

    def ethtool_link(self, netdev: str) -> Mapping[str, int]:
        return ethtool_text.parse("link", self._ethtool(netdev, "link"))

    def ethtool_fec(self, netdev: str) -> Mapping[str, int]:
        return ethtool_text.parse("fec", self._ethtool(netdev, "fec"))

    def ethtool_standard(self, netdev: str) -> Mapping[str, int]:
        # No file of a recording contains them.
        raise Absent(errno.EOPNOTSUPP, "not recorded", netdev)

    def ethtool_settings(self, netdev: str) -> Mapping[str, int]:
        return ethtool_text.parse("settings", self._ethtool(netdev, "settings"))

    def transceiver(self, netdev: str) -> Mapping[str, int]:
        found = ethtool_text.parse_transceiver(self._ethtool(netdev, "module"))
        if not found:
            raise Absent(errno.EOPNOTSUPP, "the transceiver measures nothing", netdev)
        return found

    def mac_address(self, netdev: str) -> str:
        permanent = ethtool_text.parse_fields(self._ethtool(netdev, "permaddr")).get("permanent address", "")
        current = read_or("", self.text, f"class/net/{netdev}/address")
        return choose_mac_address(LinkAddresses(permanent, "", current, self._has_master(netdev)), netdev)

    def virtual_functions(self, netdev: str) -> tuple[VirtualFunction, ...]:
        return parse_virtual_functions(self._text(f"ip/{netdev}.link.json"), netdev)

    def ip_facts(self, netdev: str) -> IpFacts:
        return self._moment.ip.facts(netdev)

    def ip_paths(self, pairs: Sequence[tuple[str, str]]) -> tuple[IpPath, ...]:
        return self._moment.ip.paths(pairs)

    def hostname(self) -> str:
        return given_hostname(self.text("../proc/sys/kernel/hostname"))

    def open_kernel_log(self, *, oldest: bool) -> KernelLog:
        if not any(KERNEL_LOG in one.tree.files for one in self.moments):
            raise Absent(errno.ENOENT, f"no {KERNEL_LOG} in this recording")
        return RecordedLog(lambda: self._moment.tree.files.get(KERNEL_LOG, b""), oldest=oldest)

    def dcb(self, netdev: str) -> Dcb:
        try:
            return self._moment.dcb[netdev]
        except KeyError:
            raise Absent(errno.EOPNOTSUPP, f"no dcb/{netdev}.*.json in this recording") from None

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> rdma_text.HeldObjects:
        objects = self._moment.objects
        if ("", kind) not in objects:
            raise Absent(errno.EOPNOTSUPP, f"no {rdma_text.OBJECT_FILES[kind]} in this recording")
        return rdma_text.HeldObjects(objects.get((device.name, kind), ()))

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        sets = self._moment.counter_sets
        if sets is None:
            raise Absent(errno.EOPNOTSUPP, f"no {rdma_text.COUNTER_SET_FILE} in this recording")
        return tuple(one for one in sets.get(device.name, ()) if one.port == port)

    def process(self, pid: int) -> ProcessFacts:
        try:
            return self._moment.processes[pid]
        except KeyError:
            raise Absent(errno.ESRCH, os.strerror(errno.ESRCH), f"proc/{pid}") from None

    def process_start(self, pid: int) -> float:
        return self.process(pid).created

    def devlink_reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        return self._devlink.reporters(instance)

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        return self._devlink.versions(instance)

    def devlink_vnic(self, instance: str) -> Mapping[str, int]:
        return self._devlink.vnic(instance)

    def _has_master(self, netdev: str) -> bool:
        # A recording may lack the link, or the list of the bond's members.
        if read_or("", self.link, f"class/net/{netdev}/master"):
            return True
        netdevs = self._moment.tree.folders.get("sys/class/net", ())
        return any(
            netdev in read_or("", self.text, f"class/net/{one}/bonding/slaves").split() for one in netdevs
        )

    def _ethtool(self, netdev: str, kind: str) -> str:
        return self._text(f"ethtool/{netdev}.{kind}")

    def _text(self, path: str) -> str:
        tree = self._moment.tree
        if number := tree.errors.get(path):
            raise OSError(number, os.strerror(number), path)
        content = tree.files.get(path)
        if content is None:
            raise Absent(errno.EOPNOTSUPP, f"no {path} in this recording")
        return content.decode("utf-8", "replace")

    def _rdma(self, kind: str) -> rdma_text.Rows:
        try:
            return self._moment.rdma[kind]
        except KeyError:
            raise Absent(errno.EOPNOTSUPP, f"no rdma/{kind}.json in this recording") from None

    def _of_port(self, kind: str, device: RdmaDevice, port: int) -> dict[str, Any]:
        for row in self._rdma(kind):
            if row["ifname"] == device.name and row.get("port") == port:
                return row
        raise Absent(errno.EINVAL, f"not in rdma/{kind}.json", f"{device.name}/{port}")


def load_recording(path: str) -> RecordedKernel:
    """Open a recorded host, or raise `RecordingError`: nothing is at this path, or a part of it is malformed."""
    return play_recording(load_tree(path), path)


def play_recording(whole: Tree, path: str) -> RecordedKernel:
    """The recorded host in this tree, which came from `path`."""
    tree = without_wrapper(whole)
    numbered = sorted((name for name in tree.folders[""] if name.isdecimal()), key=int)
    if len(numbered) > MAX_MOMENTS:
        raise RecordingError(f"recording {path}: over {MAX_MOMENTS} moments; remove some of its folders")
    parts = tree.parts() if numbered else {}
    trees = [parts[name] for name in numbered] or [tree]
    moments = [read_moment(one, path) for one in trees]
    if not any(PARTS & one.tree.folders[""] for one in moments):
        raise RecordingError(
            f"recording {path}: holds none of {', '.join(sorted(PARTS))}; name the folder that holds them"
        )
    return RecordedKernel(moments, moment_times(trees, path))
