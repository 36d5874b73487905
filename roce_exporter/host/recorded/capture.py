"""Record a host as the output of the standard tools, so that it replays to the same series anywhere.

What identifies the host, its users or their work is replaced, always in the same way for the same value within one capture; another
capture of the host may number them differently. `scrub` says what stays. Only the owner of the output can read it. Capture only reads,
and sends nothing anywhere. RDMA objects and their processes are recorded, too.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.errors import NO_DEVICE, UserError
from roce_exporter.host.inventory import CLASS, Listed, describe, list_devices
from roce_exporter.host.kernel import Absent, Kernel, entries_of, read_or
from roce_exporter.host.recorded import ethtool_text
from roce_exporter.host.recorded.archive import SUFFIX, write_tree
from roce_exporter.host.recorded.capture_tables import IpBook, ProcessBook, device_objects
from roce_exporter.host.recorded.dcb_text import KINDS
from roce_exporter.host.recorded.devlink_text import devlink_files, read_devlink
from roce_exporter.host.recorded.ip_text import print_virtual_functions
from roce_exporter.host.recorded.log_text import PATH as LOG_FILE
from roce_exporter.host.recorded.log_text import kernel_log, scrub_log
from roce_exporter.host.recorded.rdma_text import ON, SUPPORTED
from roce_exporter.host.recorded.recorded import TIME
from roce_exporter.host.recorded.scrub import Scrubber
from roce_exporter.host.recorded.tree import RecordingError, collect_tree
from roce_exporter.host.sources.configuration import texts
from roce_exporter.host.sources.hw_counters import SETTINGS
from roce_exporter.host.sources.netdev import COUNTER_FILES, STATISTICS_FILES, hardware_netdevs
from roce_exporter.host.sources.state_files import PARSERS
from roce_exporter.model import Device, Port
from roce_exporter.words import counted, word_list

LOG = logging.getLogger(__name__)
T = TypeVar("T")
DEVICE_TIMEOUT = 30.0
"""Seconds that one device may take; 1,024 GID slots of a software-emulated machine take one."""
DEVICE_FILES = ("fw_ver", "board_id", "hca_type", "hw_rev", "node_type", "node_guid", "sys_image_guid")
PORT_FILES = ("state", "phys_state", "rate", "link_layer")
NETDEV_FILES = (
    *word_list("mtu flags operstate dev_port phys_port_name bonding/slaves bonding/mode"),
    *COUNTER_FILES,
    *(f"statistics/{name}" for name in STATISTICS_FILES),
)

HOSTNAME = "proc/sys/kernel/hostname"

_NAMED = re.compile(
    r"(?:^|/)(?:net|infiniband|conf)/(?P<folder>[^/]+)|(?:^|/)lower_(?P<lower>[^/]+)$"
    r"|^(?:[0-9]+/)?(?:ethtool|dcb|ip|ibv_devinfo)/(?P<file>.+?)(?:\.link|\.[a-z_-]+)?\.[a-z]+$"
)
"""Where the path of a file has the name of a device."""
_NAMES = re.compile(r'"(?:dev|netdev|ifname|iif|oif|link|label)": "([^"]*)"')  # where JSON has one
_REPLACED = re.compile(rf"(?:[0-9]+/)?(?:proc/[0-9]+/.*|proc/stat|etc/passwd|{HOSTNAME}|{TIME})")
"""Files that were replaced as they were written."""
_CHOSEN = re.compile(r".*/(?:board_id|phys_port_name|temp[0-9]+_label)|(?:[0-9]+/)?devlink/info\.json")
"""Files whose text a firmware or a person chose."""
_COUNTERS = re.compile(r".*(?:\.stats|counters/[^/]+|/statistic\.json|\.vnic\.json)")
"""Files with the names of counters."""
KEPT = "names of drivers, models, firmware versions, PCI addresses, ordinary names of devices, counters, settings and times"
ONE_MOMENT = "counters that rise need several: `moments: 10` in a --config.file"
Part = dict[str, "str | SymbolicLink | int"]
"""Path below the recording to the text of a file, a link or the errno of a read."""
RdmaRows = dict[str, list[dict[str, Any]]]  # the rows of each `rdma -j` command


class CaptureError(UserError):
    """A capture that cannot be written; one line with the remedy."""


class SymbolicLink(str):
    """The target of a symbolic link."""

    __slots__ = ()


def check_output(output: str) -> None:
    """Refuse, before minutes of recording, what cannot be written."""
    if os.path.lexists(output):
        raise CaptureError(f"{output} exists already; choose another with --output")
    if not os.access(folder := os.path.dirname(output) or ".", os.W_OK | os.X_OK):
        raise CaptureError(f"{output}: {folder} is no folder to write to; choose another place with --output")


class Captured(NamedTuple):
    """What was written, and `missing`, what could not be recorded."""

    file: str
    devices: int
    moments: int
    files: int
    failed_reads: int
    replaced: str
    missing: Sequence[str]

    def __str__(self) -> str:
        failed = f", {self.failed_reads} failed reads (only a {SUFFIX} contains them)" * bool(
            self.failed_reads
        )
        more = f" ({ONE_MOMENT})" * (self.moments == 1)
        return (
            f"{self.file}: {counted(self.devices, 'device')}, {counted(self.moments, 'moment')}{more}, {counted(self.files, 'file')}{failed}; "
            f"readable by you only\nreplaced: {self.replaced}\nkept: {KEPT}"
        )


class _Reads(NamedTuple):
    in_flight: InFlight[str]
    failed: dict[str, None]

    async def __call__(self, what: str, work: Callable[[], T]) -> T | None:
        """The result of `work`; None, and one log line, if it fails or does not return."""
        try:
            return await call_in_worker(self.in_flight, what, work, DEVICE_TIMEOUT)
        except TimeoutError as error:
            LOG.warning("%s is left out: %s", what, error.strerror)
        except OSError as error:
            LOG.warning("%s is left out: %s", what, error)
        except Exception:
            LOG.exception("%s is left out: fault in the exporter", what)
        self.failed[what] = None
        return None


async def capture(
    kernel: Kernel, output: str, moments: int, interval: float, wall: Callable[[], float] = time.time
) -> Captured:
    """Record the host `moments` times, `interval` seconds apart.

    `wall` returns Unix time. CaptureError: the output exists already or cannot be written.
    """
    check_output(output)
    scrub = Scrubber()
    read = _Reads(InFlight(time.monotonic), {})
    whole: Part = {}
    devices = 0
    for moment in range(moments):
        if moment:
            await asyncio.sleep(interval)
        begun = wall()
        kernel.begin()
        listed = await read("the list of devices", partial(list_devices, kernel))
        devices = max(devices, len(listed or ()))
        prefix = f"{moment}/" if moments > 1 else ""
        part = await _moment(read, kernel, listed or (), scrub)
        if part:
            part[TIME] = f"{begun:.6f}\n"
        whole |= {prefix + path: content for path, content in part.items()}
    if not whole:
        raise CaptureError(f"nothing to record: {NO_DEVICE}")
    try:
        tree = collect_tree(
            (path, content if isinstance(content, SymbolicLink | int) else content.encode())
            for path, content in scrubbed(whole, scrub).items()
        )
        await write_tree(tree, output)
    except RecordingError as error:
        raise CaptureError(f"{output}: {error}") from None
    except OSError as error:
        raise CaptureError(f"{output}: {error.strerror}; choose another place with --output") from None
    files = len(tree.files) + len(tree.links)
    return Captured(output, devices, moments, files, len(tree.errors), scrub.replaced(), [*read.failed])


def scrubbed(whole: Part, scrub: Scrubber) -> Part:
    """The same files with everything replaced that was replaced in any of them, also in paths and targets of links."""
    for path, content in whole.items():
        if named := _NAMED.search(path):
            scrub.device(named[named.lastgroup or 0])
        if isinstance(content, str):
            names = _NAMES.findall(content) if path.endswith(".json") else ()
            if path.endswith("/bonding/slaves") or "/gid_attrs/ndevs/" in path:
                names = content.split()
            for name in names:
                scrub.device(name)
    return {
        scrub.known(path, counters=_COUNTERS.fullmatch(path) is not None): _scrubbed(path, content, scrub)
        for path, content in whole.items()
    }


def _scrubbed(path: str, content: str | SymbolicLink | int, scrub: Scrubber) -> str | SymbolicLink | int:
    if isinstance(content, SymbolicLink):
        return SymbolicLink(scrub.known(content))
    if isinstance(content, int) or _REPLACED.fullmatch(path):
        return content
    if path.endswith(LOG_FILE):
        return scrub_log(content, scrub)
    if _CHOSEN.fullmatch(path):
        return scrub.free(content)
    return scrub.known(content, counters=_COUNTERS.fullmatch(path) is not None)


async def _moment(read: _Reads, kernel: Kernel, listed: Iterable[Listed], scrub: Scrubber) -> Part:
    """All devices at one moment."""
    whole: Part = {}
    rdma: RdmaRows = {}
    devlink = []
    processes, addresses = ProcessBook(kernel, scrub), IpBook(kernel, scrub)
    for one in listed:
        device = await read(one.name, partial(describe, kernel, one))
        if device is None:
            continue
        scrub.keep(device.driver)
        await read(f"addresses of {one.name}", partial(addresses.add, device))
        calls = {
            one.name: partial(_device, kernel, device, scrub),
            f"objects of {one.name}": partial(device_objects, processes, device),
        }
        for what, call in calls.items():
            part, rows = await read(what, call) or ({}, {})
            whole |= part
            for kind, more in rows.items():
                rdma.setdefault(kind, []).extend(more)
        if found := await read(f"devlink of {one.name}", partial(read_devlink, kernel, device)):
            documents, links = found
            devlink.append(documents)
            whole |= {path: SymbolicLink(target) for path, target in links.items()}
    whole |= devlink_files(devlink)
    whole |= {f"rdma/{kind}.json": json.dumps(rows, indent=1) + "\n" for kind, rows in rdma.items()}
    if whole:
        whole |= await read("the kernel log", partial(kernel_log, kernel)) or {}
    return whole | addresses.files() | processes.files()


def _device(kernel: Kernel, device: Device, scrub: Scrubber) -> tuple[Part, RdmaRows]:
    below = f"{CLASS}/{device.name}"
    part: Part = {}
    _copy(kernel, part, below, DEVICE_FILES, change=scrub.text)
    if part:
        part[f"sys/{below}/node_desc"] = "host\n"
        part |= _function(kernel, device, below)
    _copy_all(kernel, part, f"{below}/hw_counters")
    for port in device.ports:
        _port(kernel, part, f"{below}/ports/{port.number}", port, scrub)
        for netdev in port.netdevs:
            _copy(kernel, part, f"class/net/{netdev.name}", NETDEV_FILES)
            for entry in entries_of(kernel, f"class/net/{netdev.name}"):
                if entry.startswith("lower_"):
                    target = SymbolicLink(f"../{entry.removeprefix('lower_')}")
                    part[f"sys/class/net/{netdev.name}/{entry}"] = target
    for _, name in hardware_netdevs(device):
        part |= _ethtool(kernel, name, scrub)
    part |= texts(kernel, device)
    if hostname := read_or(None, kernel.hostname):
        part[HOSTNAME] = scrub.hostname(hostname) + "\n"
    return part, _rdma(kernel, device, scrub)


def _port(kernel: Kernel, part: Part, below: str, port: Port, scrub: Scrubber) -> None:
    _copy(kernel, part, below, PORT_FILES)
    _copy_all(kernel, part, f"{below}/counters")
    _copy_all(kernel, part, f"{below}/hw_counters")
    for gid in port.gids:
        part[f"sys/{below}/gids/{gid.index}"] = scrub.gid(gid.address) + "\n"
        part[f"sys/{below}/gid_attrs/types/{gid.index}"] = gid.type + "\n"
        part[f"sys/{below}/gid_attrs/ndevs/{gid.index}"] = gid.netdev + "\n"


def _function(kernel: Kernel, device: Device, below: str) -> Part:
    """The PCI function below the device: its links and, to distinguish ports, its network devices."""
    if not (device.pci or device.driver):
        return {}
    function = device.pci or read_or(None, kernel.link, f"{below}/device") or device.name
    home = f"sys/devices/{function}"
    part: Part = {f"sys/{below}/device": SymbolicLink(f"../../../devices/{function}")}
    if device.driver:
        part[f"{home}/driver"] = SymbolicLink(f"../../bus/pci/drivers/{device.driver}")
    if device.physical_function:
        part[f"{home}/physfn"] = SymbolicLink(f"../{device.physical_function}")
    if device.function == "pf":
        part[f"{home}/sriov_totalvfs"] = kernel.text(f"{below}/device/sriov_totalvfs") + "\n"
    _copy(kernel, part, f"{below}/device", PARSERS, home=home)
    for monitor in entries_of(kernel, f"{below}/device/hwmon"):
        sensors = f"{below}/device/hwmon/{monitor}"
        temperatures = [name for name in entries_of(kernel, sensors) if name.startswith("temp")]
        _copy(kernel, part, sensors, temperatures, home=f"{home}/hwmon/{monitor}")
    for netdev in entries_of(kernel, f"{below}/device/net"):
        part[f"{home}/net/{netdev}"] = SymbolicLink(f"../../../class/net/{netdev}")
        _copy(kernel, part, f"class/net/{netdev}", NETDEV_FILES)
    return part


def _ethtool(kernel: Kernel, netdev: str, scrub: Scrubber) -> Part:
    """The output of ethtool and dcb for every part that a network device has."""
    printed: dict[str, Callable[[], str]] = {
        "driver": lambda: f"driver: {kernel.ethtool_driver(netdev)}\n",
        "stats": lambda: ethtool_text.print_statistics(*kernel.ethtool_statistics(netdev)),
        "pause": lambda: ethtool_text.print_values("pause", kernel.ethtool_pause(netdev)),
        "link": lambda: ethtool_text.print_values("link", kernel.ethtool_link(netdev)),
        "settings": lambda: ethtool_text.print_values("settings", kernel.ethtool_settings(netdev)),
        "fec": lambda: ethtool_text.print_values("fec", kernel.ethtool_fec(netdev)),
        "module": lambda: ethtool_text.print_transceiver(kernel.transceiver(netdev)),
        # The address that the series shows, also where `ethtool -P` would print `not set`.
        "permaddr": lambda: f"Permanent address: {scrub.text(kernel.mac_address(netdev))}\n",
    }
    part: Part = {}
    for kind, read in printed.items():
        if (text := _attempt(read)) is not None:
            part[f"ethtool/{netdev}.{kind}"] = text
    dcb = read_or({}, kernel.dcb, netdev)
    part |= {f"dcb/{netdev}.{kind}.json": json.dumps(dcb[kind]) + "\n" for kind in KINDS if kind in dcb}
    return part | _virtual_functions(kernel, netdev, scrub)


def _virtual_functions(kernel: Kernel, netdev: str, scrub: Scrubber) -> Part:
    """The VFs of a network device, and which PCI function and RDMA device each of them is."""
    found = read_or(None, kernel.virtual_functions, netdev)
    if not found:
        return {}
    part: Part = {f"ip/{netdev}.link.json": scrub.text(print_virtual_functions(found, netdev))}
    for one in found:
        function = f"class/net/{netdev}/device/virtfn{one.number}"
        if pci := read_or(None, kernel.link, function):
            part[f"sys/{function}"] = SymbolicLink(f"../../../../devices/{pci}")
            for device in entries_of(kernel, f"{function}/infiniband"):
                part[f"sys/devices/{pci}/infiniband/{device}/node_desc"] = "host\n"
    return part


def _rdma(kernel: Kernel, device: Device, scrub: Scrubber) -> RdmaRows:
    """The rows about this device of each `rdma -j` command."""
    netlink = device.netlink
    if netlink is None:
        return {}
    name = {"ifindex": netlink.index, "ifname": device.name}
    dev = {"node_guid": scrub.text(netlink.node_guid), "protocol": netlink.protocol, "fw": netlink.firmware}
    rows: RdmaRows = {"dev": [name | {key: text for key, text in dev.items() if text}]}
    rows["link"] = [
        name | {"port": port.number} | ({"netdev": port.netdev} if port.netdev else {})
        for port in read_or(None, kernel.rdma_ports, netlink) or ()
    ]
    if (objects := read_or(None, kernel.rdma_resources, netlink)) is not None:
        rows["resource"] = [name | dict(objects)]
    for port in device.ports:
        place = {"ifname": device.name, "port": port.number}
        if (statistics := read_or(None, kernel.rdma_statistics, netlink, port.number)) is not None:
            rows.setdefault("statistic", []).append(place | dict(statistics))
        if optional := read_or(None, kernel.rdma_optional_counters, netlink, port.number):
            rows.setdefault("mode_supported", []).append(place | {SUPPORTED: list(optional)})
            rows.setdefault("mode", []).append(place | {ON: [name for name, on in optional.items() if on]})
    return rows


def _attempt(read: Callable[[], str]) -> str | int | None:
    """The text, or the errno of the read; None if the host does not have it."""
    try:
        return read()
    except Absent:
        return None
    except OSError as error:
        return error.errno or errno.EIO


def _copy_all(kernel: Kernel, part: Part, folder: str) -> None:
    _copy(kernel, part, folder, tuple(name for name in entries_of(kernel, folder) if name not in SETTINGS))


def _copy(
    kernel: Kernel,
    part: Part,
    folder: str,
    names: Iterable[str],
    *,
    change: Callable[[str], str] = str,
    home: str = "",
) -> None:
    """The files of a folder, below `home` if the recording has them elsewhere."""
    for name in names:
        text = _attempt(partial(kernel.text, f"{folder}/{name}"))
        if text is not None:
            part[f"{home or f'sys/{folder}'}/{name}"] = f"{change(text)}\n" if isinstance(text, str) else text
