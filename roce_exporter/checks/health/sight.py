"""What a history does not show: absent facts are listed, so that "nothing wrong" never means "nothing seen"."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.row import FULL
from roce_exporter.view.host_view import PortView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.view.host_view import View


class Sight(NamedTuple):
    """One kind of trouble that only some rows can show; any one of them is sufficient."""

    what: str
    rows: tuple[str, ...]
    source: str = ""
    """In lean and standard the rows have series only once something is wrong; then it is seen if this source works."""


SIGHTS = (
    Sight("state of the port", ("roce_port_up",)),
    Sight(
        "losses of the link",
        ("roce_netdev_carrier_down_total", "roce_link_down_events_total", "roce_port_link_downed_total"),
    ),
    Sight(
        "errors of the link",
        (
            "roce_phy_symbol_errors_total",
            "roce_phy_fec_uncorrectable_blocks_total",
            "roce_phy_receive_crc_errors_total",
            "roce_mac_frame_check_sequence_errors_total",
        ),
    ),
    Sight(
        "bit errors before correction",
        ("roce_phy_corrected_errors_total", "roce_phy_fec_corrected_blocks_total"),
    ),
    Sight("optical power and temperature of the transceiver", ("roce_transceiver_temperature_celsius",)),
    Sight("PCIe width and speed", ("roce_pcie_link_width_lanes",)),
    Sight("PCIe errors (AER)", ("roce_pcie_nonfatal_errors_total",)),
    Sight(
        "PCIe stalls",
        (
            "roce_pcie_write_stalled_seconds_total",
            "roce_pcie_buffer_overflows_total",
            "roce_pcie_inbound_congested",
        ),
    ),
    Sight(
        "received pause",
        (
            "roce_pfc_receive_pause_seconds_total",
            "roce_pfc_receive_frames_total",
            "roce_pfc_receive_xoff_frames_total",
        ),
    ),
    Sight(
        "transmitted pause",
        (
            "roce_pfc_transmit_pause_seconds_total",
            "roce_pfc_transmit_frames_total",
            "roce_pfc_transmit_xoff_frames_total",
        ),
    ),
    Sight(
        "storms between two samples (the fast loop is not part of these samples)",
        ("roce_pfc_storm_detector_state", "roce_pfc_storms_total"),
    ),
    Sight("ECN marks", ("roce_ecn_marked_packets_total",)),
    Sight("CNPs sent", ("roce_cnp_sent_total",)),
    Sight("ignored CNPs", ("roce_cnp_ignored_total",)),
    Sight("drops of lossless priorities", ("roce_buffer_discards_total", "roce_host_buffer_discards_total")),
    Sight(
        "loss on the path",
        ("roce_transport_out_of_sequence_total", "roce_transport_packet_sequence_errors_total"),
    ),
    Sight("acknowledgement timeouts", ("roce_transport_ack_timeouts_total",)),
    Sight("queue pairs that gave up", ("roce_transport_retries_exceeded_total",)),
    Sight(
        "receivers that are not ready", ("roce_transport_rnr_naks_received_total", "roce_out_of_buffer_total")
    ),
    Sight("corrupted packets (ICRC)", ("roce_transport_icrc_errors_total",)),
    Sight("settings compared with a profile", ("roce_config_check_ok", "roce_config_checks_passed")),
)
"""Per port."""

DEVICE_SIGHTS = (
    Sight("queue pairs in error, by owner", ("roce_owner_queue_pairs_in_error",)),
    Sight("devlink health reporters", ("roce_devlink_health_state",), "devlink"),
)
"""Per device."""

ALL = "all ports"


def unseen_of(host: View) -> Iterator[str]:
    """What could not be judged, a line each: `what` of all ports, or `device/port: what`."""
    if host.end <= host.begin:
        yield "anything that counts: there is only one moment, so no counter can have risen"
    ports = host.ports()
    devices = [PortView(host, device) for device in host.devices()]
    yield from _lines([(f"{port.device}/{port.port}", _blind(port, SIGHTS)) for port in ports])
    yield from _lines([(device.device, _blind(device, DEVICE_SIGHTS)) for device in devices])
    if not any(track.now for track in host.tracks("roce_kernel_log_readable")):
        yield "the kernel log: it is not followed, or the exporter may not read it"
    for device in devices:
        yield from _unreadable(device)
    for port in ports:
        yield from _missing(port)


def _blind(port: PortView, sights: tuple[Sight, ...]) -> list[str]:
    return [
        sight.what
        for sight in sights
        if not any(port.current(row) for row in sight.rows) and not _is_quiet(port, sight.source)
    ]


def _is_quiet(port: PortView, source: str) -> bool:
    """Whether the rows of a working source are missing because nothing is wrong."""
    sets = {track.labels["set"] for track in port.host.tracks("roce_exporter_metric_set_info")}
    return bool(sets - {FULL}) and bool(port.highest("roce_exporter_source_up", source=source))


def _lines(blind: list[tuple[str, list[str]]]) -> Iterator[str]:
    """A line per kind of trouble that no place shows, then a line per place and kind that others show."""
    if not blind:
        return
    everywhere = [what for what in blind[0][1] if all(what in whats for _, whats in blind)]
    yield from everywhere
    for place, whats in blind:
        yield from (f"{place}: {what}" for what in whats if what not in everywhere)


def _missing(port: PortView) -> Iterator[str]:
    place = f"{port.device}/{port.port}"
    for track, value in port.current("roce_exporter_missing_facts"):
        if value:
            yield f"{place}: {track.labels['fact']} (the driver should report it, roce_exporter_missing_facts)"
    if port.highest("roce_port_up") == 0 and not any(value for _, value in _ups(port)):
        yield f"{place}: anything that needs a link: the port was down all the time, it may be unused"
    checks = sorted(track.labels["check"] for track, _ in port.current("roce_config_check_unreadable"))
    if checks:
        yield f"{place}: settings that cannot be read here: {', '.join(checks)}"


def _unreadable(device: PortView) -> Iterator[str]:
    for track, count in device.current("roce_exporter_unreadable_values"):
        if count:
            yield f"{device.device}: {count:.0f} values of its source {track.labels['source']} cannot be read"


def _ups(port: PortView) -> list[tuple[float, float]]:
    return [point for track in port.tracks("roce_port_up") for point in track.points]
