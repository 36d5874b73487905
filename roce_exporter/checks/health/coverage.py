"""What a history does not show: absent facts are listed, so that "nothing wrong" never means "nothing seen"."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.row import FULL, LEAN
from roce_exporter.checks.finding import NotChecked
from roce_exporter.view.host_view import PortView
from roce_exporter.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from roce_exporter.view.host_view import View


class Coverage(NamedTuple):
    """One kind of trouble that only some rows can show; any one of them is sufficient."""

    what: str
    rows: tuple[str, ...]
    needed: bool = False
    """Whether a port of which it is not seen cannot be called healthy."""


COVERAGE = (
    Coverage("state of the port", ("roce_port_up",), needed=True),
    Coverage(
        "losses of the link",
        ("roce_netdev_carrier_down_total", "roce_link_down_events_total", "roce_port_link_downed_total"),
    ),
    Coverage(
        "errors of the link",
        (
            "roce_phy_symbol_errors_total",
            "roce_phy_fec_uncorrectable_blocks_total",
            "roce_phy_receive_crc_errors_total",
            "roce_mac_frame_check_sequence_errors_total",
        ),
    ),
    Coverage(
        "bit errors before correction",
        ("roce_phy_corrected_errors_total", "roce_phy_fec_corrected_blocks_total"),
    ),
    Coverage("optical power and temperature of the transceiver", ("roce_transceiver_temperature_celsius",)),
    Coverage("PCIe width and speed", ("roce_pcie_link_width_lanes",)),
    Coverage("PCIe errors (AER)", ("roce_pcie_nonfatal_errors_total",)),
    Coverage(
        "PCIe stalls",
        (
            "roce_pcie_write_stalled_seconds_total",
            "roce_pcie_buffer_overflows_total",
            "roce_pcie_inbound_congested",
        ),
    ),
    Coverage(
        "received pause",
        (
            "roce_pfc_receive_pause_seconds_total",
            "roce_pfc_receive_frames_total",
            "roce_pfc_receive_xoff_frames_total",
        ),
    ),
    Coverage(
        "transmitted pause",
        (
            "roce_pfc_transmit_pause_seconds_total",
            "roce_pfc_transmit_frames_total",
            "roce_pfc_transmit_xoff_frames_total",
        ),
    ),
    Coverage(
        "storms between two samples (the fast loop is not part of these samples)",
        ("roce_pfc_storm_detector_state", "roce_pfc_storms_total"),
    ),
    Coverage("ECN marks", ("roce_ecn_marked_packets_total",)),
    Coverage("CNPs sent", ("roce_cnp_sent_total",)),
    Coverage("ignored CNPs", ("roce_cnp_ignored_total",)),
    Coverage(
        "drops of lossless priorities", ("roce_buffer_discards_total", "roce_host_buffer_discards_total")
    ),
    Coverage(
        "loss on the path",
        ("roce_transport_out_of_sequence_total", "roce_transport_packet_sequence_errors_total"),
    ),
    Coverage("acknowledgement timeouts", ("roce_transport_ack_timeouts_total",)),
    Coverage("queue pairs that gave up", ("roce_transport_retries_exceeded_total",)),
    Coverage(
        "receivers that are not ready", ("roce_transport_rnr_naks_received_total", "roce_out_of_buffer_total")
    ),
    Coverage("corrupted packets (ICRC)", ("roce_transport_icrc_errors_total",)),
    Coverage("settings compared with a profile", ("roce_config_check_ok",)),
)
"""Per port."""

AREAS = {
    "driver": ("roce_exporter_source_up", "roce_device_info"),
    "PCIe": ("roce_pcie_link_width_lanes", "roce_pcie_nonfatal_errors_total"),
    "link": ("roce_port_up",),
    "optics": ("roce_transceiver_temperature_celsius",),
    "pause": COVERAGE[8].rows,
    "drops": ("roce_phy_receive_discards_total", "roce_port_receive_discards_total"),
    "loss": ("roce_transport_out_of_sequence_total", "roce_transport_ack_timeouts_total"),
    "addresses": ("roce_config_check_ok",),
    "settings": ("roce_config_check_ok",),
}
"""What causes are about, and the rows of which one shows that it was looked at."""

DEVICE_COVERAGE = (
    Coverage("queue pairs in error, by owner", ("roce_owner_queue_pairs",)),
    Coverage("devlink health reporters", ("roce_devlink_health_state",)),
)
"""Per device."""


FACTUAL_SOURCES = frozenset({"port", "rdma_netlink", "hw_counters", "counters", "netdev", "ethtool", "link"})
"""Sources without which a port cannot be called healthy; the others add detail, some with privileges only."""


def _is_shown(port: PortView, area: str, rows: tuple[str, ...]) -> bool:
    match = {"check": "ip_address"} if area == "addresses" else {}
    return any(port.current(row, **match) for row in rows)


def fine_of(host: View, wrong: Collection[str]) -> tuple[str, ...]:
    """The areas that every port shows, and of which nothing is wrong; `wrong` has those of the findings."""
    ports = host.ports()
    return tuple(
        area
        for area, rows in AREAS.items()
        if ports
        and host.end > host.begin
        and area not in wrong
        and all(_is_shown(port, area, rows) for port in ports)
    )


def unseen_of(host: View) -> Iterator[NotChecked]:
    """What could not be judged: everywhere, or of one device or port."""
    if host.end <= host.begin:
        yield NotChecked(
            "anything that counts: there is only one moment, so no counter can have risen", needed=True
        )
    ports = host.ports()
    devices = [PortView(host, device) for device in host.devices()]
    yield from _blind_places([(port, _blind(port, COVERAGE)) for port in ports])
    yield from _blind_places([(device, _blind(device, DEVICE_COVERAGE)) for device in devices])
    if not any(track.now for track in host.tracks("roce_kernel_log_readable")):
        yield NotChecked("the kernel log: it is not followed, or the exporter may not read it")
    if not ports:
        yield NotChecked("any port: the devices have none that is visible", needed=True)
    for labels, up in host.current("roce_exporter_source_up"):
        if not up:
            source = labels["source"]
            yield NotChecked(
                f"what the source {source} reads: it fails", labels["device"], "", source in FACTUAL_SOURCES
            )
    for labels, _ in host.current("roce_exporter_metric_set_info"):
        if labels["set"] != FULL:
            yield NotChecked(
                f"what only metrics outside of the set {labels['set']} show (--metrics.set=full has them); roce_port_health is judged by all",
                needed=labels["set"] == LEAN,
            )
    for device in devices:
        yield from _unreadable(device)
    for port in ports:
        yield from _missing(port)


def _blind(port: PortView, sights: tuple[Coverage, ...]) -> list[Coverage]:
    return [sight for sight in sights if not any(port.current(row) for row in sight.rows)]


def _blind_places(blind: list[tuple[PortView, list[Coverage]]]) -> Iterator[NotChecked]:
    """What no place shows, then per place what others show."""
    if not blind:
        return
    everywhere = [sight for sight in blind[0][1] if all(sight in others for _, others in blind)]
    yield from (NotChecked(sight.what, needed=sight.needed) for sight in everywhere)
    for place, sights in blind:
        for sight in sights:
            if sight not in everywhere:
                yield NotChecked(sight.what, place.device, place.port, sight.needed)


def _missing(port: PortView) -> Iterator[NotChecked]:
    here = port.device, port.port
    for track, value in port.current("roce_exporter_missing_facts"):
        if value:
            fact = track.labels["fact"]
            yield NotChecked(
                f"{fact} (the driver should report it, roce_exporter_missing_facts)", *here, True
            )
    if port.highest("roce_port_up") == 0 and not any(value for _, value in _ups(port)):
        yield NotChecked(
            "anything that needs a link: the port was down all the time, it may be unused", *here
        )
    checks = sorted(track.labels["check"] for track, _ in port.current("roce_config_check_unreadable"))
    if checks:
        yield NotChecked(f"settings that cannot be read here: {', '.join(checks)}", *here)


def _unreadable(device: PortView) -> Iterator[NotChecked]:
    for track, count in device.current("roce_exporter_unreadable_values"):
        if count:
            yield NotChecked(
                f"{counted(int(count), 'value')} of its source {track.labels['source']} cannot be read",
                device.device,
            )


def _ups(port: PortView) -> list[tuple[float, float]]:
    return [point for track in port.tracks("roce_port_up") for point in track.points]
