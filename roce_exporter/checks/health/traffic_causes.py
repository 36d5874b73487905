"""Causes in traffic, congestion, connections, settings and programs: see `causes`."""

from __future__ import annotations

from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.sign import Cause

HOST, LINK, FABRIC, PEER, UNKNOWN = Side.HOST, Side.LINK, Side.FABRIC, Side.PEER, Side.UNKNOWN
DEGRADED, FIT = Status.DEGRADED, Status.OK

COUNTERS = "roce-exporter once | grep 'device=\"{device}\"'"
DMESG = "dmesg -T | grep -i -e {device} -e {netdev} -e AER"

LOSSLESS_DROPS = Cause(
    "lossless_drops",
    HOST,
    DEGRADED,
    "Packets of a lossless priority are dropped at this port",
    "Pause came too late or not at all: PFC off at one end, too little headroom, a cable longer than configured.",
    ("dcb pfc show dev {netdev}", "dcb buffer show dev {netdev}", "roce-exporter check settings"),
    "RocePortFaulty",
)

PORT_DROPS = Cause(
    "port_drops",
    HOST,
    DEGRADED,
    "This port drops packets",
    "Buffers of the card or the limits of its instance or VF: the host is slower than what arrives, or sends more than it may.",
    (
        COUNTERS + " | grep -e discards -e drops",
        "ethtool -S {netdev} | grep -i -e drop -e discard",
        "lspci -vv",
    ),
    "RocePacketLoss",
)

FAULT_COUNTED = Cause(
    "fault_counted",
    UNKNOWN,
    FIT,
    "A counter of faults rises, and nothing else explains it",
    "What the counter says; roce-exporter explain NAME tells more.",
    (COUNTERS, "roce-exporter explain NAME"),
    "RocePeerUnreachable",
)

PCIE_CONGESTION = Cause(
    "pcie_congestion",
    HOST,
    DEGRADED,
    "PCIe cannot keep up with the link",
    "Width or speed of the slot, MaxReadReq, IOMMU, NUMA placement, or loopback traffic between GPUs.",
    ("lspci -vv", "roce-exporter check settings", "check IOMMU and NUMA placement of the job"),
    "RocePortFaulty",
)

SLOW_RECEIVER = Cause(
    "slow_receiver",
    HOST,
    DEGRADED,
    "This host receives more slowly than it is sent: it transmits pause",
    "PCIe, memory or the NIC's caches cannot take what arrives; the switch then pauses the senders.",
    (
        "lspci -vv",
        COUNTERS + " | grep -e pcie -e pause",
        "check NUMA placement, huge pages and the number of queue pairs of the job",
    ),
    "RocePortFaulty",
)

PAUSE_STORM_RECEIVED = Cause(
    "pause_storm_received",
    FABRIC,
    DEGRADED,
    "The switch blocks this host: it receives pause without end",
    "A host elsewhere that transmits pause, or the switch itself. This host is a victim.",
    (
        'find the host that transmits pause: roce_pfc_storms_total{{direction="transmit"}}',
        "check the PFC watchdog of the switch",
    ),
    "RocePortVictim",
)

PAUSE_RECEIVED = Cause(
    "pause_received",
    FABRIC,
    DEGRADED,
    "The switch pauses this host for a considerable share of the time",
    "Congestion in the fabric, or a slow receiver among the peers. This host is a victim.",
    (
        "find the hosts that transmit pause in this cluster",
        "check the egress queues of the switch, and ECN thresholds",
    ),
    "RocePortVictim",
)

GLOBAL_PAUSE = Cause(
    "global_pause",
    LINK,
    DEGRADED,
    "Global pause is in use although PFC is on",
    "Global pause (802.3x) is on at one end: it stops all priorities at once.",
    ("ethtool -a {netdev}", "ethtool -A {netdev} autoneg off rx off tx off, and off on the switch port"),
    "RocePortFaulty",
)

PFC_MISMATCH = Cause(
    "pfc_mismatch",
    LINK,
    DEGRADED,
    "Pause arrives for a priority that has no PFC here",
    "Host and switch disagree about the lossless priorities.",
    ("dcb pfc show dev {netdev}", "compare with the switch port", "roce-exporter check settings"),
    "RocePortFaulty",
)

MARKS_WITHOUT_CNPS = Cause(
    "marks_without_cnps",
    HOST,
    DEGRADED,
    "Marked packets arrive, but this host sends no CNPs",
    "The notification point is off for the priority in use, so senders are not slowed down before pause begins.",
    (
        "roce-exporter check settings",
        "with NVIDIA's own mlx5 driver: grep . /sys/class/net/{netdev}/ecn/roce_np/enable/*",
    ),
    "RocePortFaulty",
)

