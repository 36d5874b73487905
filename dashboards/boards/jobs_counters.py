"""The row of the jobs dashboard on congestion and loss by workload, where the NIC has counter sets per process."""

from __future__ import annotations

from boards.jobs_series import most, rate_of_workloads
from boards.measures import meanings
from boards.model import Panel, Query
from boards.panels import lines

SETS = (
    "Needs counter sets (mlx5, ionic) that an administrator switches on: `rdma statistic qp set link DEVICE/PORT auto type,pid on`. They are part of the port's "
    "counters: never add both."
)
NOT_COUNTED = "Not counted by workload: no counter sets"


def _counted(title: str, reading: str, unit: str, *series: tuple[str, str], **place: int) -> Panel:
    """The five workloads with the highest rates of each counter."""
    queries = [
        Query(
            most(5, rate_of_workloads(f"roce_owner_{name}_total")),
            f"{{{{workload}}}} {said}".strip(),
            proof="pfc-storm",
        )
        for name, said in series
    ]
    explained = meanings(*(f"roce_owner_{name}_total" for name, _ in series))
    return lines(title, f"{reading} {SETS}\n\n{explained}", unit, *queries, empty=NOT_COUNTED, **place)


COUNTER_PANELS = (
    _counted(
        "CNPs of workloads",
        "Handled: the workload sends through a congested point and is slowed down. Sent: it receives marked packets.",
        "pps",
        ("cnp_handled", "handled"),
        ("cnp_sent", "sent"),
    ),
    _counted(
        "Marked packets of workloads",
        "Packets that passed a full queue of a switch.",
        "pps",
        ("ecn_marked_packets", ""),
    ),
    _counted(
        "Loss and timeouts on this host",
        "Normally zero. Out of sequence: packets to the workload were lost; NAKs: packets that it sent.",
        "cps",
        ("transport_out_of_sequence", "out of sequence"),
        ("transport_packet_sequence_errors", "sequence NAKs"),
        ("transport_ack_timeouts", "timeouts"),
        ("transport_retries_exceeded", "retries exceeded"),
    ),
    _counted(
        "Retransmissions of workloads",
        "Packets that were sent again.",
        "pps",
        ("transport_retransmitted_packets", "retransmitted"),
    ),
    _counted(
        "Received by workloads",
        "Who uses the port.",
        "Bps",
        ("port_receive_bytes", ""),
    ),
    _counted(
        "Sent by workloads",
        "Who uses the port.",
        "Bps",
        ("port_transmit_bytes", ""),
    ),
)  # fmt: skip
