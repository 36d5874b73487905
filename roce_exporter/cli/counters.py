"""`roce-exporter counters`: show, enable and disable the kernel's counter sets of queue pairs.

The only command that changes a setting of the host; see `cli.counter_flags.HELP`.
"""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.cli.counter_flags import criteria_text
from roce_exporter.cli.output import print_text
from roce_exporter.host.kernel.counter_set_netlink import (
    MODE_AUTO,
    MODE_MANUAL,
    CounterMode,
    read_counter_mode,
    read_counter_sets,
)
from roce_exporter.host.kernel.counter_switch import OFF, switch_counter_sets
from roce_exporter.host.kernel.netlink import NetlinkSocket, open_kernel_socket
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from roce_exporter.model import RdmaDevice

ADVICE = {
    errno.EPERM: "not permitted: CAP_NET_ADMIN is needed, outside user namespaces and containers; run it as root, or as "
    "the unit roce-exporter-counters@.service does",
    errno.EBUSY: "busy: counter sets of another mode exist; they end with the processes that use them, those made by hand "
    'also with "rdma statistic qp unbind"; "rdma statistic qp show" lists them. If it lists none, this kernel still counts a '
    "set that the NIC had no room for: load the driver again",
    errno.EINVAL: "rejected: this kernel makes no counter sets with these criteria; try --auto=type or a newer kernel",
}

NO_OPTIONAL = "but this kernel binds no optional counters to sets (Linux 6.15 and newer do)"


class SetPort(NamedTuple):
    """A port whose counter sets are shown or switched."""

    device: RdmaDevice
    number: int

    def __str__(self) -> str:
        """The port as `rdma link` prints it."""
        return f"{self.device.name}/{self.number}"


async def counters(
    options: argparse.Namespace, open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket
) -> int:
    """Show or change the mode of the selected ports; returns 1 if a port fails or no device is selected."""
    rdma = RdmaNetlink(open_socket)
    try:
        ports = tuple(selected_ports(rdma, options))
    except OSError as error:
        return _complain(f"RDMA devices cannot be listed: {error.strerror}")
    if not ports:
        return _complain("no RDMA device matches; `rdma dev` lists them, and without flags all are selected")
    status = 0
    for port in ports:
        try:
            line = act(rdma, port, options, open_socket)
        except OSError as error:
            status = _complain(f"{port}: {explain(error)}")
            if error.errno == errno.EPERM:
                break  # every port would fail alike
        else:
            print_text(f"{port}: {line}\n")
    return status


def selected_ports(rdma: RdmaNetlink, options: argparse.Namespace) -> Iterator[SetPort]:
    """The ports of the devices that the flags select.

    Raises:
        OSError: RDMA netlink fails or does not exist.
    """
    include, exclude = options.device_include, options.device_exclude
    for device in rdma.devices():
        is_included = include is None or include.fullmatch(device.name)
        if is_included and not (exclude and exclude.fullmatch(device.name)):
            for port in rdma.ports(device):
                yield SetPort(device, port.number)


def act(
    rdma: RdmaNetlink,
    port: SetPort,
    options: argparse.Namespace,
    open_socket: Callable[[int], NetlinkSocket],
) -> str:
    """Do what the options say with one port; returns its mode as text.

    Raises:
        OSError: the kernel refuses.
    """
    wanted = CounterMode(MODE_AUTO, options.auto, options.optional) if options.action == "enable" else OFF
    if options.action != "show":
        try:
            switch_counter_sets(rdma, *port, wanted)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return "skipped: its driver has no counters per port"
            raise
    number = len(read_counter_sets(lambda: rdma, *port, open_socket))
    mode = read_counter_mode(rdma, *port)
    if options.action == "enable" and wanted.optional and not mode.optional:
        raise OSError(errno.EOPNOTSUPP, f"mode {describe(mode)}, {NO_OPTIONAL}")
    return f"mode {describe(mode)}, {number} counter {'set' if number == 1 else 'sets'}"


def describe(mode: CounterMode) -> str:
    """A mode as `rdma statistic qp mode` prints it."""
    if mode.mode == MODE_AUTO:
        return f"auto {criteria_text(mode.mask)}{' optional-counters on' if mode.optional else ''}"
    return "manual" if mode.mode == MODE_MANUAL else "none"


def explain(error: OSError) -> str:
    """What an error of the kernel means here, and the remedy."""
    return ADVICE.get(error.errno or 0, error.strerror or str(error))


def _complain(line: str) -> int:
    sys.stderr.write(f"roce-exporter: {line}\n")
    return 1
