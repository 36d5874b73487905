"""Switches: queues, ECN, priority groups, headroom and buffer pools.

Watermarks are maxima within a window: `periodic` starts again at the switch's own interval (two minutes on SONiC), `user`
when a person clears it, `persistent` when it is cleared as such. Metrics of queues cover priorities with PFC unless the
target asks for all queues.
"""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, LEAN, Row, Spelling
from roce_exporter.catalog.switch_systems import (
    cumulus_congestion,
    cumulus_counters,
    eos_drops,
    eos_ecn,
    eos_pfc,
    eos_profile,
    eos_queue,
    nxos_queuing,
    nxos_statistics,
    sonic_config,
    sonic_group,
    sonic_queue,
    sonic_watermark,
)

QUEUE = ("device", "port", "queue")
GROUP = ("device", "port", "priority_group")
POOL = ("device", "pool", "window")


def _counter(name: str, unit: str, meaning: str, *spellings: Spelling) -> Row:
    return Row(name, COUNTER, unit, meaning, spellings, QUEUE, metric_set=LEAN)


def _gauge(name: str, unit: str, meaning: str, *spellings: Spelling, labels: tuple[str, ...] = QUEUE) -> Row:
    return Row(name, GAUGE, unit, meaning, spellings, labels, metric_set=LEAN)


