"""ethtool over generic netlink: pause, link, forward error correction and the standard counters, all unprivileged.

Documentation/networking/ethtool-netlink.rst and include/uapi/linux/ethtool_netlink.h. The numbers are repeated here
because the headers of older distributions lack some. An attribute that the driver leaves out is left out here, never
reported as 0.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel import BYTES_PER_MEGABIT, Absent, netlink
from roce_exporter.host.kernel.names import encode_netdev
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from roce_exporter.host.kernel.transceiver import PageAddress

_NAME = re.compile(r"fec_symbols_err_(?P<low>\d{1,9})(?:_to_(?P<high>\d{1,9}))?(?:_lane_(?P<lane>\d{1,9}))?")


class Bin(NamedTuple):
    """A range of wrong symbols in a codeword, ends included, of the whole port or of one lane."""

    low: int
    high: int
    lane: int | None = None


def name_of(one: Bin) -> str:
    """The name of a bin."""
    span = str(one.low) if one.low == one.high else f"{one.low}_to_{one.high}"
    return f"fec_symbols_err_{span}" + ("" if one.lane is None else f"_lane_{one.lane}")


def bin_of(name: str) -> Bin | None:
    """The bin of a name; None if it is not the name of a bin."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    low, lane = int(match["low"]), match["lane"]
    return Bin(low, int(match["high"] or low), None if lane is None else int(lane))


NESTED = 0x8000
LINKMODES_GET, LINKSTATE_GET, PAUSE_GET, FEC_GET, MODULE_EEPROM_GET, STATS_GET = 4, 6, 21, 29, 31, 32
MODULE_DATA = 7
DEVICE_NAME, FLAGS, WITH_STATISTICS = 2, 3, 4
PAUSE_SWITCHES = {2: "autonegotiate", 3: "receive", 4: "transmit"}
PAUSE_COUNTS = {2: "transmit_frames", 3: "receive_frames", 4: "transmit_storm_events"}
FEC_COUNTS = {2: "corrected_blocks", 3: "uncorrectable_blocks", 4: "corrected_bits"}
STATISTICS = 5  # the attribute with the counters in replies about pause and FEC
FEC_BIN, BIN_LOW, BIN_HIGH, BIN_VALUE, BIN_LANES = 5, 2, 3, 4, 5
"""ETHTOOL_A_FEC_STAT_HIST (Linux 6.18), one for each bin, and the attributes in it."""
LINK_STATE = {2: "up", 5: "extended_state", 6: "extended_substate", 7: "down_events"}
_LINK_STATES = """
Autoneg: No partner detected, Ack not received, Next page exchange failed, No partner detected during force mode, FEC mismatch during override, No HCD
Link training failure: KR frame lock not acquired, KR link inhibit timeout, KR Link partner did not set receiver ready, Remote side is not ready yet
Logical mismatch: PCS did not acquire block lock, PCS did not acquire AM lock, PCS did not get align_status, FC FEC is not locked, RS FEC is not locked
Bad signal integrity: Large number of physical errors, Unsupported rate, Serdes reference clock lost, Serdes ALOS
No cable
Cable issue: Unsupported cable, Cable test failure
EEPROM issue
Calibration failure
Power budget exceeded
Overheat
Module: CMIS module is not in ModuleReady state
"""
LINK_STATES = tuple(
    (name, tuple(filter(None, names.split(", "))))
    for name, _, names in (line.partition(": ") for line in _LINK_STATES.strip().splitlines())
)
"""By number the name of each link extended state in the words of ethtool(8), and those of its substates, which are numbered from 1.

What each means is in the kernel's Documentation/networking/ethtool-netlink.rst; the driver is asked only of a port that is set up (IFF_UP).
"""
SPEED, DUPLEX, LANES = 5, 6, 9
UNKNOWN_SPEED = (0, 0xFFFFFFFF)

GROUPS = {
    0: ("eth-phy", ("SymbolErrorDuringCarrier",)),
    1: (
        "eth-mac",
        word_list(
            """
            FramesTransmittedOK SingleCollisionFrames MultipleCollisionFrames FramesReceivedOK
            FrameCheckSequenceErrors AlignmentErrors OctetsTransmittedOK FramesWithDeferredXmissions
            LateCollisions FramesAbortedDueToXSColls FramesLostDueToIntMACXmitError CarrierSenseErrors
            OctetsReceivedOK FramesLostDueToIntMACRcvError MulticastFramesXmittedOK BroadcastFramesXmittedOK
            FramesWithExcessiveDeferral MulticastFramesReceivedOK BroadcastFramesReceivedOK
            InRangeLengthErrors OutOfRangeLengthField FrameTooLongErrors
            """
        ),
    ),
    2: (
        "eth-ctrl",
        ("MACControlFramesTransmitted", "MACControlFramesReceived", "UnsupportedOpcodesReceived"),
    ),
    3: (
        "rmon",
        ("etherStatsUndersizePkts", "etherStatsOversizePkts", "etherStatsFragments", "etherStatsJabbers"),
    ),
}
"""Number of a group of standard counters: its name, and the names of its counters in the kernel's order.

The group of Linux 6.14 for external PHYs is not requested: older kernels reject a request that names it, and no RoCE NIC
has one.
"""

