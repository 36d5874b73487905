"""DCQCN as counted by the NIC: marks received, CNPs sent, received and handled (IEEE 802.1Qau, RoCEv2 annex A17.9)."""

from __future__ import annotations

from roce_exporter.catalog.row import LEAN, counter, gauge
from roce_exporter.catalog.spellings import bnxt, hns, ionic, irdma, mana, mlx5
from roce_exporter.catalog.windows_names import win_congestion

ROWS = (
    counter(
        "roce_ecn_marked_packets_total",
        "packets",
        "RoCEv2 packets received with the ECN mark (CE) set by a switch: this host is the notification point of a "
        "congested path. On an mlx5 RoCE LAG the sum over the member ports.",
        mlx5("np_ecn_marked_roce_packets"),
        bnxt("rx_ecn_marked_pkts"),
        bnxt("np_ecn_marked_roce_packets"),
        irdma("RxECNMrkd"),
        ionic("rx_rdma_ecn_pkts"),
        mana("received_ecns"),
        win_congestion("Notification Point - RoCEv2 DCQCN Marked Packets"),
        metric_set=LEAN,
    ),
    counter(
        "roce_cnp_sent_total",
        "packets",
        "Congestion notification packets sent to senders whose packets arrived marked (notification point). Fewer CNPs "
        "than marks are normal; no CNPs although marked packets arrive means that notification is off.",
        mlx5("np_cnp_sent"),
        bnxt("tx_cnp_pkts"),
        bnxt("cnp_tx_pkts"),
        bnxt("np_cnp_pkts"),
        bnxt("np_cnp_sent"),
        irdma("cnpSent", bits=32),
        ionic("tx_rdma_cnp_pkts"),
        hns("tx_cnp_pkt"),
        mana("sent_cnps"),
        win_congestion("Notification Point - CNPs Sent Successfully"),
        metric_set=LEAN,
    ),
    counter(
        "roce_cnp_handled_total",
        "packets",
        "Congestion notification packets received and handled (reaction point): this host reduces its sending rate. "
        "bnxt, ionic, hns and mana count all CNPs received, whether handled or not.",
        mlx5("rp_cnp_handled"),
        bnxt("rx_cnp_pkts"),
        bnxt("cnp_rx_pkts"),
        bnxt("rp_cnp_handled"),
        irdma("cnpHandled", bits=32),
        ionic("rx_rdma_cnp_pkts"),
        hns("rx_cnp_pkt"),
        mana("received_cnps"),
        mana("received_cnp_count"),
        win_congestion("Reaction Point - CNPs Handled Successfully"),
        metric_set=LEAN,
    ),
    counter(
        "roce_cnp_ignored_total",
        "packets",
        "Congestion notification packets received and ignored: the reaction point is off, or the flow no longer exists.",
        mlx5("rp_cnp_ignored"),
        irdma("cnpIgnored", bits=32),
        win_congestion("Reaction Point - Ignored CNP Packets"),
        metric_set=LEAN,
        usual=0,
    ),
    counter(
        "roce_cnp_sent_bytes_total",
        "bytes",
        "Bytes of congestion notification packets sent; older bnxt chips only.",
        bnxt("cnp_tx_bytes"),
    ),
    counter(
        "roce_cnp_received_bytes_total",
        "bytes",
        "Bytes of congestion notification packets received; older bnxt chips only.",
        bnxt("cnp_rx_bytes"),
    ),
    counter(
        "roce_ecn_doorbells_total",
        "events",
        "Internal congestion events of an hns device, which does not count marked packets.",
        hns("ecn_doorbell"),
    ),
    gauge(
        "roce_congested_queue_pairs",
        "queue_pairs",
        "Queue pairs that the device currently throttles because of congestion.",
        mana("num_qps_congested"),
    ),
    counter(
        "roce_queue_pair_congestions_total",
        "events",
        "Number of times a queue pair became congested.",
        mana("qp_congested_events"),
    ),
    counter(
        "roce_queue_pair_recoveries_total",
        "events",
        "Number of times a queue pair recovered from congestion.",
        mana("num_qps_recovered"),
        mana("qp_recovered_events"),
    ),
    counter(
        "roce_rate_increases_total",
        "events",
        "Number of times the device raised a sending rate again after congestion.",
        mana("rate_inc_events"),
    ),
)
