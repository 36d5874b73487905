"""The list of causes, everything that a verdict can name: `causes.txt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.catalog.table import CatalogError, sections
from roce_exporter.checks.finding import Side, Status, Sure
from roce_exporter.checks.health.sign import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.table import TableLine

STEPS = {
    "COUNTERS": "roce-exporter once | grep 'device=\"{device}\"'",
    "DMESG": "dmesg -T | grep -i -e {device} -e {netdev} -e AER",
}
_PARTS = ("likely", "wrong if", "next", "then")


def _cause(entry: TableLine) -> Cause:
    head, _, title = entry.head.partition(": ")
    name, side, health, runbook, sure, area = head.split(" ")
    parts: dict[str, list[str]] = {part: [] for part in _PARTS}
    found: list[str] = []
    for place, line in entry.more:
        part, colon, text = line.strip().partition(": ")
        if line.startswith("    "):
            found[-1] += f" {line.strip()}"
        elif colon and part in parts:
            found = parts[part]
            found.append(text)
        else:
            raise CatalogError(f"{place}: {line.strip()!r} is no part of a cause")
    return Cause(
        name,
        Side(side),
        Status[health.upper()],
        title,
        " ".join(parts["likely"]),
        tuple(_steps(parts["next"])),
        runbook,
        Sure(sure),
        " ".join(parts["wrong if"]),
        area,
        frozenset(" ".join(parts["then"]).split()),
    )


def _steps(found: list[str]) -> Iterator[str]:
    for step in found:
        word, _, rest = step.partition(" ")
        yield f"{STEPS[word]} {rest}".strip() if word in STEPS else step


CAUSES = tuple(
    _cause(entry)
    for _, entries in sections(
        "causes.txt", Path(__file__).with_name("causes.txt").read_text(encoding="utf-8")
    )
    for entry in entries
)
"""All causes, in order of harm among those of one health."""

EXPLAINS = {cause.name: cause.explains for cause in CAUSES if cause.explains}
"""Which causes can be consequences of another one on the same port: they are listed after it."""

_NAMED = {cause.name: cause for cause in CAUSES}

DEVICE_VANISHED = _NAMED["device_vanished"]
DRIVER_NOT_RESPONDING = _NAMED["driver_not_responding"]
DEVICE_ERROR = _NAMED["device_error"]
PCIE_FATAL = _NAMED["pcie_fatal"]
LINK_DOWN = _NAMED["link_down"]
PAUSE_STORM_TRANSMITTED = _NAMED["pause_storm_transmitted"]
NIC_WATCHDOG = _NAMED["nic_pause_watchdog"]
LINK_FLAPPING = _NAMED["link_flapping"]
POWER_INSUFFICIENT = _NAMED["power_insufficient"]
MODULE_FAULT = _NAMED["module_fault"]
DEVICE_WARNING = _NAMED["device_warning"]
LINK_INTERRUPTED = _NAMED["link_interrupted"]
LINK_LOST = _NAMED["link_lost"]
LEG_DOWN = _NAMED["leg_down"]
LINK_SLOW = _NAMED["link_slow"]
LINK_ERRORS = _NAMED["link_errors"]
CRC_ERRORS = _NAMED["crc_errors"]
RECEIVE_POWER_LOW = _NAMED["optics_receive_power_low"]
RECEIVE_POWER_HIGH = _NAMED["optics_receive_power_high"]
TRANSMIT_POWER_LOW = _NAMED["optics_transmit_power_low"]
TOO_HOT = _NAMED["too_hot"]
LASER_BIAS_HIGH = _NAMED["optics_bias_high"]
PCIE_ERRORS = _NAMED["pcie_errors"]
PCIE_NARROW = _NAMED["pcie_narrow"]
LOSSLESS_DROPS = _NAMED["lossless_drops"]
PCIE_CONGESTION = _NAMED["pcie_congestion"]
PORT_DROPS = _NAMED["port_drops"]
SLOW_RECEIVER = _NAMED["slow_receiver"]
DUPLICATE_ADDRESS = _NAMED["duplicate_address"]
IP_MISCONFIGURED = _NAMED["ip_misconfigured"]
NEIGHBOUR_UNRESOLVED = _NAMED["neighbour_unresolved"]
PATH_MTU = _NAMED["path_mtu"]
NO_ROUTE = _NAMED["no_route"]
PFC_MISMATCH = _NAMED["pfc_mismatch"]
GLOBAL_PAUSE = _NAMED["global_pause"]
MARKS_WITHOUT_CNPS = _NAMED["marks_without_cnps"]
CNPS_IGNORED = _NAMED["cnps_ignored"]
PAUSE_STORM_RECEIVED = _NAMED["pause_storm_received"]
PAUSE_RECEIVED = _NAMED["pause_received"]
CORRUPTION = _NAMED["corruption"]
PACKET_LOSS = _NAMED["packet_loss"]
RETRIES_EXCEEDED = _NAMED["retries_exceeded"]
PEER_SILENT = _NAMED["peer_silent"]
ACK_TIMEOUTS = _NAMED["ack_timeouts"]
QUEUE_PAIRS_IN_ERROR = _NAMED["queue_pairs_in_error"]
RESOURCES_EXHAUSTED = _NAMED["resources_exhausted"]
OUTSIDE_LOSSLESS = _NAMED["outside_lossless_priority"]
PCIE_SLOW = _NAMED["pcie_slow"]
MISCONFIGURED = _NAMED["misconfigured"]
BIT_ERRORS_RISING = _NAMED["bit_errors_rising"]
SOURCE_BROKEN = _NAMED["source_broken"]
REQUESTS_REFUSED = _NAMED["requests_refused"]
PEER_REQUESTS_REFUSED = _NAMED["peer_requests_refused"]
LOCAL_ERRORS = _NAMED["local_errors"]
RETRANSMISSIONS_UNCOUNTED = _NAMED["retransmissions_uncounted"]
RECEIVER_NOT_READY = _NAMED["receiver_not_ready"]
RECEIVE_QUEUE_EMPTY = _NAMED["receive_queue_empty"]
FAULT_COUNTED = _NAMED["fault_counted"]
UNKNOWN_MESSAGE = _NAMED["unknown_message"]
INCAST = _NAMED["incast"]
SET_DOWN = _NAMED["set_down"]
TAKEN_AWAY = _NAMED["taken_away"]
RESTARTED = _NAMED["restarted"]
