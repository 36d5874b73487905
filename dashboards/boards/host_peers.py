"""The row of the host dashboard on its peers: pairs of addresses that `roce-exporter serve --wire.interface` counts on mirror ports.

Captures are other targets than the host. The recording rule has the ports whose addresses they have seen, so without a capture,
or without a match, every query returns nothing.
"""

from __future__ import annotations

from boards.host_series import explained
from boards.limits import WIRE_DROPS, WIRE_RETRANSMISSIONS, steps
from boards.measures import WINDOW, rate
from boards.model import Query
from boards.panels import lines
from boards.scopes import CLUSTER, PORT

ADDRESSES = "port:roce_wire_address:info"
PROOF = "lossy"
EMPTY = "No capture sees this host: see docs/wire.md"
SHOWN = "The ten pairs with the most of it in the range shown."
PAIR = "{{source}} to {{destination}}"


def of_host(expression: str, *by: str) -> str:
    """The pairs with an address of the ports shown at one end; of several captures of one pair the highest value."""
    pairs = f"max by ({', '.join(('cluster', 'source', 'destination', *by))}) ({expression})"
    ends = (
        f'({pairs} and on (cluster, {end}) label_join({ADDRESSES}{{{PORT}}}, "{end}", "", "address"))'
        for end in ("source", "destination")
    )
    return " or ".join(ends)


def most(expression: str, name: str, scope: str = CLUSTER, *by: str) -> str:
    """An expression for the ten pairs of which a counter rose most within the range shown, ranked once."""
    risen = f"sum by (cluster, instance, source, destination{''.join(f', {one}' for one in by)}) (increase({name}{{{scope}}}[$__range] @ end()))"
    return f"({of_host(expression, *by)}) and topk(10, {of_host(risen, *by)})"


def share(name: str, scope: str, of: str, of_scope: str, label: str) -> str:
    """The share of a pair's packets; without packets there is no share."""
    every = f"sum without ({label}) (rate({of}{{{of_scope}}}[{WINDOW}]))"
    return f"sum without ({label}) ({rate(name, scope)}) / ({every} > 0)"


CNPS, ECN = "roce_wire_cnps_total", "roce_wire_ecn_packets_total"
PACKETS = "roce_wire_packets_total"
RETRANSMITTED, OUTSIDE = "roce_wire_retransmitted_packets_total", "roce_wire_outside_lossless_packets_total"
NAKS = "roce_wire_naks_total"
FRAMES, DROPPED = "roce_wire_capture_frames_total", "roce_wire_capture_dropped_frames_total"
MARKED = f'codepoint="ce",{CLUSTER}'

PEERS_PANELS = (
    lines(
        "Who congests whom (CNPs)",
        explained(
            f"CNPs from a congested receiver to a sender. Many senders and one receiver: an incast. {SHOWN}",
            CNPS,
        ),
        "pps",
        Query(most(rate(CNPS, CLUSTER), CNPS), "{{destination}} congests {{source}}"),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Marked packets by pair",
        explained(
            f"Share of packets that a switch has marked on the way, at the place of the capture. {SHOWN}", ECN
        ),
        "percentunit",
        Query(most(share(ECN, MARKED, ECN, CLUSTER, "codepoint"), ECN, MARKED), PAIR),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Retransmissions by pair",
        explained(
            f"Share of packets that were sent again, duplicated or reordered. {SHOWN} Dashed: alert limit.",
            RETRANSMITTED,
        ),
        "percentunit",
        Query(most(share(RETRANSMITTED, CLUSTER, PACKETS, CLUSTER, "operation"), RETRANSMITTED), PAIR),
        limits=steps(WIRE_RETRANSMISSIONS),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Outside the lossless priority",
        explained(f"By pair. Switches may drop these packets. {SHOWN}", OUTSIDE),
        "pps",
        Query(most(rate(OUTSIDE, CLUSTER), OUTSIDE), PAIR),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "NAKs by pair and reason",
        explained(f"From the receiver of the data to its sender. {SHOWN}", NAKS),
        "pps",
        Query(most(rate(NAKS, CLUSTER), NAKS, CLUSTER, "reason"), f"{PAIR}: {{{{reason}}}}"),
        width=8,
        height=9,
        empty="No NAK was captured, or no capture sees this host: see docs/wire.md",
        proof=PROOF,
    ),
    lines(
        "Frames that captures dropped",
        explained(
            "Share of frames that were lost in the ring of each capture of the cluster; the other panels are too low by it. Dashed: alert limit.",
            DROPPED,
        ),
        "percentunit",
        Query(
            f"{rate(DROPPED, CLUSTER)} / ({rate(FRAMES, CLUSTER)} + {rate(DROPPED, CLUSTER)} > 0)",
            "{{instance}}",
        ),
        limits=steps(WIRE_DROPS),
        width=8,
        height=9,
        empty="No capture is scraped in this cluster: see docs/wire.md",
        proof=PROOF,
    ),
)
