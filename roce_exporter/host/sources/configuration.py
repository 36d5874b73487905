"""Settings of no other source: ToS, RoCE version, congestion control. No file or folder is written.

Most of them cost a firmware command per file, so this is a source of the slow chain.

| location | driver | readable by |
| --- | --- | --- |
| class/infiniband/DEV/tc/PORT/traffic_class | mlx5 of MLNX_OFED and DOCA-OFED | all users |
| class/net/IF/ecn, class/net/IF/qos/trust | mlx5 of MLNX_OFED and DOCA-OFED | all users |
| kernel/debug/mlx5/PCI/cc_params | mlx5, drivers/infiniband/hw/mlx5/cong.c | root |
| kernel/debug/bnxt_re/PCI/cc_config | bnxt_re since 6.14, drivers/infiniband/hw/bnxt_re/debugfs.c | root |
| kernel/config/bnxt_re/DEV/ports/PORT/cc | Broadcom's own bnxt_re, after its tool has created the folder | root |
| kernel/config/irdma/DEV | Intel's own irdma, after the folder was created | root |
| class/infiniband/DEV/dcqcn/profiles/N | AMD's own ionic_rdma | all users |
| class/infiniband/DEV/ports/PORT/dcqcn_cc_param | hns_roce of openEuler | all users |
| kernel/config/rdma_cm/DEV/ports/PORT | RDMA-CM, after the folder was created | root |
| ../proc/sys/net/ipv4/tcp_ecn | the kernel's TCP; no effect on RoCE | all users |

The parameters of congestion control are named `role.parameter.unit`. Roles are those of IEEE 802.1Qau, on which DCQCN is built:
`np` is the notification point, which responds to marks with CNPs, `rp` the reaction point, which slows down when it receives
CNPs; `rtt` is RTT-based control, and `cc` is the rest. The parameter is our own name and ends in the base unit, if the
driver's unit is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from posixpath import normpath

from roce_exporter.catalog.table import sections
from roce_exporter.host.kernel import Absent, Kernel, Texts
from roce_exporter.host.sources.netdev import hardware_netdevs
from roce_exporter.host.sources.query_reader import SeveralReadings
from roce_exporter.model import WHOLE_DEVICE, Device
from roce_exporter.model.values import GARBAGE, check_counter, reason_of, unreadable
from roce_exporter.words import word_map

_TABLES = {
    heading: word_map(" ".join(line.head for line in lines))
    for heading, lines in sections("congestion_control.txt")
}
OFED = {role: _TABLES[f"ofed {role}"] for role in ("roce_rp", "roce_np")}
MLX5_DEBUGFS = _TABLES["mlx5 debugfs"]
BNXT_DEBUGFS, BNXT_CONFIGFS = _TABLES["bnxt debugfs"], _TABLES["bnxt configfs"]
UNITS = ("one", "us", "mbps", "percent", "per1024")  # a plain number, microseconds, Mbit/s, percent, 1/1024
_MEANT = {"cnp_802p_prio": "cnp_priority", "icnp_802p_prio": "cnp_priority"}
_NO_PARAMETER = ("lifespan",)


def plain(role: str, file: str) -> str:
    """The name for a parameter of a driver with unknown units; empty if the file is not a parameter."""
    if file in _NO_PARAMETER or not file.isidentifier():
        return ""
    return f"{role}.{_MEANT.get(file, file.lower())}.one"


Found = dict[str, "int | str"]  # a number by name, or the reason (a string) why it is missing
GLOBAL = "Global tclass="
"""The text in `traffic_class` before the number; the file is empty if no class is forced."""
VERSIONS = {"IB/RoCE v1": 1, "RoCE v2": 2}  # as the kernel writes them (drivers/infiniband/core/cache.c)
TCP_ECN = "../proc/sys/net/ipv4/tcp_ecn"
"""Relative to /sys; below a foreign root, that host's /proc must be mounted next to its /sys."""
PRIORITIES = range(8)


class ReadRecorder:
    """A kernel that records which files were read, and their content."""

    def __init__(self, kernel: Texts) -> None:
        self.texts: dict[str, str] = {}
        self._kernel = kernel

    def entries(self, path: str) -> tuple[str, ...]:
        return self._kernel.entries(path)

    def text(self, path: str) -> str:
        self.texts[path] = self._kernel.text(path)
        return self.texts[path]


def texts(kernel: Texts, device: Device) -> dict[str, str]:
    """The content of the files by their path below the recording's root, for a capture.

    Rules that force a traffic class on single connections are left out, because they contain addresses.
    """
    recorder = ReadRecorder(kernel)
    read_settings(recorder, device)
    found = {}
    for path, text in recorder.texts.items():
        lines = text.splitlines()
        if path.endswith("/traffic_class"):
            lines = [line for line in lines if line.startswith(GLOBAL)]
        found[normpath(f"sys/{path}")] = "".join(f"{line}\n" for line in lines)
    return found


def read_settings(kernel: Texts, device: Device) -> dict[tuple[int, str], Found]:
    """All settings by port and network device, as names and numbers; without ports that have no settings."""
    found: dict[tuple[int, str], Found] = {}
    first: dict[int, str] = {}
    for number, netdev in hardware_netdevs(device):
        first.setdefault(number, netdev)
        found[number, netdev] = _of_netdev(kernel, netdev)
    for port in device.ports:
        found[port.number, ""] = _of_port(kernel, device.name, port.number)
        # Congestion control belongs to the port: it is added to the first network device, unless that has it itself.
        of_first = found.setdefault((port.number, first.get(port.number, "")), {})
        if not any("." in name for name in of_first):
            of_first |= _congestion_control(kernel, device, port.number)
    found[WHOLE_DEVICE, ""] = _number(kernel, TCP_ECN, "tcp_ecn")
    return {place: values for place, values in found.items() if values}