CNPS_IGNORED = Cause(
    "cnps_ignored",
    HOST,
    DEGRADED,
    "This host ignores the CNPs that it receives",
    "The reaction point is off for the priority in use: its flows do not slow down.",
    (
        "roce-exporter check settings",
        "with NVIDIA's own mlx5 driver: grep . /sys/class/net/{netdev}/ecn/roce_rp/enable/*",
    ),
    "RocePortFaulty",
)

OUTSIDE_LOSSLESS = Cause(
    "outside_lossless_priority",
    HOST,
    DEGRADED,
    "RDMA traffic leaves outside the lossless priorities",
    "A program sets no traffic class (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS), or DSCP is not trusted or not mapped.",
    ("roce-exporter check settings", COUNTERS + " | grep priority_transmit_bytes"),
    "RocePortFaulty",
)

MISCONFIGURED = Cause(
    "misconfigured",
    HOST,
    DEGRADED,
    "Settings differ from the profile",
    "What the audit lists. The profile can also be the wrong one for this fabric.",
    ("roce-exporter check settings",),
    "RoceConfigCheckFailed",
)

IP_MISCONFIGURED = Cause(
    "ip_misconfigured",
    HOST,
    DEGRADED,
    "The IP side of the port is set up wrong",
    "Address, rule, route or ARP setting of this rail: connections fail or leave by another port although all counters are clean.",
    (
        "roce-exporter check settings",
        "ip addr show dev {netdev}",
        "ip rule",
        "ip route show table all dev {netdev}",
    ),
    "RoceConfigCheckFailed",
)

NEIGHBOUR_UNRESOLVED = Cause(
    "neighbour_unresolved",
    PEER,
    DEGRADED,
    "A gateway or peer does not resolve",
    "The neighbour is down, in another VLAN, or its address is wrong.",
    ("ip neigh show dev {netdev}", "arping -I {netdev} ADDRESS"),
    "RoceConfigCheckFailed",
)

DUPLICATE_ADDRESS = Cause(
    "duplicate_address",
    PEER,
    DEGRADED,
    "Another host has an address of this port",
    "Two hosts were given one address: connections go to either.",
    ("ip addr show dev {netdev}", "arping -D -I {netdev} ADDRESS"),
    "RoceConfigCheckFailed",
)

PATH_MTU = Cause(
    "path_mtu",
    FABRIC,
    DEGRADED,
    "The MTU differs along the path",
    "A switch or a peer has another MTU than this port: large messages fail while small ones pass.",
    (
        "ip link show dev {netdev}",
        "ping -M do -s 4152 -I {netdev} ADDRESS",
        "compare the MTU of the switch ports",
    ),
    "RoceConfigCheckFailed",
)

NO_ROUTE = Cause(
    "no_route",
    HOST,
    DEGRADED,
    "RDMA packets are not sent because there is no route or neighbour",
    "A route of this rail is missing, or its gateway does not resolve.",
    ("ip route show table all dev {netdev}", "ip neigh show dev {netdev}"),
    "RoceConfigCheckFailed",
)

CORRUPTION = Cause(
    "corruption",
    FABRIC,
    DEGRADED,
    "Packets pass the link's checksum but not their own",
    "A switch or NIC on the path corrupts them in its memory; their sender can be the culprit too.",
    (COUNTERS + " | grep icrc", "check whether other hosts behind the same switch are affected"),
    "RocePortFaulty",
)

PACKET_LOSS = Cause(
    "packet_loss",
    FABRIC,
    DEGRADED,
    "RDMA packets are lost",
    "Drops in switches, a bad link on the path, or traffic outside the lossless priority.",
    ("check drops and CRC errors of the switch ports of the path", "roce-exporter check settings"),
    "RocePacketLoss",
)

RETRIES_EXCEEDED = Cause(
    "retries_exceeded",
    PEER,
    DEGRADED,
    "Queue pairs gave up after all retries without an answer",
    "The peer is dead, its process ended, or the path to it is gone.",
    (
        COUNTERS + " | grep -e timeouts -e retries -e sequence",
        "find the peer: rdma resource show qp",
        "check link and host of the peer",
    ),
    "RocePeerUnreachable",
)

PEER_SILENT = Cause(
    "peer_silent",
    PEER,
    DEGRADED,
    "A peer does not answer: packets are sent again and again",
    "The peer's process or host is gone or hangs, or the path to it is cut. Its own counters show nothing.",
    (
        "find the peer: rdma resource show qp",
        "check the other hosts of the job: the silent one is among those without this finding",
        COUNTERS + " | grep -e timeouts -e retries -e adaptive",
    ),
    "RocePeerUnreachable",
)

