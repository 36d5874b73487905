"""Virtual functions (VFs) as their physical function knows them: traffic, settings, and which device each of them is.

From rtnetlink, once a minute: between two reads the values do not change. Counters are left out while all VFs of a network
device have 0 in all of them: the kernel reports 0 for drivers that do not count.
"""

from __future__ import annotations

from roce_exporter.catalog.row import (
    ANY,
    COUNTER,
    FULL,
    GAUGE,
    LEAN,
    NETDEV_LABELS,
    STANDARD,
    MetricSet,
    Row,
    spelt,
)

VF_LABELS = (*NETDEV_LABELS, "vf")


def _counter(
    name: str, unit: str, meaning: str, raw: str, *, metric_set: MetricSet = FULL, usual: int | None = None
) -> Row:
    spelling = spelt(ANY, "virtual_functions", f"{{vf}} {raw}")
    name = f"roce_vf_{name}_total"
    return Row(name, COUNTER, unit, meaning, (spelling,), VF_LABELS, "experimental", metric_set, usual)


def _gauge(name: str, unit: str, meaning: str, raw: str, times: int = 1) -> Row:
    spelling = spelt(ANY, "virtual_functions", f"{{vf}} {raw}", times=times)
    return Row(f"roce_vf_{name}", GAUGE, unit, meaning, (spelling,), VF_LABELS, "experimental")


VF_INFO = Row(
    "roce_vf_info",
    GAUGE,
    "info",
    "A VF of a network device, constant 1. `pci` is its PCI address, `rdma_device` its RDMA device; they are empty if the VF is "
    "not visible to the exporter (in another network namespace, in a virtual machine).",
    (spelt(ANY, "virtual_functions", "{vf} {mac} {pci} {rdma_device}"),),
    (*VF_LABELS, "mac", "pci", "rdma_device"),
    "experimental",
    metric_set=LEAN,
)

ROWS = (
    VF_INFO,
    _counter(
        "receive_bytes",
        "bytes",
        "Bytes that the VF received, counted by the NIC.",
        "rx_bytes",
        metric_set=LEAN,
    ),
    _counter(
        "transmit_bytes", "bytes", "Bytes that the VF sent, counted by the NIC.", "tx_bytes", metric_set=LEAN
    ),
    _counter(
        "receive_packets", "packets", "Packets that the VF received.", "rx_packets", metric_set=STANDARD
    ),
    _counter("transmit_packets", "packets", "Packets that the VF sent.", "tx_packets", metric_set=STANDARD),
    _counter(
        "receive_drops",
        "packets",
        "Packets to the VF that the NIC dropped.",
        "rx_dropped",
        metric_set=LEAN,
        usual=0,
    ),
    _counter(
        "transmit_drops",
        "packets",
        "Packets from the VF that the NIC dropped.",
        "tx_dropped",
        metric_set=LEAN,
        usual=0,
    ),
    _counter(
        "receive_multicast_packets", "packets", "Multicast packets that the VF received.", "rx_multicast"
    ),
    _counter(
        "receive_broadcast_packets", "packets", "Broadcast packets that the VF received.", "rx_broadcast"
    ),
    _gauge(
        "link_state",
        "state",
        "Link that the NIC shows to the VF: 0 that of the port, 1 always up, 2 always down.",
        "link_state",
    ),
    _gauge(
        "spoof_check",
        "bool",
        "Whether the NIC drops packets of the VF with a foreign MAC address.",
        "spoof_check",
    ),
    _gauge(
        "trusted", "bool", "Whether the VF may change its MAC address and receive all packets.", "trusted"
    ),
    _gauge("vlan", "vlan", "VLAN that the NIC puts the VF's packets in; 0: none.", "vlan"),
    _gauge(
        "transmit_limit_bytes_per_second",
        "bytes_per_second",
        "Most that the NIC lets the VF send; 0: no limit.",
        "max_rate",
        times=125_000,
    ),
)