_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT)
"""How drivers and older kernels report an unsupported request (EINVAL: a group that the kernel does not know)."""


class EthtoolNetlink:
    """One socket of the ethtool family. Not thread-safe: make one per thread.

    Every request may raise, in addition to what its method documents:
        Absent: not supported by the driver, or the kernel (before 5.6) has no such family.
        Malformed: an OSError with EBADMSG, the reply violates the format.
        OSError: ENODEV, there is no such network device in this namespace; any other errno is the kernel's.
    """

    def __init__(self, open_socket: netlink.OpenSocket = netlink.open_kernel_socket) -> None:
        self._netlink = netlink.GenericNetlink("ethtool", open_socket)

    def pause(self, netdev: str) -> Mapping[str, int]:
        """See `Kernel.ethtool_pause`."""
        return decode_pause(self._request(PAUSE_GET, encode_header(netdev, 1, WITH_STATISTICS), netdev))

    def link(self, netdev: str) -> Mapping[str, int]:
        """See `Kernel.ethtool_link`."""
        state = self._request(LINKSTATE_GET, encode_header(netdev, 1), netdev)
        try:
            modes = self._request(LINKMODES_GET, encode_header(netdev, 1), netdev)
        except Absent:
            modes = b""
        return decode_link(state, modes)

    def fec(self, netdev: str) -> Mapping[str, int]:
        """See `Kernel.ethtool_fec`."""
        found = decode_fec(self._request(FEC_GET, encode_header(netdev, 1, WITH_STATISTICS), netdev))
        if not found:
            raise Absent(errno.EOPNOTSUPP, "the driver does not count FEC blocks", netdev)
        return found

    def standard(self, netdev: str) -> dict[str, int]:
        """See `Kernel.ethtool_standard`."""
        groups = b"".join(
            (
                netlink.encode_attribute(1, b""),
                netlink.encode_u32(2, len(GROUPS)),
                netlink.encode_u32(4, (1 << len(GROUPS)) - 1),
            )
        )
        found = decode_groups(
            self._request(
                STATS_GET, encode_header(netdev, 2) + netlink.encode_attribute(3 | NESTED, groups), netdev
            )
        )
        if not found:
            raise Absent(errno.EOPNOTSUPP, "the driver has no standard counters", netdev)
        return found

    def module_page(self, netdev: str, place: PageAddress) -> bytes:
        """A part of a transceiver's memory, at most 128 bytes (ETHTOOL_MSG_MODULE_EEPROM_GET).

        Absent: there is no module, the driver cannot read it, or CAP_NET_ADMIN is missing.
        """
        where = netlink.encode_u32(2, place.offset) + netlink.encode_u32(3, place.length)
        short = ((4, place.page), (5, place.bank), (6, place.i2c))
        where += b"".join(netlink.encode_attribute(kind, bytes([value])) for kind, value in short)
        try:
            answer = self._request(MODULE_EEPROM_GET, encode_header(netdev, 1) + where, netdev)
        except netlink.Refused as error:
            if error.errno in (errno.EPERM, errno.EACCES):
                raise Absent(error.errno, "reading a transceiver needs CAP_NET_ADMIN", netdev) from None
            raise
        data = netlink.decode_values(answer).get(MODULE_DATA, b"")
        if len(data) != place.length:
            raise netlink.Malformed(f"{len(data)} bytes of a transceiver's page instead of {place.length}")
        return data

    def close(self) -> None:
        self._netlink.close()

    def _request(self, command: int, payload: bytes, netdev: str) -> bytes:
        try:
            return netlink.only_payload(self._netlink.request(command, payload))
        except netlink.Refused as error:
            if error.errno in _NOT_SUPPORTED:
                raise Absent(error.errno, "not supported by the driver", netdev) from None
            raise


@netlink.remembered
def encode_header(netdev: str, kind: int, flags: int = 0) -> bytes:
    """The attribute that names the network device."""
    name = netlink.encode_attribute(DEVICE_NAME, encode_netdev(netdev) + b"\0")
    return netlink.encode_attribute(
        kind | NESTED, name + (netlink.encode_u32(FLAGS, flags) if flags else b"")
    )


