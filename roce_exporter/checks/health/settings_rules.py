"""Rules about settings: the results of the audit, RoCE's and those of the IP side, and counters that a wrong setting moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.health import traffic_causes
from roce_exporter.checks.health.sign import Sign
from roce_exporter.words import duration, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.checks.health.sign import Cause, Rule
    from roce_exporter.view.host_view import PortView

WINDOW = 600.0
"""Seconds in which the counters below are compared."""
OVERSIZED = 10.0
"""Packets within the window: a single one can be a stray."""

IP_CHECKS: Mapping[str, Cause] = {
    **dict.fromkeys(
        ("ip_address", "ip_rule", "ip_route", "rp_filter", "arp_ignore", "arp_announce"),
        traffic_causes.IP_MISCONFIGURED,
    ),
    "neighbour": traffic_causes.NEIGHBOUR_UNRESOLVED,
    "duplicate_address": traffic_causes.DUPLICATE_ADDRESS,
    "path_mtu": traffic_causes.PATH_MTU,
}
"""Checks of the IP side by what a failure means; all others are settings of RoCE."""

MTU_COUNTERS = (
    ("roce_phy_receive_oversized_total", "packets longer than the port accepts"),
    ("roce_phy_receive_mtu_errors_total", "packets longer than the MTU"),
    ("roce_port_receive_fragments_total", "RDMA packets received as fragments"),
)


def _checks(port: PortView) -> Iterator[Sign]:
    for track, ok in port.current("roce_config_check_ok"):
        if not ok:
            check = track.labels["check"]
            cause = IP_CHECKS.get(check, traffic_causes.MISCONFIGURED)
            yield Sign(cause, (f"check {check} of {track.labels['netdev'] or 'the port'} fails",))


def _no_route(port: PortView) -> Iterator[Sign]:
    rise = port.rise("roce_port_transmit_no_route_total", WINDOW)
    if rise and rise.amount:
        yield Sign(
            traffic_causes.NO_ROUTE,
            (f"{number(rise.amount)} RDMA packets without a route within {duration(rise.seconds)}",),
        )


def _mtu(port: PortView) -> Iterator[Sign]:
    for name, what in MTU_COUNTERS:
        rise = port.rise(name, WINDOW)
        if rise and rise.amount >= OVERSIZED:
            yield Sign(
                traffic_causes.PATH_MTU, (f"{number(rise.amount)} {what} within {duration(rise.seconds)}",)
            )


SETTINGS_RULES: tuple[Rule, ...] = (_checks, _no_route, _mtu)
"""Rules of one port."""
