"""A small table of other exporters' names, constructed after their public sources, so that each rule of a translation has a case."""

from roce_exporter.migrate.foreign import Foreign
from roce_exporter.migrate.promql_names import Names

PORT = (("device", "device"), ("port", "port"))
RDMA, NODE, SPIDER = "rdma_exporter", "node_exporter", "spiderpool"


def metric(
    exporter: str,
    name: str,
    ours: str,
    labels: tuple[tuple[str, str], ...] = PORT,
    *,
    times: int = 1,
    per: int = 1,
    matching: tuple[tuple[str, str], ...] = (),
    where: tuple[tuple[str, str], ...] = (),
    loss: str = "",
) -> Foreign:
    return Foreign(exporter, name, ours, times, per, matching, labels, loss, where)


ETH = (("device", "netdev"),)
TABLE = (
    metric(RDMA, "rdma_port_rcv_data_total", "roce_port_receive_bytes_total", times=4),
    metric(RDMA, "rdma_port_xmit_data_total", "roce_port_transmit_bytes_total", times=4),
    metric(RDMA, "rdma_link_downed_total", "roce_port_link_downed_total", loss="Wraps early."),
    metric(
        RDMA, "rdma_pause_microseconds_total", "roce_pfc_receive_pause_seconds_total", times=1, per=1_000_000
    ),
    metric(RDMA, "rdma_np_cnp_sent_total", "roce_cnp_sent_total"),
    metric(RDMA, "rdma_discards_total", "roce_phy_receive_discards_total"),
    metric(RDMA, "rdma_two_total", "roce_cnp_sent_total"),
    metric(RDMA, "rdma_two_total", "roce_cnp_handled_total"),
    metric(SPIDER, "rdma_np_cnp_sent_total", "roce_cnp_sent_total", (("ifname", "device"),)),
    metric(
        RDMA,
        "rdma_pause_total",
        "roce_pfc_receive_frames_total",
        (*PORT, ("netdev", "netdev"), ("priority", "priority")),
        where=(("direction", "rx"),),
    ),
    metric(
        RDMA,
        "rdma_pause_total",
        "roce_pfc_transmit_frames_total",
        (*PORT, ("netdev", "netdev"), ("priority", "priority")),
        where=(("direction", "tx"),),
    ),
    metric(NODE, "node_infiniband_link_downed_total", "roce_port_link_downed_total"),
    metric(NODE, "node_infiniband_port_data_received_bytes_total", "roce_port_receive_bytes_total"),
    *(
        metric(
            NODE,
            f"node_ethtool_received_prio{number}_pause",
            "roce_pfc_receive_frames_total",
            ETH,
            matching=(("priority", str(number)),),
        )
        for number in (3, 4)
    ),
    metric(NODE, "node_ethtool_received_discards_phy", "roce_phy_receive_discards_total", ETH),
)
REFUSED = {"node_ethtool_info": "it is about the driver", "rdma_qp_.*": "queue pairs are not counted"}


def names(*exporters: str) -> Names:
    known: dict[str, tuple[Foreign, ...]] = {}
    for one in TABLE:
        if not exporters or one.exporter in exporters:
            known[one.name] = (*known.get(one.name, ()), one)
    return Names(known, REFUSED, ("node_infiniband_", "node_ethtool_", "rdma_"))


NAMES = names()
