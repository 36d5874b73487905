"""What a history does not show: absent facts are listed, so that "nothing wrong" never means "nothing seen"."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from roce_exporter.catalog.row import FULL, LEAN
from roce_exporter.checks.finding import NotChecked
from roce_exporter.view.host_view import PortView, View
from roce_exporter.words import counted


class Coverage(NamedTuple):
    """One kind of trouble that only some rows can show; any one of them is sufficient."""

    what: str
    rows: tuple[str, ...]
    needed: bool = False
    """Whether a port of which it is not seen cannot be called healthy."""


def _coverage(text: str) -> tuple[Coverage, ...]:
    """From lines `WHAT: ROWS after roce_`; an exclamation mark before the colon: it is needed."""
    lines = (line.partition(": ") for line in text.strip().splitlines())
    return tuple(
        Coverage(what.rstrip("!"), tuple(f"roce_{name}" for name in names.split()), what.endswith("!"))
        for what, _, names in lines
    )


COVERAGE = _coverage("""
state of the port!: port_up
losses of the link: netdev_carrier_down_total link_down_events_total port_link_downed_total
errors of the link: phy_symbol_errors_total phy_fec_uncorrectable_blocks_total phy_receive_crc_errors_total mac_frame_check_sequence_errors_total
bit errors before correction: phy_corrected_errors_total phy_fec_corrected_blocks_total
optical power and temperature of the transceiver: transceiver_temperature_celsius
PCIe width and speed: pcie_link_width_lanes
PCIe errors (AER): pcie_nonfatal_errors_total
PCIe stalls: pcie_write_stalled_seconds_total pcie_buffer_overflows_total pcie_inbound_congested
received pause: pfc_receive_pause_seconds_total pfc_receive_frames_total pfc_receive_xoff_frames_total
transmitted pause: pfc_transmit_pause_seconds_total pfc_transmit_frames_total pfc_transmit_xoff_frames_total
storms between two samples (the fast loop is not part of these samples): pfc_storm_detector_state pfc_storms_total
ECN marks: ecn_marked_packets_total
CNPs sent: cnp_sent_total
ignored CNPs: cnp_ignored_total
drops of lossless priorities: buffer_discards_total host_buffer_discards_total
loss on the path: transport_out_of_sequence_total transport_packet_sequence_errors_total
acknowledgement timeouts: transport_ack_timeouts_total
queue pairs that gave up: transport_retries_exceeded_total
receivers that are not ready: transport_rnr_naks_received_total out_of_buffer_total
corrupted packets (ICRC): transport_icrc_errors_total
settings compared with a profile: config_check_ok
""")
"""Per port."""

DEVICE_COVERAGE = _coverage("""
queue pairs in error, by owner: owner_queue_pairs
devlink health reporters: devlink_health_state
""")
"""Per device."""

AREAS = _coverage("""
driver: exporter_source_up device_info
PCIe: pcie_link_width_lanes pcie_nonfatal_errors_total
link: port_up
optics: transceiver_temperature_celsius
pause: pfc_receive_pause_seconds_total pfc_receive_frames_total pfc_receive_xoff_frames_total
drops: phy_receive_discards_total port_receive_discards_total
loss: transport_out_of_sequence_total transport_ack_timeouts_total
addresses: config_check_ok
settings: config_check_ok
""")
"""What causes are about, and the rows of which one shows that it was judged."""

FACTUAL_SOURCES = frozenset({"port", "rdma_netlink", "hw_counters", "counters", "netdev", "ethtool", "link"})
"""Sources without which a port cannot be called healthy; the others add detail, some with privileges only."""


def fine_of(host: View, wrong: Collection[str]) -> tuple[str, ...]:
    """The areas that every port shows, and of which no finding speaks; `wrong` has those of the findings."""
    ports = host.ports()
    return tuple(
        area.what
        for area in AREAS
        if ports and host.end > host.begin and area.what not in wrong
        for match in [{"check": "ip_address"} if area.what == "addresses" else {}]
        if all(any(port.current(row, **match) for row in area.rows) for port in ports)
    )


UNREAD = "settings that cannot be read here: "


def unseen_of(host: View) -> Iterator[NotChecked]:
    """What could not be judged: everywhere, or of one device or port."""
    if host.end <= host.begin:
        what = "anything that counts: there is only one moment, so no counter can have risen"
        yield NotChecked(
            f"{what}; `capture --config.file=FILE` with `moments: 10` in FILE records ten", needed=True
        )
    ports = host.ports()
    devices = [PortView(host, device) for device in host.devices()]
    yield from _blind(ports, COVERAGE)
    yield from _blind(devices, DEVICE_COVERAGE)
    if not any(track.now for track in host.tracks("roce_kernel_log_readable")):
        yield NotChecked("the kernel log: it is not followed, or the exporter may not read it")
    if not ports:
        yield NotChecked("any port: the devices have none that is visible", needed=True)
    for labels, up in host.current("roce_exporter_source_up"):
        if not up:
            source = labels["source"]
            yield NotChecked(f"the source {source}", labels["device"], "", source in FACTUAL_SOURCES)
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


def _blind(places: list[PortView], kinds: tuple[Coverage, ...]) -> Iterator[NotChecked]:
    """What no place shows, then per place what others show."""
    if not places:
        return
    blind = {
        (place.device, place.port): [one for one in kinds if not any(place.current(row) for row in one.rows)]
        for place in places
    }
    everywhere = [one for one in kinds if all(one in missing for missing in blind.values())]
    yield from (NotChecked(one.what, needed=one.needed) for one in everywhere)
    for place, missing in blind.items():
        yield from (NotChecked(one.what, *place, one.needed) for one in missing if one not in everywhere)


def _missing(port: PortView) -> Iterator[NotChecked]:
    here = port.device, port.port
    for track, value in port.current("roce_exporter_missing_facts"):
        if value:
            fact = track.labels["fact"]
            yield NotChecked(
                f"{fact} (the driver should report it, roce_exporter_missing_facts)", *here, True
            )
    ups = [value for track in port.tracks("roce_port_up") for _, value in track.points]
    if port.highest("roce_port_up") == 0 and not any(ups):
        yield NotChecked(
            "anything that needs a link: the port was down all the time, it may be unused", *here
        )
    checks = sorted(track.labels["check"] for track, _ in port.current("roce_config_check_unreadable"))
    if checks:
        yield NotChecked(f"{UNREAD}{', '.join(checks)}", *here)


def _unreadable(device: PortView) -> Iterator[NotChecked]:
    for track, count in device.current("roce_exporter_unreadable_values"):
        if count:
            what = f"{counted(int(count), 'value')} of its source {track.labels['source']} cannot be read"
            yield NotChecked(what, device.device)
