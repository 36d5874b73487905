"""The rows of the port dashboard on drops, the wire, optics and the host."""

from __future__ import annotations

from boards.colours import LOST, RECOVERED
from boards.host_series import SOMEWHERE
from boards.limits import PCIE_STALLS, steps
from boards.measures import meanings, moved, now, rate, still
from boards.model import Json, Panel, Query
from boards.panels import BARS, by_priority, coloured, lines
from boards.port_series import DIRECTED, event, limit_line
from boards.scopes import HOST, PORT, PRIORITY


def _light(way: str, title: str, alarms: tuple[str, ...]) -> Panel:
    """Optical power by lane in dBm, the usual unit for cables."""
    metric = f"roce_transceiver_{way}_power_watts"
    queries = [Query(f"10 * log10({now(metric, PORT)} * 1000 > 0)", LANES)]
    queries += [
        Query(
            f"10 * log10({now(f'roce_transceiver_{way}_power_{alarm}_alarm_watts', PORT)} * 1000 > 0)",
            f"{alarm} alarm {{{{netdev}}}}",
        )
        for alarm in alarms
    ]
    return lines(
        title,
        f"By lane, with the module's own alarm thresholds.\n\n{meanings(metric)}",
        "dBm",
        *queries,
        minimum=None,
        width=8,
        overrides=[_alarm()],
        empty=DARK,
        proof="optics",
    )


def _alarm() -> Json:
    return limit_line("byRegexp", "/alarm/")


def _by_priority(title: str, reading: str, name: str, empty: str) -> Panel:
    """The rate of a counter by priority, if it rose; otherwise one line that says it did not."""
    return lines(
        title,
        f"{reading}\n\n{meanings(name)}",
        "pps",
        Query(moved(name, PRIORITY), DIRECTED, proof=SOMEWHERE),
        Query(still(name, PRIORITY), "none in any priority", instead=True),
        overrides=by_priority(),
        empty=empty,
    )


DROPS_PANELS = (
    _by_priority(
        "Drops by priority",
        "Drops because the receive buffer was full. A lossless priority normally drops nothing.",
        "roce_buffer_discards_total",
        "The driver does not count by priority",
    ),
    _by_priority(
        "Marks by the NIC itself",
        "The host behind the NIC is congested, not the fabric.",
        "roce_nic_ecn_marked_packets_total",
        "The NIC does not mark, or does not count marks",
    ),
)


LANES = "{{netdev}} lane {{lane}}"
DARK = "No module measures it (copper cables never do; reading needs CAP_NET_ADMIN)"
WIRE_PANELS = (
    lines(
        "Errors on the wire",
        "Errors per interval. CRC and symbol errors lose packets; a rise on one port indicates its cable or module.\n\n"
        + meanings(
            "roce_phy_receive_crc_errors_total",
            "roce_phy_symbol_errors_total",
            "roce_transport_icrc_errors_total",
        ),
        "none",
        event("roce_phy_receive_crc_errors_total", "CRC errors"),
        event("roce_phy_symbol_errors_total", "symbol errors"),
        event("roce_transport_icrc_errors_total", "ICRC errors"),
        custom=BARS,
        width=8,
        empty="The driver does not count them",
    ),
    lines(
        "Forward error correction",
        "Corrected blocks are normal on fast links; a rise indicates a degrading cable. Uncorrectable blocks lose packets.\n\n"
        + meanings("roce_phy_fec_corrected_blocks_total", "roce_phy_fec_uncorrectable_blocks_total"),
        "cps",
        Query(f"sum({rate('roce_phy_fec_corrected_blocks_total', PORT)})", "corrected"),
        Query(f"sum({rate('roce_phy_fec_uncorrectable_blocks_total', PORT)})", "uncorrectable"),
        overrides=[coloured("corrected", RECOVERED), coloured("uncorrectable", LOST)],
        width=8,
        empty="The driver does not count FEC",
    ),
    lines(
        "Link losses",
        "Per interval, as counted by the kernel.\n\n" + meanings("roce_netdev_carrier_down_total"),
        "none",
        event("roce_netdev_carrier_down_total", "link lost"),
        custom=BARS,
        overrides=[coloured("link lost", LOST)],
        width=8,
        empty="The kernel does not count them",
    ),
    _light("receive", "Light received", ("low", "high")),
    _light("transmit", "Light sent", ("low", "high")),
    lines(
        "Laser current",
        f"By lane: it rises as the laser ages.\n\n{meanings('roce_transceiver_bias_amperes')}",
        "amp",
        Query(now("roce_transceiver_bias_amperes", PORT), LANES),
        Query(
            f"max by (netdev) ({now('roce_transceiver_bias_high_alarm_amperes', PORT)} > 0)",
            "high alarm {{netdev}}",
        ),
        overrides=[_alarm()],
        width=8,
        empty=DARK,
        proof="optics",
    ),
    lines(
        "Module temperature",
        f"With the module's own alarm threshold.\n\n{meanings('roce_transceiver_temperature_celsius')}",
        "celsius",
        Query(now("roce_transceiver_temperature_celsius", PORT), "module {{netdev}}"),
        Query(
            f"max by (netdev) ({now('roce_transceiver_temperature_high_alarm_celsius', PORT)} > 0)",
            "high alarm {{netdev}}",
        ),
        overrides=[_alarm()],
        minimum=None,
        width=8,
        empty=DARK,
        proof="optics",
    ),
    lines(
        "PCIe stalls",
        "Share of seconds in which the NIC waited for the host. With pause sent: a slow receiver. Dashed: alert limit.\n\n"
        + meanings("roce_pcie_write_stalled_seconds_total"),
        "percentunit",
        Query(f"max({rate('roce_pcie_write_stalled_seconds_total', PORT)})", "writes"),
        Query(f"max({rate('roce_pcie_read_stalled_seconds_total', PORT)})", "reads"),
        limits=steps(PCIE_STALLS),
        width=8,
        empty="The NIC does not count PCIe stalls",
    ),
    lines(
        "Chip temperature",
        meanings("roce_temperature_celsius"),
        "celsius",
        Query(f'roce_temperature_celsius{{sensor="asic",{HOST},device=~"$device"}}', "{{sensor}}"),
        minimum=None,
        width=8,
        empty="The driver does not expose it",
        proof="optics",
    ),
)