@netlink.remembered
def decode_pause(answer: bytes) -> Mapping[str, int]:
    """The switches of global pause as 1 or 0, and the frames if they are counted."""
    return _named(answer, PAUSE_SWITCHES) | _nested(answer, PAUSE_COUNTS)


@netlink.remembered
def decode_link(state: bytes, modes: bytes) -> Mapping[str, int]:
    """The properties of a link from two replies, of which the second may be empty."""
    return _named(state, LINK_STATE) | decode_modes(modes)


def link_reason(state: int, substate: int | None) -> str:
    """As ethtool prints it: `Autoneg, No HCD`; the number where the name is not known."""
    name, names = LINK_STATES[state] if state < len(LINK_STATES) else (str(state), ())
    if substate is None:
        return name
    return f"{name}, {names[substate - 1] if 0 < substate <= len(names) else substate}"


def link_state(reason: str) -> dict[str, int]:
    """`extended_state` and `extended_substate` of what ethtool prints; empty if it is no reason of the kernel."""
    name, _, substate = reason.partition(", ")
    for state, (known, names) in enumerate(LINK_STATES):
        if name in (known, str(state)):
            numbers = {str(one): one for one in range(1, 256)} | {one: n for n, one in enumerate(names, 1)}
            more = {"extended_substate": numbers[substate]} if substate in numbers else {}
            return {"extended_state": state} | more
    return {}


@netlink.remembered
def decode_fec(answer: bytes) -> Mapping[str, int]:
    """Blocks, bits and the bins of the histogram; empty if the driver does not count them."""
    return _nested(answer, FEC_COUNTS) | dict(_bins(answer))


def decode_modes(answer: bytes) -> dict[str, int]:
    """`speed` in bytes per second, `full_duplex`, `lanes`; unknown values are left out."""
    values = netlink.decode_values(answer)
    found = {}
    if SPEED in values and (megabits := netlink.decode_number(values[SPEED])) not in UNKNOWN_SPEED:
        found["speed"] = megabits * BYTES_PER_MEGABIT
    if DUPLEX in values and (duplex := netlink.decode_number(values[DUPLEX])) in (0, 1):
        found["full_duplex"] = duplex
    if LANES in values and (lanes := netlink.decode_number(values[LANES])):
        found["lanes"] = lanes
    return found


def decode_groups(answer: bytes) -> dict[str, int]:
    """Standard counters by group and name; unknown groups and counters are ignored."""
    found: dict[str, int] = {}
    for kind, start, end in netlink.decode_attributes(answer):
        if kind != 4:  # noqa: PLR2004 - ETHTOOL_A_STATS_GRP
            continue
        number = netlink.decode_values(answer, start, end).get(2)
        group, names = GROUPS.get(netlink.decode_number(number) if number else -1, ("", ()))
        found |= {
            f"{group}-{names[counter]}": netlink.decode_number(answer[first:last])
            for part, begin, stop in netlink.decode_attributes(answer, start, end)
            if part == 4  # noqa: PLR2004 - ETHTOOL_A_STATS_GRP_STAT
            for counter, first, last in netlink.decode_attributes(answer, begin, stop)
            if counter < len(names)
        }
    return found


def _bins(answer: bytes) -> Iterator[tuple[str, int]]:
    inside = netlink.decode_values(answer).get(STATISTICS, b"")
    for kind, start, end in netlink.decode_attributes(inside):
        if kind != FEC_BIN:
            continue
        values = netlink.decode_values(inside, start, end)
        if not {BIN_LOW, BIN_HIGH, BIN_VALUE} <= values.keys():
            raise netlink.Malformed("a bin of the FEC histogram without bounds or value")
        low, high = netlink.decode_number(values[BIN_LOW]), netlink.decode_number(values[BIN_HIGH])
        yield name_of(Bin(low, high)), netlink.decode_number(values[BIN_VALUE])
        lanes = values.get(BIN_LANES, b"")
        for lane, begin in enumerate(range(0, len(lanes), 8)):
            yield name_of(Bin(low, high, lane)), netlink.decode_number(lanes[begin : begin + 8])


def _named(answer: bytes, names: Mapping[int, str]) -> dict[str, int]:
    values = netlink.decode_values(answer)
    return {name: netlink.decode_number(values[kind]) for kind, name in names.items() if kind in values}


def _nested(answer: bytes, names: Mapping[int, str]) -> dict[str, int]:
    """Counters in the statistics attribute; of an array the first number, which is for the whole port.

    For a counter that the driver does not fill, the kernel writes an empty array (net/ethtool/fec.c).
    """
    inside = netlink.decode_values(netlink.decode_values(answer).get(STATISTICS, b""))
    return {name: netlink.decode_number(inside[kind][:8]) for kind, name in names.items() if inside.get(kind)}
