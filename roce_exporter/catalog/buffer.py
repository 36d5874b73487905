"""Receivers without a buffer, doorbells held back, and faults of the device on its way to memory."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import ANY, COUNTER, GAUGE, Row, counter, spelt
from roce_exporter.catalog.spellings import bnxt, efa, hns, ionic, mana, mlx4, mlx5_q

delay_drop = partial(spelt, ANY, "delay_drop")

ROWS = (
    counter(
        "roce_out_of_buffer_total",
        "packets",
        "Packets dropped because the receiving queue pair had no receive request posted: the application is too slow.",
        mlx5_q("out_of_buffer"),
        bnxt("rx_out_of_buffer"),
        bnxt("res_oob_drop_count"),
        bnxt("out_of_buffer"),
        ionic("resp_rx_outof_buf"),
    ),
    Row(
        "roce_delay_drop_timeouts_total",
        COUNTER,
        "events",
        "Times a queue that makes the NIC wait for a receive request instead of dropping was waited for in vain. Only "
        "with the right to read debugfs.",
        (delay_drop("num_timeout_events", bits=32),),
        ("device",),
    ),
    Row(
        "roce_delay_drop_queues",
        GAUGE,
        "queues",
        "Queues that make the NIC wait for a receive request instead of dropping.",
        (delay_drop("num_rqs"),),
        ("device",),
    ),
    Row(
        "roce_delay_drop_timeout_seconds",
        GAUGE,
        "seconds",
        "For how long the NIC waits for such a queue.",
        (delay_drop("timeout", per=1_000_000),),
        ("device",),
    ),
    counter(
        "roce_ud_discards_total",
        "packets",
        "Unreliable datagrams silently discarded on receive.",
        mlx4("rq_num_udsdprd"),
    ),
    counter(
        "roce_payload_trimmed_packets_total",
        "packets",
        "Packets received whose payload a congested switch had cut off.",
        bnxt("rx_dcn_payload_cut"),
    ),
    counter(
        "roce_doorbell_pacing_alerts_total",
        "events",
        "Times the device's doorbell queue rose over its threshold.",
        bnxt("pacing_alerts"),
        bnxt("dbq_pacing_alerts"),
    ),
    counter(
        "roce_doorbell_pacing_reschedules_total",
        "events",
        "Times the pacing of doorbells was prolonged.",
        bnxt("pacing_reschedule"),
    ),
    counter(
        "roce_doorbell_pacing_completions_total",
        "events",
        "Times the pacing of doorbells came to its end.",
        bnxt("pacing_complete"),
    ),
    counter(
        "roce_completion_queue_overflows_total",
        "events",
        "Times a completion queue overflowed: the application does not take its completions.",
        mlx4("num_cqovf"),
        bnxt("res_cmp_err"),
    ),
    counter(
        "roce_completion_queue_load_errors_total",
        "events",
        "Times the device could not load a completion queue's context.",
        bnxt("res_cq_load_err"),
    ),
    counter(
        "roce_shared_receive_queue_errors_total",
        "events",
        "Errors of shared receive queues seen by the responder.",
        bnxt("res_srq_err"),
    ),
    counter(
        "roce_shared_receive_queue_load_errors_total",
        "events",
        "Times the device could not load a shared receive queue's context.",
        bnxt("res_srq_load_err"),
    ),
    counter(
        "roce_pcie_receive_errors_total",
        "events",
        "PCIe errors while a received packet was brought to memory.",
        bnxt("res_rx_pci_err"),
    ),
    counter(
        "roce_pcie_transmit_errors_total",
        "events",
        "PCIe errors while a response was fetched from memory.",
        bnxt("res_tx_pci_err"),
    ),
    counter(
        "roce_memory_table_errors_total",
        "packets",
        "Packets whose memory region the device could not look up.",
        hns("trp_get_mpt_err_pkt"),
    ),
    counter(
        "roce_read_table_errors_total",
        "packets",
        "Packets whose outstanding read the device could not look up.",
        hns("trp_get_irrl_err_pkt"),
    ),
    counter("roce_hardware_errors_total", "errors", "Errors of the device itself.", mana("general_hw_error")),
    counter(
        "roce_fatal_errors_total",
        "errors",
        "Errors that the device could not survive.",
        mana("total_fatal_error"),
    ),
    counter(
        "roce_admin_command_errors_total",
        "events",
        "Commands of the driver to the device that failed.",
        efa("cmds_err"),
    ),
    counter(
        "roce_admin_commands_lost_total",
        "events",
        "Commands of the driver to the device that were never answered.",
        efa("no_completion_cmds"),
    ),
)
