"""The sources of each network device behind a port: `ethtool -S`, pause, link, FEC, identity, the kernel's own counters.

Every network device has its own readers: if one fails or hangs, only that source on that device is lost. Of a RoCE LAG the
member ports are read, not the bond, which has no hardware. Data centre bridging is flattened to names and numbers, and read after
`ethtool -S`, because mlx5 returns the values cached by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.host.kernel import Absent, Kernel, read_or
from roce_exporter.host.kernel.dcb_netlink import ALGORITHMS, MODES, SELECTOR_DSCP, Dcb
from roce_exporter.host.kernel.ethtool_netlink import bin_of
from roce_exporter.host.sources.files import CounterFiles, FileReader
from roce_exporter.host.sources.query_reader import OneRequest, QueryReader
from roce_exporter.host.sources.state_files import FLAGS, parse_flags
from roce_exporter.model.values import check_counters, make_reading
from roce_exporter.words import word_list, word_map

if TYPE_CHECKING:
    from roce_exporter.host.kernel.rtnetlink import VirtualFunction
    from roce_exporter.model import Device, Reading

DCB = "dcb"

_NAMES = word_map(
    """
    pfc_cap=pfc_capacity delay=pfc_delay prio_pfc=pfc_enabled requests=pfc_requests indications=pfc_indications
    willing=ets_willing tc_bw=ets_transmit_bandwidth pg_bw=ets_receive_bandwidth tc_tsa=ets_algorithm
    prio_tc=priority_traffic_class prio_buffer=priority_buffer buffer_size=buffer_bytes total_size=buffer_total
    """
)
"""What we call the keys of the documents `pfc`, `ets` and `buffer`."""
_OF_PEER = word_list(
    "pfc_enabled ets_willing ets_transmit ets_algorithm priority_traffic_class dscp_priority"
)


def flatten(dcb: Dcb) -> dict[str, int]:
    """Every number, with a name that ends in its priority, traffic class, buffer or DSCP.

    Parts that the driver does not report are left out.
    """
    found = _numbers(dcb, "pfc", "ets", "buffer")
    if not found.get("pfc_delay", 1):
        del found["pfc_delay"]  # the driver does not report it
    found |= {f"max_rate_{number}": rate for number, rate in enumerate(dcb.get("max_rate", ()))}
    if "app" in dcb:
        mapped = _dscp_priority(dcb["app"])
        found |= {"dscp_mappings": len(mapped)} | mapped
    if "trust" in dcb:
        found["trust_dscp"] = int(dcb["trust"][:1] == (SELECTOR_DSCP,))
    if "dcbx" in dcb:
        found["dcbx_mode"] = sum(MODES[name] for name in dcb["dcbx"])
    # The settings that the other end of the link sent by DCBX.
    peer = _numbers(dcb, "peer_pfc", "peer_ets") | _dscp_priority(dcb.get("peer_app", {}))
    return found | {f"peer_{name}": value for name, value in peer.items() if name.startswith(_OF_PEER)}


def _numbers(dcb: Dcb, *kinds: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind in kinds:
        document: Dcb = dcb.get(kind, {})
        for key, value in document.items():
            if name := _NAMES.get(key):
                if isinstance(value, tuple):
                    numbers = [ALGORITHMS.get(one, one) for one in value] if key == "tc_tsa" else value
                    found |= {f"{name}_{at}": int(one) for at, one in enumerate(numbers)}
                else:
                    found[name] = int(value)
    return found


def _dscp_priority(app: Dcb) -> dict[str, int]:
    return {f"dscp_priority_{code}": priority for code, priority in app.get("dscp_prio", ())}


PAUSE = "pause"
LINK = "link"
FEC = "fec"
STANDARD = "ethernet"
NETDEV = "netdev"
SETTINGS = "settings"
TRANSCEIVER = "transceiver"
MAC_ADDRESS = "mac_address"
VIRTUAL_FUNCTIONS = "virtual_functions"
COUNTER_FILES = ("carrier_changes", "carrier_up_count", "carrier_down_count")
STATISTICS_FILES = ("rx_dropped", "rx_missed_errors")


def fec_numbers(found: Mapping[str, int]) -> dict[str, int]:
    """The kernel's FEC counters: `codewords_le_HIGH` for the bins of the port, `lane_0_codewords_1_to_3` for those of lanes."""
    bins = {one: value for name, value in found.items() if (one := bin_of(name))}
    numbers = {name: value for name, value in found.items() if bin_of(name) is None}
    total = 0
    of_port = sorted(one for one in bins if one.lane is None)
    for one in of_port:
        total += bins[one]
        numbers[f"codewords_le_{one.high}"] = total
    if of_port:
        numbers["codewords_le_+Inf"] = total
    of_lanes = {one: value for one, value in bins.items() if one.lane is not None}
    return numbers | {
        f"lane_{one.lane}_codewords_{one.low}_to_{one.high}": value for one, value in of_lanes.items()
    }


