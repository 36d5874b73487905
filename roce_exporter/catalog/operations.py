"""The operations that the traffic consists of: reads, writes, sends and atomics, as requester and as responder."""

from __future__ import annotations

from roce_exporter.catalog.row import counter
from roce_exporter.catalog.spellings import bnxt, efa, erdma, irdma, mana, mlx5_q, rxe

ROWS = (
    counter(
        "roce_write_requests_received_total",
        "requests",
        "RDMA writes received as responder. On mlx5 a 32-bit counter.",
        mlx5_q("rx_write_requests"),
        bnxt("rx_write_req"),
        bnxt("rx_write_requests"),
        irdma("InRdmaWrites"),
        irdma("iwInRdmaWrites"),
        mana("rx_write_requests"),
    ),
    counter(
        "roce_read_requests_received_total",
        "requests",
        "RDMA reads received as responder. On mlx5 a 32-bit counter.",
        mlx5_q("rx_read_requests"),
        bnxt("rx_read_req"),
        bnxt("rx_read_requests"),
        irdma("InRdmaReads"),
        irdma("iwInRdmaReads"),
        mana("rx_read_requests"),
    ),
    counter(
        "roce_atomic_requests_received_total",
        "requests",
        "Atomic operations received as responder. On mlx5 a 32-bit counter.",
        mlx5_q("rx_atomic_requests"),
        bnxt("rx_atomic_req"),
        bnxt("rx_atomic_requests"),
        irdma("Rx atomics"),
    ),
    counter(
        "roce_send_requests_received_total",
        "requests",
        "RDMA send operations received.",
        bnxt("rx_send_req"),
        irdma("InRdmaSends"),
        irdma("iwInRdmaSends"),
        mana("rx_send_requests"),
        efa("recv_wrs"),
        rxe("rdma_recvs"),
    ),
    counter(
        "roce_write_requests_sent_total",
        "requests",
        "RDMA writes sent as requester.",
        bnxt("tx_write_req"),
        irdma("OutRdmaWrites"),
        irdma("iwOutRdmaWrites"),
        efa("rdma_write_wrs"),
    ),
    counter(
        "roce_read_requests_sent_total",
        "requests",
        "RDMA reads sent as requester.",
        bnxt("tx_read_req"),
        irdma("OutRdmaReads"),
        irdma("iwOutRdmaReads"),
        efa("rdma_read_wrs"),
    ),
    counter(
        "roce_atomic_requests_sent_total",
        "requests",
        "Atomic operations sent as requester.",
        bnxt("tx_atomic_req"),
        irdma("Tx atomics"),
    ),
    counter(
        "roce_send_requests_sent_total",
        "requests",
        "RDMA send operations sent.",
        bnxt("tx_send_req"),
        irdma("OutRdmaSends"),
        irdma("iwOutRdmaSends"),
        efa("send_wrs"),
        rxe("rdma_sends"),
    ),
    counter(
        "roce_requests_sent_total",
        "requests",
        "Requests of any kind sent.",
        erdma("tx_reqs_cnt"),
        erdma("hw_tx_reqs_cnt"),
    ),
    counter(
        "roce_read_responses_received_total", "packets", "Read responses received.", bnxt("rx_read_resp")
    ),
    counter("roce_read_responses_sent_total", "packets", "Read responses sent.", bnxt("tx_read_resp")),
    counter(
        "roce_dct_connects_received_total",
        "requests",
        "Connection requests of dynamically connected transport received. A 32-bit counter.",
        mlx5_q("rx_dct_connect"),
    ),
    counter(
        "roce_send_received_bytes_total",
        "bytes",
        "Bytes of RDMA send operations received.",
        efa("recv_bytes"),
    ),
    counter("roce_send_sent_bytes_total", "bytes", "Bytes of RDMA send operations sent.", efa("send_bytes")),
    counter(
        "roce_read_received_bytes_total",
        "bytes",
        "Bytes received in response to RDMA reads of this host.",
        efa("rdma_read_bytes"),
    ),
    counter(
        "roce_read_sent_bytes_total",
        "bytes",
        "Bytes sent in response to RDMA reads of other hosts.",
        efa("rdma_read_resp_bytes"),
    ),
    counter("roce_write_sent_bytes_total", "bytes", "Bytes of RDMA writes sent.", efa("rdma_write_bytes")),
    counter(
        "roce_write_received_bytes_total",
        "bytes",
        "Bytes of RDMA writes received.",
        efa("rdma_write_recv_bytes"),
    ),
    counter(
        "roce_memory_window_binds_total",
        "operations",
        "Memory windows bound.",
        irdma("RdmaBnd"),
        irdma("iwRdmaBnd"),
    ),
    counter(
        "roce_memory_invalidates_total",
        "operations",
        "Memory keys invalidated.",
        irdma("RdmaInv"),
        irdma("iwRdmaInv"),
    ),
    counter("roce_flush_requests_received_total", "requests", "RDMA flushes received.", irdma("Rx Flush")),
    counter("roce_flush_requests_sent_total", "requests", "RDMA flushes sent.", irdma("Tx Flush")),
    counter(
        "roce_atomic_writes_received_total", "requests", "Atomic writes received.", irdma("Rx Atomic Write")
    ),
    counter("roce_atomic_writes_sent_total", "requests", "Atomic writes sent.", irdma("Tx Atomic Write")),
)
