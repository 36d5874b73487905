"""Receivers without a buffer, doorbell pacing, and errors of the device when it accesses memory."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import ANY, COUNTER, GAUGE, Row, counter, spelt
from roce_exporter.catalog.spellings import bnxt, efa, hns, ionic, mana, mlx4, mlx5_q

delay_drop = partial(spelt, ANY, "delay_drop")

ROWS = (
    counter(
        "roce_out_of_buffer_total",
        "packets",
        "Packets dropped because no receive request was posted on the receiving queue pair: the application is too slow.",
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
        "Number of times the NIC waited for a receive request on a delay-drop queue until the timeout. Needs permission "
        "to read debugfs.",
        (delay_drop("num_timeout_events", bits=32),),
        ("device",),
    ),
    Row(
        "roce_delay_drop_queues",
        GAUGE,
        "queues",
        "Queues with delay drop: the NIC waits for a receive request instead of dropping the packet.",
        (delay_drop("num_rqs"),),
        ("device",),
    ),
    Row(
        "roce_delay_drop_timeout_seconds",
        GAUGE,
        "seconds",
        "Longest time for which the NIC waits for a receive request on a delay-drop queue.",
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
        "Number of times the device's doorbell queue exceeded its threshold.",
        bnxt("pacing_alerts"),
        bnxt("dbq_pacing_alerts"),
    ),
    counter(
        "roce_doorbell_pacing_reschedules_total",
        "events",
        "Number of times doorbell pacing was prolonged.",
        bnxt("pacing_reschedule"),
    ),
    counter(
        "roce_doorbell_pacing_completions_total",
        "events",
        "Number of times doorbell pacing ended.",
        bnxt("pacing_complete"),
    ),
    counter(
        "roce_completion_queue_overflows_total",
        "events",
        "Number of times a completion queue overflowed: the application does not fetch its completions.",
        mlx4("num_cqovf"),
        bnxt("res_cmp_err"),
    ),
    counter(
        "roce_completion_queue_load_errors_total",
        "events",
        "Number of times the device could not load a completion queue's context.",
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
        "Number of times the device could not load a shared receive queue's context.",
        bnxt("res_srq_load_err"),
    ),
    counter(
        "roce_pcie_receive_errors_total",
        "events",
        "PCIe errors while a received packet was written to memory.",
        bnxt("res_rx_pci_err"),
    ),
    counter(
        "roce_pcie_transmit_errors_total",
        "events",
        "PCIe errors while a response was read from memory.",
        bnxt("res_tx_pci_err"),
    ),
    counter(
        "roce_memory_table_errors_total",
        "packets",
        "Packets for which the lookup of the memory region failed in the device.",
        hns("trp_get_mpt_err_pkt"),
    ),
    counter(
        "roce_read_table_errors_total",
        "packets",
        "Packets for which the lookup of the outstanding read failed in the device.",
        hns("trp_get_irrl_err_pkt"),
    ),
    counter("roce_hardware_errors_total", "errors", "Errors of the device itself.", mana("general_hw_error")),
    counter(
        "roce_fatal_errors_total",
        "errors",
        "Fatal errors of the device.",
        mana("total_fatal_error"),
    ),
    counter(
        "roce_admin_command_errors_total",
        "events",
        "Commands from the driver to the device that failed.",
        efa("cmds_err"),
    ),
    counter(
        "roce_admin_commands_lost_total",
        "events",
        "Commands from the driver to the device that got no reply.",
        efa("no_completion_cmds"),
    ),
)