def _of_netdev(kernel: Texts, netdev: str) -> Found:
    below = f"class/net/{netdev}"
    found: Found = {}
    for role, name in (("roce_np", "notification_enabled"), ("roce_rp", "reaction_enabled")):
        folder = f"{below}/ecn/{role}"
        found |= _files(kernel, folder, OFED[role])
        for priority in PRIORITIES:
            found |= _number(kernel, f"{folder}/enable/{priority}", f"{name}_{priority}")
    return found | _text(kernel, f"{below}/qos/trust", "trust_dscp", parse_trust)


def _of_port(kernel: Texts, device: str, port: int) -> Found:
    manager = f"kernel/config/rdma_cm/{device}/ports/{port}"
    path = f"class/infiniband/{device}/tc/{port}/traffic_class"
    forced = _text(kernel, path, "traffic_class_forced", lambda text: int(GLOBAL in text))
    if forced.get("traffic_class_forced") == 1:
        forced |= _text(kernel, path, "traffic_class", parse_traffic_class)
    return {
        **forced,
        **_number(kernel, f"{manager}/default_roce_tos", "cm_tos"),
        **_text(kernel, f"{manager}/default_roce_mode", "cm_roce_version", parse_version),
    }


def _congestion_control(kernel: Texts, device: Device, port: int) -> Found:
    of_device = f"class/infiniband/{device.name}"
    found: Found = {}
    if device.pci:
        found |= _files(kernel, f"kernel/debug/mlx5/{device.pci}/cc_params", MLX5_DEBUGFS)
        found |= _files(kernel, f"kernel/debug/bnxt_re/{device.pci}/cc_config", BNXT_DEBUGFS)
    if not found:
        found |= _files(kernel, f"kernel/config/bnxt_re/{device.name}/ports/{port}/cc", BNXT_CONFIGFS)
    found |= _all_files(kernel, f"kernel/config/irdma/{device.name}", "cc")
    found |= _all_files(kernel, f"{of_device}/ports/{port}/dcqcn_cc_param", "cc")
    return found | _profile(kernel, f"{of_device}/dcqcn")


def _profile(kernel: Texts, folder: str) -> Found:
    """The default profile of ionic, or the first one if the default is not reported."""
    profiles = sorted((name for name in _entries(kernel, f"{folder}/profiles") if name.isdecimal()), key=int)
    if not profiles:
        return {}
    default = str(_number(kernel, f"{folder}/match_default", "default").get("default", ""))
    below = f"{folder}/profiles/{default if default in profiles else profiles[0]}"
    return _all_files(kernel, f"{below}/roce_np", "np") | _all_files(kernel, f"{below}/roce_rp", "rp")


def _files(kernel: Texts, folder: str, names: Mapping[str, str]) -> Found:
    """The files of a folder that are in `names`, under the names given there."""
    present = _entries(kernel, folder)
    return _read(kernel, folder, ((file, name) for file, name in names.items() if file in present))


def _all_files(kernel: Texts, folder: str, role: str) -> Found:
    present = _entries(kernel, folder)
    return _read(kernel, folder, ((file, name) for file in present if (name := plain(role, file))))


def _read(kernel: Texts, folder: str, files: Iterable[tuple[str, str]]) -> Found:
    found: Found = {}
    for file, name in files:
        found |= _number(kernel, f"{folder}/{file}", name)
    return found


def _entries(kernel: Texts, folder: str) -> tuple[str, ...]:
    # Only root can read debugfs and configfs: without permission they count as absent, as on any other NIC.
    try:
        return kernel.entries(folder)
    except (Absent, PermissionError):
        return ()


def _number(kernel: Texts, path: str, name: str) -> Found:
    return _text(kernel, path, name, parse_number)


def _text(kernel: Texts, path: str, name: str, parse: Callable[[str], int | str]) -> Found:
    try:
        return {name: parse(kernel.text(path))}
    except (Absent, PermissionError):
        return {}
    except OSError as error:
        return {name: reason_of(error)}


def parse_number(text: str) -> int | str:
    """A number as drivers print settings, decimal or `0x..`, or the reason why it is missing.

    The file of OFED is empty if the firmware rejected the request.
    """
    word = text.partition("\n")[0].strip()
    if word.isdecimal():
        return check_counter(int(word))
    if word[:2] == "0x":
        try:
            return check_counter(int(word, 16))
        except ValueError:
            return GARBAGE
    return unreadable(word)


def parse_traffic_class(text: str) -> int | str:
    """The number of `Global tclass=106`; other lines hold rules for some connections only."""
    return parse_number(text.partition(GLOBAL)[2])


def parse_version(text: str) -> int | str:
    """1 for `IB/RoCE v1`, 2 for `RoCE v2`, or the reason why it is missing."""
    return VERSIONS.get(text, unreadable(text))


def parse_trust(text: str) -> int | str:
    """1 for `dscp`, 0 for `pcp`, or the reason why it is missing."""
    return {"dscp": 1, "pcp": 0}.get(text.lower(), unreadable(text))


CONFIGURATION = "configuration"
AGE = ("age",)
"""The name of the whole seconds since the values were read."""


def configuration_reader(kernel: Kernel, device: Device) -> SeveralReadings:
    """The settings of one device."""
    query = partial(read_settings, kernel, device)
    return SeveralReadings(CONFIGURATION, query, device.name, missing="no settings in sysfs")
