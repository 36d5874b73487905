"""The limits of the rules: those of the alerts, under the same names, so that a verdict and an alert agree.

`alerts/thresholds.yml` is the file that operators edit; a test compares the two. Times are in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORT, MEDIUM, LONG = 120.0, 300.0, 1800.0
"""Windows of rates."""

LIMITS: Mapping[str, Mapping[str, float]] = {
    "RocePfcLongPause": {"seconds": 0.4},
    "RocePfcTransmitPauseSaturated": {"ratio": 0.5},
    "RocePfcPauseHigh": {"ratio": 0.01},
    "RoceNicPauseWatchdogTripped": {"window": 600.0},
    "RoceNicPauseWatchdogWarning": {"window": 600.0},
    "RoceGlobalPauseActive": {"window": 900.0},
    "RocePfcOnUnexpectedPriority": {"window": 900.0},
    "RoceSlowReceiver": {"pause_ratio": 0.01, "stall_ratio": 0.1},
    "RoceEcnMarkedButNoCnpSent": {"marks_per_second": 10.0},
    "RoceCnpIgnored": {"per_second": 1.0, "ratio": 0.01},
    "RoceEcnMarkRatioHigh": {"ratio": 0.05, "packets_per_second": 1000.0},
    "RoceLosslessPriorityDrops": {"packets": 0.0, "window": 300.0},
    "RocePacketLossCritical": {"ratio": 0.001},
    "RocePacketLossHigh": {"ratio": 0.00001},
    "RoceAckTimeouts": {"window": 600.0, "events": 3.0},
    "RoceTransportRetriesExceeded": {"window": 600.0},
    "RoceReceiverNotReady": {"per_second": 10.0},
    "RoceIcrcErrors": {"window": 900.0},
    "RoceLinkFlapping": {"window": 3600.0, "events": 3.0},
    "RoceUncorrectedLinkErrors": {"window": 900.0, "errors": 0.0},
    "RoceCrcErrors": {"window": 900.0, "packets": 0.0},
    "RocePcieBackpressure": {"ratio": 0.1},
    "RocePcieBufferOverflow": {"window": 900.0},
    "RocePcieErrors": {"window": 900.0},
    "RoceTrafficOutsideLosslessPriority": {"ratio": 0.9, "bytes_per_second": 125_000_000.0},
    "RoceOwnerQueuePairsInError": {"queue_pairs": 1.0},
    "RoceResourcesNearlyExhausted": {"ratio": 0.9},
    "RoceWireReceiverCongested": {"senders": 4.0, "cnps_per_second": 100.0},
    "RoceWireOutsideLosslessPriority": {"ratio": 0.01, "packets_per_second": 100.0},
    "RoceWireRetransmissions": {"ratio": 0.001, "packets_per_second": 1000.0},
}


def limit(alert: str, key: str) -> float:
    """The limit of this alert."""
    return LIMITS[alert][key]
