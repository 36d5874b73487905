"""One rule of last resort: what should not rise, rises steadily, on a port of which no other rule says anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.checks.finding import Side
from roce_exporter.checks.health import causes
from roce_exporter.checks.health.sign import MEDIUM, Sign, rose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.sign import Cause, Rule
    from roce_exporter.view.host_view import PortView, Rise

FUNCTIONS, OWNED = "roce_vf_info", "roce_owner_queue_pairs"
"""Which function a VF is, and the owners of a device, where they are surveyed."""
STEADY = 10.0
"""A rise within `MEDIUM` that counts."""
ROUNDS = 3
"""Intervals in which it has to rise, or all where there are fewer: one burst is a restart, a job that ended, a stray."""


class Kind(NamedTuple):
    """What a group of counters is about."""

    cause: Cause
    side: Side | None
    names: tuple[str, ...]
    """Parts of names after `roce_`."""


DROPS = Kind(
    causes.PORT_DROPS,
    None,
    (
        "limit_drops_total",
        "disabled_drops_total",
        "port_receive_discards_total",
        "port_transmit_discards_total",
        "phy_receive_discards_total",
        "phy_transmit_discards_total",
        "host_congestion_discards_total",
        "queue_receive_discards_total",
        "vf_receive_drops_total",
        "vf_transmit_drops_total",
        "port_excessive_buffer_overruns_total",
        "device_internal_out_of_buffer_total",
        "mac_receive_lost_total",
        "mac_transmit_lost_total",
        "hardware_receive_drops_total",
        "hardware_transmit_drops_total",
    ),
)
LINE = Kind(
    causes.FAULT_COUNTED,
    Side.LINK,
    (
        "port_symbol_errors_total",
        "local_link_integrity_errors_total",
        "link_error_recoveries_total",
        "receive_remote_physical_errors_total",
        "lane_errors_total",
        "local_faults_total",
        "remote_faults_total",
        "mac_symbol_errors_total",
        "symbol_error_packets_total",
        "alignment_errors_total",
        "receive_jabbers_total",
        "rmon_jabbers_total",
        "carrier_errors_total",
        "port_receive_errors_total",
        "phy_receive_errors_total",
    ),
)
AWAY = Kind(
    causes.FAULT_COUNTED,
    Side.PEER,
    ("transport_unresponsive_peers_total", "transport_impaired_connections_total"),
)
LOST = Kind(
    causes.FAULT_COUNTED,
    Side.FABRIC,
    (
        "transport_retries_total",
        "transport_sequence_naks_sent_total",
        "collective_out_of_sequence_total",
        "payload_trimmed_packets_total",
    ),
)
HERE = Kind(
    causes.FAULT_COUNTED,
    Side.HOST,
    (
        "pcie_receive_errors_total",
        "pcie_transmit_errors_total",
        "memory_table_errors_total",
        "read_table_errors_total",
        "doorbells_dropped_total",
        "completion_queue_load_errors_total",
        "shared_receive_queue_errors_total",
        "shared_receive_queue_load_errors_total",
        "transport_responder_memory_errors_total",
        "transport_responder_table_errors_total",
        "phy_transmit_underruns_total",
        "transmit_jabbers_total",
        "port_transmit_errors_total",
        "phy_transmit_errors_total",
        "phy_transmit_mac_errors_total",
        "transport_unrecoverable_errors_total",
        "overrun_total",
        "steering_drops_total",
        "steering_discard_total",
        "quota_exceeded_command_total",
    ),
)
KINDS = (DROPS, LINE, AWAY, LOST, HERE)
"""The first kind whose names fit."""


def kind_of(name: str) -> Kind | None:
    """What a row's counter is about; None if the rule does not read it: see *Limits* of docs/diagnosis.md."""
    return next((kind for kind in KINDS if name.endswith(kind.names)), None)


HARMLESS = {DROPS: 1e-6, LINE: 1e-7, HERE: 1e-7, LOST: 1e-4}
"""Share of packets up to which a rise is no finding: a host drops a little of its own traffic, and EFA sends some again on other paths."""
OF_PACKETS = ("packets", "frames")
"""Units that are compared with packets."""

FAULT_ROWS = {
    row.name: kind
    for row in CATALOG
    if row.usual == 0 and (kind := kind_of(row.name))
    if "device" in row.labels and not row.name.startswith(("roce_switch", "roce_windows", "roce_owner"))
}
"""The counters that this rule reads, and what they are about."""
ROWS_OF_COUNTERS = FAULT_ROWS.keys() | {FUNCTIONS, OWNED}


def _rises(port: PortView) -> Iterator[Sign]:
    packets = [port.rose(f"roce_port_{way}_packets_total", MEDIUM) for way in ("receive", "transmit")]
    for name, kind in FAULT_ROWS.items():
        rise = port.rise(name, MEDIUM)
        if rise is None or rise.amount < STEADY:
            continue
        # Buffers drop and fabrics lose a few of many packets on healthy hosts, too.
        ratio = rise.amount / max(packets) if any(packets) and INDEX.named[name].unit in OF_PACKETS else 1.0
        if ratio <= HARMLESS.get(kind, 0.0):
            continue
        intervals = [amount for _, _, amount in port.stretches(name, 0.0, MEDIUM)]
        if sum(amount > 0 for amount in intervals) >= min(ROUNDS, len(intervals)):
            yield Sign(kind.cause, (f"{_said(port, name, rise)}, normally 0",), side=kind.side)


def _said(port: PortView, name: str, rise: Rise) -> str:
    """The rise in words: the first sentence of the row, and which VF where it is one's."""
    said = f"{rose(rise, name)}: {INDEX.named[name].help.partition('. ')[0].rstrip('.')}"
    functions = [
        f"{track.labels['vf']}{_function(port, track.labels['netdev'], track.labels['vf'])}"
        for track in port.tracks(name)
        if "vf" in track.labels and (one := port.rise_of(name, track, MEDIUM)) and one.amount
    ]
    return f"VF {', '.join(functions)}: {said}" if functions else said


def _function(port: PortView, netdev: str, vf: str) -> str:
    """PCI address and RDMA device of a VF, and whose processes use it, as far as they are seen here."""
    for track in port.tracks(FUNCTIONS, netdev=netdev, vf=vf):
        device = track.labels["rdma_device"]
        owners = {one.labels["owner"] for one in port.host.of(device, "", OWNED)} if device else set()
        return "".join(f" {one}" for one in (track.labels["pci"], device, *sorted(owners)) if one)
    return ""


COUNTER_RULES: tuple[Rule, ...] = (_rises,)
"""Rules of one port of which no other rule says anything."""
