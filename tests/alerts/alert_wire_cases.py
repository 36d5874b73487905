"""The alerts on packets that a capture sees, and how they fire. In each case a capture and a host are scraped under one name."""

from __future__ import annotations

from alert_scenario import PORT, Case, Level, Rate

ON = Level(sick=1, healthy=1)
SOURCE, DESTINATION = "10.1.0.<host>", "10.2.0.<host>"
PAIR = f'source="{SOURCE}",destination="{DESTINATION}"'
OTHER = 'source="other",destination="other"'


def address(text: str, device: str = "mlx5_0", index: int = 3, kind: str = "RoCE v2") -> str:
    """A series of a host's GID table."""
    at = f'device="{device}",port="1",index="{index}",type="{kind}",netdev="ens1f0np0"'
    return f'roce_gid_info{{{at},address="{text}"}}'


HOST_OF_SOURCE = {
    # both versions of RoCE have an entry of their own for one address
    address(SOURCE): ON,
    address(SOURCE, index=2, kind="IB/RoCE v1"): ON,
}
HOST_OF_DESTINATION = {address(DESTINATION, "mlx5_1"): ON}
SEEN = {f"roce_wire_cnps_total{{{PAIR}}}": Rate(sick=0)}
"""Every pair that a capture shows has a count of CNPs."""


def cnps(destination: str) -> str:
    """CNPs from the congested receiver to one of its senders."""
    return f'roce_wire_cnps_total{{source="{SOURCE}",destination="{destination}"}}'


def packets(operation: str, pair: str = PAIR) -> str:
    """Packets of a pair."""
    return f'roce_wire_packets_total{{{pair},operation="{operation}"}}'


SENDERS = {cnps(f"10.2.{number}.<host>"): Rate(sick=200 + number, below=99) for number in range(4)}
OUTSIDE = "roce_wire_outside_lossless_packets_total"
RETRANSMITTED = "roce_wire_retransmitted_packets_total"

PEERS = (
    Case(
        "RoceWireReceiverCongested",
        SENDERS,
        labels=f'source="{SOURCE}"',
        background={
            **HOST_OF_SOURCE,
            address("10.2.0.<host>", "mlx5_1"): ON,
            cnps("10.2.4.<host>"): Rate(sick=20),
            # pairs without series of their own name no peer
            f"roce_wire_cnps_total{{{OTHER}}}": Rate(sick=9000),
        },
    ),
    Case(
        "RoceWireReceiverCongested",
        SENDERS,
        name="of unknown hosts",
        labels=f'source="{SOURCE}"',
    ),
    Case(
        "RoceWireOutsideLosslessPriority",
        {
            f"{OUTSIDE}{{{PAIR}}}": Rate(sick=1000, below=490),
            packets("write"): Rate(sick=50_000, below=90),
        },
        labels=PAIR,
        background={
            **SEEN,
            **HOST_OF_SOURCE,
            **HOST_OF_DESTINATION,
            # CNPs have a priority of their own
            packets("cnp"): Rate(sick=1_000_000),
            packets("write", OTHER): Rate(sick=50_000),
            f"{OUTSIDE}{{{OTHER}}}": Rate(sick=50_000),
        },
    ),
    Case(
        "RoceWireRetransmissions",
        {
            f"{RETRANSMITTED}{{{PAIR}}}": Rate(sick=100, below=49),
            packets("write"): Rate(sick=49_500, below=490),
        },
        labels=PAIR,
        background={
            **SEEN,
            **HOST_OF_SOURCE,
            packets("send"): Rate(sick=500),
            packets("write", OTHER): Rate(sick=50_000),
            f"{RETRANSMITTED}{{{OTHER}}}": Rate(sick=5000),
        },
    ),
    Case(
        "RoceWireRetransmissions",
        {
            f"{RETRANSMITTED}{{{PAIR}}}": Rate(sick=100, below=49),
            packets("send"): Rate(sick=50_000, below=990),
        },
        name="to a known host",
        labels=PAIR,
        background={**SEEN, **HOST_OF_DESTINATION},
    ),
)

FRAMES = "roce_wire_capture_frames_total{}"
HOST_TRAFFIC = f"roce_port_transmit_packets_total{{{PORT}}}"

CAPTURE = (
    Case(
        "RoceWireFramesDropped",
        {
            "roce_wire_capture_dropped_frames_total{}": Rate(sick=200, below=90),
            FRAMES: Rate(sick=99_800, healthy=99_800),
        },
        labels="",
    ),
    Case(
        "RoceWireNoFrames",
        {FRAMES: Rate(sick=0, below=0.1, healthy=1000)},
        labels="",
        background={HOST_TRAFFIC: Rate(sick=50_000, healthy=50_000)},
        sick=100,
        tail=75,
    ),
    Case(
        "RoceWireNoFrames",
        {FRAMES: Rate(sick=0, below=0.1, healthy=1000)},
        name="where no host is scraped",
        labels="",
        sick=100,
        tail=75,
    ),
    Case(
        "RoceWireCaptureGone",
        {FRAMES: Level(sick=None, below=1, healthy=1)},
        labels="",
    ),
)

WIRE_CASES = (*PEERS, *CAPTURE)