RETRANSMISSIONS_UNCOUNTED = Cause(
    "retransmissions_uncounted",
    PEER,
    FIT,
    "Packets of GPU-initiated queue pairs are sent again, most likely to a peer that does not answer",
    "The peer's process or host is gone. The driver does not count these queue pairs (DEVX) in the port; a few real CNPs look alike.",
    (
        "check the other hosts of the job",
        "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=NET logs the errors of these queue pairs",
    ),
    "RocePeerUnreachable",
)

ACK_TIMEOUTS = Cause(
    "ack_timeouts",
    PEER,
    DEGRADED,
    "Acknowledgements do not arrive in time",
    "A peer that is gone or stuck, or loss of the last packets of messages.",
    (COUNTERS + " | grep -e timeouts -e retries -e sequence", "find the peer: rdma resource show qp"),
    "RocePeerUnreachable",
)

QUEUE_PAIRS_IN_ERROR = Cause(
    "queue_pairs_in_error",
    UNKNOWN,
    DEGRADED,
    "Queue pairs are in the error state and transfer nothing",
    "Their job has failed or hangs: a peer that vanished, or an error of the program.",
    ("rdma resource show qp link {device} state ERR", "see /debug/owners for the job"),
    "RoceQueuePairsStuck",
)

RESOURCES_EXHAUSTED = Cause(
    "resources_exhausted",
    HOST,
    DEGRADED,
    "The device has nearly no objects left",
    "A program that leaks queue pairs, completion queues or memory regions, or too many jobs on the host.",
    ("rdma resource show", "see /debug/owners for the job"),
    "RoceResourcesNearlyExhausted",
)

SOURCE_BROKEN = Cause(
    "source_broken",
    HOST,
    FIT,
    "A kernel interface of the device fails, in whole or in part",
    "A driver or firmware that fails requests; its series are missing, so the port is unknown rather than degraded.",
    ("roce-exporter once | grep source_up", DMESG, "see the exporter's log for the error"),
    "RoceDataMissing",
)

RECEIVER_NOT_READY = Cause(
    "receiver_not_ready",
    PEER,
    FIT,
    "Receivers are not ready: they have too few receive requests",
    "The program at the peer is slow or stuck.",
    (COUNTERS + " | grep rnr", "check the load of the peer's process"),
    "RocePortFaulty",
)

RECEIVE_QUEUE_EMPTY = Cause(
    "receive_queue_empty",
    HOST,
    FIT,
    "A program of this host posts too few receive requests",
    "The program is slow or stuck; its senders wait.",
    (COUNTERS + " | grep -e rnr -e out_of_buffer", "see /debug/owners for the job; check its load"),
    "RocePortFaulty",
)

REQUESTS_REFUSED = Cause(
    "requests_refused",
    HOST,
    FIT,
    "A peer refused requests of this host",
    "Programs at both ends disagree: a key or address that the peer does not grant any more, or a request that it does not accept.",
    (COUNTERS + " | grep requester_remote", "check the logs of the program at both ends"),
    "RoceQueuePairsStuck",
)

PEER_REQUESTS_REFUSED = Cause(
    "peer_requests_refused",
    PEER,
    FIT,
    "This host refused requests of a peer",
    "The peer's program used a key, an address or a length that it was not given.",
    (COUNTERS + " | grep responder", "check the logs of the program at both ends"),
    "RoceQueuePairsStuck",
)

LOCAL_ERRORS = Cause(
    "local_errors",
    HOST,
    FIT,
    "Work requests of this host's programs failed without a word from the peer",
    "A program of this host posted a request with a wrong length, key or permission, or to a queue pair in the error state.",
    (COUNTERS + " | grep -e completion_errors -e local", "check the log of the program"),
    "RoceQueuePairsStuck",
)

UNKNOWN_MESSAGE = Cause(
    "unknown_message",
    HOST,
    FIT,
    "The driver reported errors that this version does not know",
    "A text of another kernel or driver: it can be a fault of the device or of a program.",
    (DMESG,),
    "RoceDeviceVanished",
)

INCAST = Cause(
    "incast",
    FABRIC,
    FIT,
    "Many packets to this host are marked: a path to it is congested",
    "Many senders to one receiver, a slower link on the path, or an ECN threshold set too low. Congestion control answers.",
    (COUNTERS + " | grep -e ecn -e cnp", "check which senders share the path"),
    "RoceIncast",
)
