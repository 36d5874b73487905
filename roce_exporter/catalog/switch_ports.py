"""Switches: identity, neighbours, and PFC per port and priority.

`device` is the switch under its own host name, `port` the port's name in the switch's operating system. Directions as on
hosts: receive is pause that the switch received, so it is what its neighbour transmitted.
"""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, LEAN, Row, Spelling
from roce_exporter.catalog.switch_systems import (
    cumulus_counters,
    cumulus_pfc,
    eos_config,
    eos_pfc,
    nxos_pfc,
    nxos_queuing,
    sonic_config,
    sonic_port,
)

SWITCH_PORT_LABELS = ("device", "port")
SWITCH_PRIORITY_LABELS = ("device", "port", "priority")

SWITCH_INFO = Row(
    "roce_switch_info",
    GAUGE,
    "info",
    "Switch information, constant 1. `os` is the module's name for the operating system: sonic, nxos, eos or cumulus.",
    labels=("device", "os", "version", "model", "asic"),
    metric_set=LEAN,
)
SWITCH_PORT_INFO = Row(
    "roce_switch_port_info",
    GAUGE,
    "info",
    "Switch port information, constant 1. `alias` is the vendor's name of the port, `description` the operator's.",
    labels=("device", "port", "alias", "description"),
    metric_set=LEAN,
)
SWITCH_NEIGHBOR_INFO = Row(
    "roce_switch_lldp_neighbor_info",
    GAUGE,
    "info",
    "The neighbour of a switch port, constant 1. `source` is lldp, or file for a link from the configuration file. "
    "`neighbor_mac` is the MAC address in the neighbour's port identifier; `port_id_kind` is mac, name or other.",
    labels=(
        "device",
        "port",
        "neighbor",
        "neighbor_chassis",
        "neighbor_port",
        "neighbor_description",
        "neighbor_mac",
        "port_id_kind",
        "source",
    ),
    metric_set=LEAN,
)
SWITCH_QUEUE_INFO = Row(
    "roce_switch_queue_info",
    GAUGE,
    "info",
    "The queue and the priority group of a priority with PFC, constant 1. Joins metrics by priority with those by queue.",
    labels=("device", "port", "priority", "queue", "priority_group"),
    metric_set=LEAN,
)


def _counter(name: str, unit: str, meaning: str, *spellings: Spelling) -> Row:
    return Row(name, COUNTER, unit, meaning, spellings, SWITCH_PRIORITY_LABELS, metric_set=LEAN)


def _gauge(name: str, unit: str, meaning: str, *spellings: Spelling) -> Row:
    return Row(name, GAUGE, unit, meaning, spellings, SWITCH_PRIORITY_LABELS, metric_set=LEAN)


ROWS = (
    SWITCH_INFO,
    SWITCH_PORT_INFO,
    SWITCH_NEIGHBOR_INFO,
    SWITCH_QUEUE_INFO,
    _gauge(
        "roce_switch_pfc_enabled",
        "bool",
        "Whether PFC is on for the priority on this switch port.",
        sonic_config("pfc_enable"),
        nxos_pfc("oper"),
        eos_config("priorities-no-drop"),
        cumulus_pfc("pfc_enabled"),
    ),
    _counter(
        "roce_switch_pfc_receive_frames_total",
        "frames",
        "PFC frames received by the switch port for the priority. One frame can pause several priorities: do not add them up.",
        sonic_port("SAI_PORT_STAT_PFC_{priority}_RX_PKTS"),
        nxos_queuing("rx-pause-count"),
        eos_pfc("in-frames"),
        cumulus_counters("rx-pause-frames"),
    ),
    _counter(
        "roce_switch_pfc_transmit_frames_total",
        "frames",
        "PFC frames transmitted by the switch port for the priority. One frame can pause several priorities: do not add them up.",
        sonic_port("SAI_PORT_STAT_PFC_{priority}_TX_PKTS"),
        nxos_queuing("tx-pause-count"),
        eos_pfc("out-frames"),
        cumulus_counters("tx-pause-frames"),
    ),
    _counter(
        "roce_switch_pfc_receive_pause_seconds_total",
        "seconds",
        "Time for which received pause stopped the switch port's transmission of the priority, as measured by the ASIC.",
        sonic_port("SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US", per=10**6),
        eos_pfc("pfc-on-total-rx-time", per=10**9),
    ),
    _counter(
        "roce_switch_pfc_receive_pause_estimated_seconds_total",
        "seconds",
        "Time for which received pause stopped the priority, estimated by the switch's software from whole polls: up to one "
        "poll (200 ms) too much for each pause.",
        sonic_port("EST_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US", per=10**6),
    ),
    _counter(
        "roce_switch_pfc_receive_transitions_total",
        "events",
        "Changes of the priority from not paused to paused by the neighbour, or back, as the ASIC counts them.",
        sonic_port("SAI_PORT_STAT_PFC_{priority}_ON2OFF_RX_PKTS"),
        sonic_port("EST_PORT_STAT_PFC_{priority}_ON2OFF_RX_PKTS"),
        eos_pfc("rx-transitions"),
    ),
    _gauge(
        "roce_switch_pfc_longest_pause_seconds",
        "seconds",
        "Longest single pause of the priority by the neighbour since the switch's counters were cleared.",
        eos_pfc("pfc-on-max-rx-time", per=10**9),
    ),
    Row(
        "roce_switch_global_pause_receive_frames_total",
        COUNTER,
        "frames",
        "Global pause frames (802.3x, all priorities) received by the switch port.",
        (sonic_port("SAI_PORT_STAT_PAUSE_RX_PKTS"),),
        SWITCH_PORT_LABELS,
        metric_set=LEAN,
    ),
    Row(
        "roce_switch_global_pause_transmit_frames_total",
        COUNTER,
        "frames",
        "Global pause frames (802.3x, all priorities) transmitted by the switch port.",
        (sonic_port("SAI_PORT_STAT_PAUSE_TX_PKTS"),),
        SWITCH_PORT_LABELS,
        metric_set=LEAN,
    ),
)
