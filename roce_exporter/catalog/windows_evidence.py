"""Which public source has the spelling of a counter of Windows. None of them was seen on a machine of ours."""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.catalog.windows_names import (
    DIAGNOSTICS,
    PORT_QOS,
    PORT_TRAFFIC,
    RDMA_ACTIVITY,
    SEPARATOR,
    VF_DIAGNOSTICS,
)


class PublicSource(NamedTuple):
    """A public text that spells names of counters, and which names of which object it spells."""

    title: str
    used: bool
    """Whether programs use the names (scripts, configurations) or a manual lists them."""
    counters: tuple[tuple[str, tuple[str, ...]], ...]

    def spells(self, raw: str) -> bool:
        """Whether the text has this raw name: its object and its counter."""
        return any(
            raw == f"{one}{SEPARATOR}{counter}" for one, counters in self.counters for counter in counters
        )


PUBLIC_SOURCES = (
    PublicSource(
        "Microsoft's script Test-ClusterHealth.ps1",
        True,
        (
            (DIAGNOSTICS, ("Responder out of order sequence received",)),
            (
                PORT_TRAFFIC,
                (
                    "Packets Received Bad CRC Error",
                    "Packets Received Frame Length Error",
                    "Packets Received Symbol Error",
                    "Packets Received Discarded",
                    "Packets Outbound Discarded",
                    "Packets Outbound Errors",
                ),
            ),
        ),
    ),
    PublicSource(
        "a public configuration of Telegraf (win_perf_counters)",
        True,
        (
            (PORT_QOS, ("Bytes Received", "Bytes Sent", "Rcv Pause Frames", "Sent Pause Frames")),
            (
                RDMA_ACTIVITY,
                (
                    "RDMA Accepted Connections",
                    "RDMA Active Connections",
                    "RDMA Completion Queue Errors",
                    "RDMA Failed Connection Attempts",
                    "RDMA Inbound Bytes/sec",
                    "RDMA Outbound Bytes/sec",
                ),
            ),
        ),
    ),
    PublicSource(
        "a public list of counter paths for Hyper-V clusters",
        True,
        ((RDMA_ACTIVITY, ("RDMA Connection Errors",)),),
    ),
    PublicSource(
        "NVIDIA's manual of WinOF-2 23.10, Adapter Cards Counters",
        False,
        (
            (
                PORT_TRAFFIC,
                (
                    "Bytes Received",
                    "Packets Received",
                    "Packets Received Frame too long Error",
                    "Packets Received Unsupported opcode Error",
                    "Packets Received Frame undersize Error",
                    "Packets Received Fragments Error",
                    "Packets Received jabbers Error",
                ),
            ),
        ),
    ),
    PublicSource(
        "the revision history of NVIDIA's manual of WinOF-2",
        False,
        (
            (
                VF_DIAGNOSTICS,
                (
                    "CQ Overrun",
                    "Packets Received dropped due to lack of receive WQEs",
                    "Generated Packets dropped due to steering failure",
                    "Handled Packets dropped due to steering failure",
                ),
            ),
            (PORT_QOS, ("Sent Pause Duration",)),
        ),
    ),
    PublicSource(
        "NVIDIA's manual of WinOF-2, Receive Path Activity Monitoring, which does not name the object",
        False,
        ((DIAGNOSTICS, ("Minor Stall Watermark Reached", "Critical Stall Watermark Reached")),),
    ),
    PublicSource(
        "a blog about WinOF, the driver of ConnectX-3, whose object has another name",
        False,
        ((PORT_QOS, ("Rcv Pause Duration",)),),
    ),
)

UNPROVED = "no public source has the spelling"


def proof_of(raw: str) -> str:
    """The public source of a raw name's spelling, or that there is none."""
    return next((f"spelling of {one.title}" for one in PUBLIC_SOURCES if one.spells(raw)), UNPROVED)


def is_used(raw: str) -> bool:
    """Whether the spelling is from programs that use it, not from a manual or from general knowledge."""
    return any(one.used for one in PUBLIC_SOURCES if one.spells(raw))
