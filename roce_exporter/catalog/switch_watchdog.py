"""Switches: the PFC watchdog per port and queue.

A tripped watchdog no longer obeys the neighbour's pause and discards the queue's packets: another fact than the stall
watchdog of a NIC, which stops sending pause.
"""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, LEAN, Row, Spelling
from roce_exporter.catalog.switch_systems import (
    cumulus_watchdog,
    eos_config,
    eos_pfc,
    eos_stuck,
    nxos_watchdog,
    sonic_config,
    sonic_queue,
)

SWITCH_QUEUE_LABELS = ("device", "port", "queue")


def _counter(name: str, unit: str, meaning: str, *spellings: Spelling) -> Row:
    return Row(name, COUNTER, unit, meaning, spellings, SWITCH_QUEUE_LABELS, metric_set=LEAN)


def _gauge(name: str, unit: str, meaning: str, *spellings: Spelling) -> Row:
    return Row(name, GAUGE, unit, meaning, spellings, SWITCH_QUEUE_LABELS, metric_set=LEAN)


ROWS = (
    _gauge(
        "roce_switch_pfc_watchdog_enabled",
        "bool",
        "Whether the PFC watchdog is configured to monitor the queue.",
        sonic_config("pfcwd_sw_enable"),
        nxos_watchdog("wd-status"),
        eos_config("watchdog-enabled"),
        cumulus_watchdog("state"),
    ),
    _gauge(
        "roce_switch_pfc_watchdog_acts",
        "bool",
        "Whether the watchdog discards or forwards the queue's packets during a storm (1) or only reports it (0).",
        sonic_config("action"),
        nxos_watchdog("disable-action"),
        eos_config("action"),
    ),
    Row(
        "roce_switch_pfc_watchdog_overridden",
        GAUGE,
        "bool",
        "Whether the watchdog of the whole switch is overridden: all lossless queues discard (SONiC's BIG_RED_SWITCH), or it is "
        "forced on or off (NX-OS).",
        (sonic_config("BIG_RED_SWITCH"), nxos_watchdog("glb-wd-force-status")),
        ("device",),
        metric_set=LEAN,
    ),
    _gauge(
        "roce_switch_pfc_watchdog_tripped",
        "bool",
        "Whether the watchdog holds the queue now: pause from the neighbour is not obeyed.",
        sonic_queue("PFC_WD_STATUS"),
        nxos_watchdog("eq-qosgrp-state"),
        cumulus_watchdog("status"),
    ),
    _counter(
        "roce_switch_pfc_watchdog_trips_total",
        "events",
        "Storms that the watchdog detected on the queue.",
        sonic_queue("PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"),
        nxos_watchdog("q-shutdown"),
        eos_pfc("stuck-count", bits=32),
        eos_stuck("stuckCount"),
        cumulus_watchdog("deadlock-count"),
    ),
    _counter(
        "roce_switch_pfc_watchdog_restores_total",
        "events",
        "Storms after which the watchdog restored the queue.",
        sonic_queue("PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED"),
        nxos_watchdog("q-restored"),
        eos_pfc("recovery-count", bits=32),
        eos_stuck("recoveryCount"),
    ),
    _counter(
        "roce_switch_pfc_watchdog_transmit_discards_total",
        "packets",
        "Packets to the neighbour that the tripped watchdog discarded. On SONiC the last second of a storm can be missing.",
        sonic_queue("PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS"),
        nxos_watchdog("q-aggr-pkt-dropped"),
    ),
    _counter(
        "roce_switch_pfc_watchdog_receive_discards_total",
        "packets",
        "Packets from the neighbour that the tripped watchdog discarded.",
        sonic_queue("PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS"),
        nxos_watchdog("q-ing-aggr-pkt-dropped"),
    ),
    _gauge(
        "roce_switch_pfc_watchdog_detection_seconds",
        "seconds",
        "How long pause must last until the watchdog trips.",
        sonic_config("detection_time", per=1000),
        nxos_watchdog("detection-milliseconds", per=1000),
        eos_config("default-timeout"),
        cumulus_watchdog("detection-milliseconds", per=1000),
    ),
    _gauge(
        "roce_switch_pfc_watchdog_restoration_seconds",
        "seconds",
        "How long pause must be gone until the watchdog restores the queue.",
        sonic_config("restoration_time", per=1000),
        nxos_watchdog("restoration-milliseconds", per=1000),
        eos_config("default-recovery-time"),
    ),
)
