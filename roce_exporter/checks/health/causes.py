"""The list of causes: everything that a verdict can name, in order of harm.

A cause is FAILED only where the port cannot carry a job's traffic or harms others, DEGRADED where an alert would open a ticket,
and HEALTHY where programs or the load are the matter, so that no node is drained for the fault of a peer's program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.health import port_causes, traffic_causes

if TYPE_CHECKING:
    from roce_exporter.checks.health.sign import Cause

CAUSES = (
    port_causes.DEVICE_VANISHED,
    port_causes.DRIVER_NOT_RESPONDING,
    port_causes.DEVICE_ERROR,
    port_causes.PCIE_FATAL,
    port_causes.LINK_DOWN,
    port_causes.PAUSE_STORM_TRANSMITTED,
    port_causes.NIC_WATCHDOG,
    port_causes.LINK_FLAPPING,
    port_causes.POWER_INSUFFICIENT,
    port_causes.MODULE_FAULT,
    port_causes.DEVICE_WARNING,
    port_causes.LINK_INTERRUPTED,
    port_causes.LINK_LOST,
    port_causes.LEG_DOWN,
    port_causes.LINK_SLOW,
    port_causes.LINK_ERRORS,
    port_causes.CRC_ERRORS,
    port_causes.RECEIVE_POWER_LOW,
    port_causes.RECEIVE_POWER_HIGH,
    port_causes.TRANSMIT_POWER_LOW,
    port_causes.TOO_HOT,
    port_causes.LASER_BIAS_HIGH,
    port_causes.PCIE_ERRORS,
    port_causes.PCIE_NARROW,
    traffic_causes.LOSSLESS_DROPS,
    traffic_causes.PCIE_CONGESTION,
    traffic_causes.PORT_DROPS,
    traffic_causes.SLOW_RECEIVER,
    traffic_causes.DUPLICATE_ADDRESS,
    traffic_causes.IP_MISCONFIGURED,
    traffic_causes.NEIGHBOUR_UNRESOLVED,
    traffic_causes.PATH_MTU,
    traffic_causes.NO_ROUTE,
    traffic_causes.PFC_MISMATCH,
    traffic_causes.GLOBAL_PAUSE,
    traffic_causes.MARKS_WITHOUT_CNPS,
    traffic_causes.CNPS_IGNORED,
    traffic_causes.PAUSE_STORM_RECEIVED,
    traffic_causes.PAUSE_RECEIVED,
    traffic_causes.CORRUPTION,
    traffic_causes.PACKET_LOSS,
    traffic_causes.RETRIES_EXCEEDED,
    traffic_causes.PEER_SILENT,
    traffic_causes.ACK_TIMEOUTS,
    traffic_causes.QUEUE_PAIRS_IN_ERROR,
    traffic_causes.RESOURCES_EXHAUSTED,
    traffic_causes.OUTSIDE_LOSSLESS,
    port_causes.PCIE_SLOW,
    traffic_causes.MISCONFIGURED,
    port_causes.BIT_ERRORS_RISING,
    traffic_causes.SOURCE_BROKEN,
    traffic_causes.REQUESTS_REFUSED,
    traffic_causes.PEER_REQUESTS_REFUSED,
    traffic_causes.LOCAL_ERRORS,
    traffic_causes.RETRANSMISSIONS_UNCOUNTED,
    traffic_causes.RECEIVER_NOT_READY,
    traffic_causes.RECEIVE_QUEUE_EMPTY,
    traffic_causes.FAULT_COUNTED,
    traffic_causes.UNKNOWN_MESSAGE,
    traffic_causes.INCAST,
    port_causes.SET_DOWN,
    port_causes.TAKEN_AWAY,
    port_causes.RESTARTED,
)
"""All causes, in order of harm among those of one health."""

SILENCE = (traffic_causes.PEER_SILENT, traffic_causes.ACK_TIMEOUTS)

_CONSEQUENCES: tuple[tuple[tuple[Cause, ...], tuple[Cause, ...]], ...] = (
    (
        (
            port_causes.DEVICE_VANISHED,
            port_causes.DRIVER_NOT_RESPONDING,
            port_causes.DEVICE_ERROR,
            port_causes.PCIE_FATAL,
        ),
        (
            port_causes.LINK_DOWN,
            port_causes.LINK_LOST,
            port_causes.LINK_INTERRUPTED,
            port_causes.LINK_FLAPPING,
            traffic_causes.SOURCE_BROKEN,
            traffic_causes.RETRIES_EXCEEDED,
            *SILENCE,
            traffic_causes.QUEUE_PAIRS_IN_ERROR,
        ),
    ),
    (
        (
            port_causes.LINK_DOWN,
            port_causes.LINK_LOST,
            port_causes.LINK_FLAPPING,
            port_causes.LINK_INTERRUPTED,
        ),
        (
            traffic_causes.RETRIES_EXCEEDED,
            *SILENCE,
            traffic_causes.PACKET_LOSS,
            traffic_causes.QUEUE_PAIRS_IN_ERROR,
            traffic_causes.NEIGHBOUR_UNRESOLVED,
            traffic_causes.NO_ROUTE,
            traffic_causes.IP_MISCONFIGURED,
            port_causes.RECEIVE_POWER_LOW,
            port_causes.LINK_SLOW,
            traffic_causes.LOCAL_ERRORS,
        ),
    ),
    ((port_causes.LINK_DOWN, port_causes.LINK_FLAPPING), (port_causes.LINK_INTERRUPTED,)),
    (
        (port_causes.LINK_ERRORS, port_causes.CRC_ERRORS),
        (
            traffic_causes.PACKET_LOSS,
            *SILENCE,
            traffic_causes.CORRUPTION,
            port_causes.BIT_ERRORS_RISING,
            traffic_causes.RETRIES_EXCEEDED,
            traffic_causes.QUEUE_PAIRS_IN_ERROR,
        ),
    ),
    (
        (traffic_causes.LOSSLESS_DROPS, traffic_causes.OUTSIDE_LOSSLESS),
        (traffic_causes.PACKET_LOSS, *SILENCE),
    ),
    (
        (port_causes.PCIE_NARROW, port_causes.PCIE_SLOW),
        (traffic_causes.PCIE_CONGESTION, traffic_causes.SLOW_RECEIVER),
    ),
    (
        (traffic_causes.PCIE_CONGESTION,),
        (
            traffic_causes.SLOW_RECEIVER,
            traffic_causes.LOSSLESS_DROPS,
            traffic_causes.RECEIVE_QUEUE_EMPTY,
            traffic_causes.RECEIVER_NOT_READY,
        ),
    ),
    (
        (traffic_causes.SLOW_RECEIVER, port_causes.PAUSE_STORM_TRANSMITTED),
        (
            traffic_causes.LOSSLESS_DROPS,
            traffic_causes.PACKET_LOSS,
            *SILENCE,
            traffic_causes.RETRIES_EXCEEDED,
        ),
    ),
    ((port_causes.PAUSE_STORM_TRANSMITTED, port_causes.NIC_WATCHDOG), (traffic_causes.SLOW_RECEIVER,)),
    (
        (traffic_causes.PAUSE_STORM_RECEIVED, traffic_causes.PAUSE_RECEIVED),
        (*SILENCE, traffic_causes.RETRIES_EXCEEDED),
    ),
    ((traffic_causes.PAUSE_STORM_RECEIVED, traffic_causes.INCAST), (traffic_causes.PAUSE_RECEIVED,)),
    (
        (
            traffic_causes.NO_ROUTE,
            traffic_causes.IP_MISCONFIGURED,
            traffic_causes.NEIGHBOUR_UNRESOLVED,
            traffic_causes.DUPLICATE_ADDRESS,
            traffic_causes.PATH_MTU,
        ),
        (
            traffic_causes.RETRIES_EXCEEDED,
            *SILENCE,
            traffic_causes.QUEUE_PAIRS_IN_ERROR,
            traffic_causes.PACKET_LOSS,
        ),
    ),
    ((traffic_causes.CORRUPTION,), (traffic_causes.PACKET_LOSS, *SILENCE)),
    ((traffic_causes.PACKET_LOSS,), (*SILENCE,)),
    (
        (traffic_causes.RETRIES_EXCEEDED,),
        SILENCE,
    ),
    (
        (traffic_causes.RETRIES_EXCEEDED, *SILENCE),
        (traffic_causes.QUEUE_PAIRS_IN_ERROR, traffic_causes.LOCAL_ERRORS),
    ),
    (
        (
            traffic_causes.RECEIVER_NOT_READY,
            traffic_causes.REQUESTS_REFUSED,
            traffic_causes.LOCAL_ERRORS,
            traffic_causes.PEER_REQUESTS_REFUSED,
        ),
        (traffic_causes.QUEUE_PAIRS_IN_ERROR,),
    ),
    ((port_causes.TOO_HOT,), (port_causes.LASER_BIAS_HIGH,)),
)


def _explains(cause: Cause) -> frozenset[str]:
    return frozenset(one.name for causes, others in _CONSEQUENCES if cause in causes for one in others)


EXPLAINS = {cause.name: found for cause in CAUSES if (found := _explains(cause))}
"""Which causes can be consequences of another one on the same port: they are listed after it."""