def read_netdev_identity(kernel: Kernel, netdev: str) -> dict[str, int]:
    """`MAC HOSTNAME` and 1. The name of a host that has none is empty.

    Raises:
        Absent: no such network device in this network namespace, or it has no address of its own.
        OSError: as raised by the kernel.
    """
    mac = kernel.mac_address(netdev)
    with suppress(Absent):
        return {f"{mac} {kernel.hostname()}": 1}
    return {f"{mac} ": 1}


class VfNumbers:
    """The VFs of one network device. Names are `VF NAME`; which device a VF is, is a name with the value 1.

    A VF's own counters are on the VF, which may be in a pod's network namespace or in a virtual machine. The physical function
    counts each VF's packets and drops as well, and it is here.
    """

    def __init__(self, kernel: Kernel, netdev: str) -> None:
        self._kernel = kernel
        self._netdev = netdev
        self._counts = False
        """Whether the driver counts. The kernel reports 0 for a driver that does not."""

    def __call__(self, found: Sequence[VirtualFunction]) -> Mapping[str, int]:
        """The values of these VFs."""
        self._counts = self._counts or any(any(one.counts.values()) for one in found)
        return dict(self._numbers(found))

    def _numbers(self, found: Sequence[VirtualFunction]) -> Iterator[tuple[str, int]]:
        for one in found:
            yield f"{one.number} {one.mac} {self._identity(one.number)}", 1
            values: Mapping[str, int] = {**one.settings, **(one.counts if self._counts else {})}
            for name, value in values.items():
                yield f"{one.number} {name}", value

    def _identity(self, number: int) -> str:
        """PCI address and RDMA device of a VF; each is empty if it is not visible here."""
        function = f"class/net/{self._netdev}/device/virtfn{number}"
        pci = read_or("", self._kernel.link, function)
        devices = read_or((), self._kernel.entries, f"{function}/infiniband") if pci else ()
        return f"{pci} {devices[0] if len(devices) == 1 else ''}"


def hardware_netdevs(device: Device) -> Iterator[tuple[int, str]]:
    """Port number and name of every network device with hardware behind it."""
    for port in device.ports:
        for netdev in port.netdevs:
            if netdev.role != "bond":
                yield port.number, netdev.name


class EthtoolStatistics(OneRequest):
    """The driver's private counters, `ethtool -S`. The set of names may change from one read to the next."""

    def __init__(self, kernel: Kernel, device: str, port: int, netdev: str) -> None:
        super().__init__(ETHTOOL, device, netdev)
        self._kernel = kernel
        self._port = port

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading."""
        names, values = self._kernel.ethtool_statistics(self.netdev)
        found = check_counters(values)
        return (make_reading(ETHTOOL, self._device, self._port, names, found, netdev=self.netdev),)


def _kernel_counters(kernel: Kernel, device: str, port: int, netdev: str) -> FileReader:
    """The kernel's own counters of one network device (Documentation/ABI/testing/sysfs-class-net*)."""

    def open_files() -> Iterator[CounterFiles]:
        below = f"class/net/{netdev}"
        # Absent where the network device is in another network namespace.
        present = kernel.entries(below)
        if names := [name for name in COUNTER_FILES if name in present]:
            yield CounterFiles(kernel, port, below, names)
        with suppress(Absent):
            present = kernel.entries(f"{below}/statistics")
            if names := [name for name in STATISTICS_FILES if name in present]:
                yield CounterFiles(kernel, port, f"{below}/statistics", names)

    return FileReader(NETDEV, device, open_files, netdev, missing="no counters of the kernel")


def _member_link(kernel: Kernel, netdev: str) -> Mapping[str, int]:
    """The link of a member port of a LAG, and whether it is set up: the port's own flags are those of the bond."""
    found = kernel.ethtool_link(netdev)
    is_up = parse_flags(read_or("", kernel.text, f"class/net/{netdev}/{FLAGS}").encode())
    return {**found, "set_up": is_up} if isinstance(is_up, int) else found


def netdev_readers(kernel: Kernel, device: Device) -> Iterator[EthtoolStatistics | QueryReader | FileReader]:
    """The readers of every network device of one RDMA device."""
    members = {one.name for port in device.ports for one in port.netdevs if one.role == "member"}
    for port, netdev in hardware_netdevs(device):
        where = (device.name, port, netdev)
        link = partial(_member_link, kernel) if netdev in members else kernel.ethtool_link
        yield _kernel_counters(kernel, *where)
        yield EthtoolStatistics(kernel, *where)
        for source, query, numbers in (
            (DCB, kernel.dcb, flatten),
            (PAUSE, kernel.ethtool_pause, dict),
            (SETTINGS, kernel.ethtool_settings, dict),
            (LINK, link, dict),
            (FEC, kernel.ethtool_fec, fec_numbers),
            (STANDARD, kernel.ethtool_standard, dict),
            (TRANSCEIVER, kernel.transceiver, dict),
            (MAC_ADDRESS, partial(read_netdev_identity, kernel), dict),
            (VIRTUAL_FUNCTIONS, kernel.virtual_functions, VfNumbers(kernel, netdev)),
        ):
            yield QueryReader(source, partial(query, netdev), *where, numbers=numbers)
