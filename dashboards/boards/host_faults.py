"""The rows of the host dashboard on errors and drops, and on the host, its cables and optics."""

from __future__ import annotations

from boards.host_series import AT_NETDEV, AT_PRIORITY, QUIET, SOMEWHERE, bars, explained, rates
from boards.limits import NOT_READY, PCIE_STALLS, steps
from boards.measures import moved, now, rate, still
from boards.model import Query
from boards.panels import by_port, lines
from boards.scopes import HOST, PORT, PRIORITY

ERRORS_PANELS = (
    rates(
        "Lost packets, as seen by connections",
        "Out of sequence at the receiver, sequence-error NAKs at the sender. Zero in a lossless fabric.",
        ("roce_transport_out_of_sequence_total", "out of sequence"),
        ("roce_transport_packet_sequence_errors_total", "NAKs"),
        width=8,
        empty="The NIC does not count them",
    ),
    bars(
        "Timeouts and retries exceeded",
        "Events per interval. A timeout delays a connection by milliseconds to seconds; retries exceeded ends it.",
        ("roce_transport_ack_timeouts_total", "ack timeouts"),
        ("roce_transport_retries_exceeded_total", "retries exceeded"),
        width=8,
        empty="The NIC does not count them",
    ),
    rates(
        "Receiver not ready",
        "The peer had no receive request posted: its application is slow, not the fabric.",
        ("roce_transport_rnr_naks_received_total", ""),
        limits=steps(NOT_READY),
        width=8,
        empty="The NIC does not count them",
    ),
    lines(
        "Drops by priority",
        explained(
            "Packets that did not fit into the receive buffer. Lossless priorities normally drop nothing.",
            "roce_buffer_discards_total",
        ),
        "pps",
        Query(moved("roce_buffer_discards_total", PRIORITY), AT_PRIORITY, proof=SOMEWHERE),
        Query(still("roce_buffer_discards_total", PRIORITY), QUIET, instead=True),
        overrides=by_port(),
        width=8,
        empty="No drops, or the driver does not count by priority",
    ),
    rates(
        "Drops at the link",
        "All priorities. Received: the buffer was full. Sent: the link was down, or paused for too long.",
        ("roce_phy_receive_discards_total", "received"),
        ("roce_phy_transmit_discards_total", "sent"),
        legend=AT_NETDEV,
        width=8,
        empty="The driver does not count them",
    ),
    bars(
        "Corrupted packets",
        "Packets per interval with a wrong CRC: a bad cable, transceiver or connector here, or upstream of a cut-through switch.",
        ("roce_phy_receive_crc_errors_total", "CRC"),
        scope=PORT,
        legend=AT_NETDEV,
        width=8,
        empty="The driver does not count them",
    ),
)


MACHINE_PANELS = (
    lines(
        "PCIe stalls",
        explained(
            "Share of seconds in which the NIC waited for the host. Stalled writes together with pause sent: the host is a slow receiver. Dashed: alert limit.",
            "roce_pcie_write_stalled_seconds_total",
            "roce_pcie_read_stalled_seconds_total",
        ),
        "percentunit",
        Query(rate("roce_pcie_write_stalled_seconds_total", PORT), f"{AT_NETDEV} writes"),
        Query(rate("roce_pcie_read_stalled_seconds_total", PORT), f"{AT_NETDEV} reads"),
        limits=steps(PCIE_STALLS),
        width=8,
        empty="The NIC does not count PCIe stalls",
    ),
    lines(
        "PCIe lanes in use",
        explained(
            "Fewer lanes than possible make a slow receiver.",
            "roce_pcie_link_width_lanes",
            "roce_pcie_link_width_max_lanes",
        ),
        "none",
        Query(f"{now('roce_pcie_link_width_lanes', HOST)}", "{{device}}"),
        Query(f"{now('roce_pcie_link_width_max_lanes', HOST)}", "{{device}} possible"),
        width=8,
        empty="Not a PCIe device",
    ),
    bars(
        "PCIe errors",
        "Errors per interval. Corrected errors cost time; others lose transactions.",
        ("roce_pcie_correctable_errors_total", "corrected"),
        ("roce_pcie_nonfatal_errors_total", "nonfatal"),
        ("roce_pcie_fatal_errors_total", "fatal"),
        scope=HOST,
        legend="{{device}}",
        width=8,
        empty="The kernel reports no PCIe errors (AER is off)",
    ),
    lines(
        "Light received",
        explained(
            "By lane. A slow decrease indicates dirt or a bent fibre, a sudden one an unplugged or failing module.",
            "roce_transceiver_receive_power_watts",
        ),
        "dBm",
        Query(
            f"10 * log10({now('roce_transceiver_receive_power_watts', PORT)} * 1000 > 0)",
            f"{AT_NETDEV} lane {{{{lane}}}}",
        ),
        minimum=None,
        width=8,
        empty="No module measures light (copper cables never do; reading needs CAP_NET_ADMIN)",
        proof="optics",
    ),
    lines(
        "Temperatures",
        explained(
            "Modules and the NIC's chip.", "roce_transceiver_temperature_celsius", "roce_temperature_celsius"
        ),
        "celsius",
        Query(now("roce_transceiver_temperature_celsius", PORT), f"{AT_NETDEV} module"),
        Query(f"roce_temperature_celsius{{{HOST}}}", "{{device}} {{sensor}}"),
        minimum=None,
        width=8,
        empty="No sensor can be read",
        proof="optics",
    ),
    bars(
        "Link losses",
        "Number of times each link went down, per interval.",
        ("roce_netdev_carrier_down_total", ""),
        legend=AT_NETDEV,
        width=8,
        empty="The kernel does not count them",
    ),
)