ROWS = (
    _counter(
        "roce_switch_queue_transmit_packets_total",
        "packets",
        "Packets transmitted from the queue.",
        sonic_queue("SAI_QUEUE_STAT_PACKETS"),
        nxos_statistics("txPackets"),
        nxos_queuing("Tx Pkts"),
        eos_queue("transmit-pkts"),
        cumulus_counters("tx-frames"),
    ),
    _counter(
        "roce_switch_queue_transmit_bytes_total",
        "bytes",
        "Bytes transmitted from the queue.",
        sonic_queue("SAI_QUEUE_STAT_BYTES"),
        nxos_statistics("txBytes"),
        nxos_queuing("Tx Byts"),
        eos_queue("transmit-octets"),
        cumulus_counters("tx-bytes"),
    ),
    _counter(
        "roce_switch_queue_discards_total",
        "packets",
        "Packets discarded at the queue. While the watchdog is tripped, discards are its cure and not a fault.",
        sonic_queue("SAI_QUEUE_STAT_DROPPED_PACKETS"),
        nxos_statistics("dropPackets"),
        nxos_queuing("Dropped Pkts"),
        nxos_queuing("WRED/AFD & Tail Drop Pkts"),
        nxos_queuing("WRED & Tail Drop Pkts"),
        eos_queue("dropped-pkts"),
        eos_drops("droppedPackets"),
        cumulus_counters("tx-uc-buffer-discards"),
    ),
    _counter(
        "roce_switch_queue_wred_discards_total",
        "packets",
        "Packets that WRED discarded because they could not be marked.",
        sonic_queue("SAI_QUEUE_STAT_WRED_DROPPED_PACKETS"),
        nxos_statistics("randDropPackets"),
        eos_queue("wred-dropped-pkts"),
        cumulus_counters("wred-discards"),
    ),
    _counter(
        "roce_switch_queue_ecn_marked_packets_total",
        "packets",
        "Packets in which the queue set the ECN mark (congestion experienced). Absent where the switch does not count them.",
        sonic_queue("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"),
        nxos_statistics("randEcnMarkedPackets"),
        nxos_queuing("ECN Pkts"),
        eos_queue("ecn-marked-pkts"),
        eos_ecn("queueCounter"),
        cumulus_counters("ecn-marked-frames"),
    ),
    _counter(
        "roce_switch_queue_trimmed_packets_total",
        "packets",
        "Packets whose payload was cut off because the queue was full.",
        sonic_queue("SAI_QUEUE_STAT_TRIM_PACKETS"),
    ),
    _gauge(
        "roce_switch_queue_occupancy_bytes",
        "bytes",
        "Bytes in the queue now.",
        sonic_queue("SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"),
        nxos_statistics("currQueueDepth"),
        nxos_queuing("Q Depth Byts"),
    ),
    _gauge(
        "roce_switch_queue_paused",
        "bool",
        "Whether the queue is stopped by pause from the neighbour now.",
        sonic_queue("SAI_QUEUE_ATTR_PAUSE_STATUS"),
        nxos_queuing("rx-pause-state"),
    ),
    _gauge(
        "roce_switch_queue_watermark_bytes",
        "bytes",
        "Most bytes in the queue within the window.",
        sonic_watermark("SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"),
        labels=(*QUEUE, "window"),
    ),
    Row(
        "roce_switch_buffer_discards_total",
        COUNTER,
        "packets",
        "Packets of the priority group discarded on receive because its buffer and headroom were full: loss in a lossless class.",
        (
            sonic_group("SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"),
            eos_pfc("dropped-pkts"),
            cumulus_counters("rx-buffer-discards"),
        ),
        GROUP,
        metric_set=LEAN,
    ),
    Row(
        "roce_switch_port_buffer_discards_total",
        COUNTER,
        "packets",
        "Packets discarded on receive because the buffer of the port was full, where the switch has no count per priority group.",
        (nxos_queuing("Ingress MMU Drop Pkts"),),
        ("device", "port"),
        metric_set=LEAN,
    ),
    _gauge(
        "roce_switch_buffer_headroom_watermark_bytes",
        "bytes",
        "Most headroom that the priority group used within the window.",
        sonic_watermark("SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES"),
        labels=(*GROUP, "window"),
    ),
    _gauge(
        "roce_switch_buffer_shared_watermark_bytes",
        "bytes",
        "Most shared buffer that the priority group used within the window.",
        sonic_watermark("SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES"),
        labels=(*GROUP, "window"),
    ),
    _gauge(
        "roce_switch_buffer_headroom_bytes",
        "bytes",
        "Headroom configured for the priority group: space for packets in flight after pause was sent.",
        sonic_config("xoff"),
        labels=GROUP,
    ),
    _gauge(
        "roce_switch_buffer_pause_threshold_bytes",
        "bytes",
        "Fill level of the priority group at which the switch sends pause. For a dynamic threshold, the highest level that it can have.",
        sonic_config("pause_threshold"),
        nxos_queuing("pause-threshold"),
        labels=GROUP,
    ),
    _gauge(
        "roce_switch_pool_watermark_bytes",
        "bytes",
        "Most bytes in the buffer pool within the window.",
        sonic_watermark("SAI_BUFFER_POOL_STAT_WATERMARK_BYTES"),
        labels=POOL,
    ),
    _gauge(
        "roce_switch_pool_headroom_watermark_bytes",
        "bytes",
        "Most bytes in the headroom of the buffer pool within the window.",
        sonic_watermark("SAI_BUFFER_POOL_STAT_XOFF_ROOM_WATERMARK_BYTES"),
        labels=POOL,
    ),
    _gauge(
        "roce_switch_config_ecn_enabled",
        "bool",
        "Whether the queue marks packets with ECN.",
        sonic_config("ecn"),
        eos_profile("enable-ecn"),
        cumulus_congestion("ecn"),
    ),
    _gauge(
        "roce_switch_config_ecn_minimum_bytes",
        "bytes",
        "Fill level of the queue from which packets are marked.",
        sonic_config("green_min_threshold"),
        eos_profile("min-threshold"),
        cumulus_congestion("min-threshold"),
    ),
    _gauge(
        "roce_switch_config_ecn_maximum_bytes",
        "bytes",
        "Fill level of the queue at which the probability of a mark is highest.",
        sonic_config("green_max_threshold"),
        eos_profile("max-threshold"),
        cumulus_congestion("max-threshold"),
    ),
    _gauge(
        "roce_switch_config_ecn_probability_ratio",
        "ratio",
        "Probability of a mark at the maximum threshold.",
        sonic_config("green_drop_probability", per=100),
        eos_profile("max-drop-probability-percent", per=100),
        cumulus_congestion("probability", per=100),
    ),
)
