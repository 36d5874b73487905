"""Raw names that are deliberately no metric, each with the reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from roce_exporter.catalog.row import ANY, ETHTOOL, HW_COUNTERS


class LeftOut(NamedTuple):
    """Names of one source and dialect that match a regular expression as a whole, and why they are left out."""

    source: str
    dialect: str
    pattern: re.Pattern[str]
    reason: str


def _of(dialect: str, pattern: str, reason: str) -> LeftOut:
    return LeftOut(HW_COUNTERS, dialect, re.compile(pattern), reason)


def _ethtool(pattern: str, reason: str, dialect: str = ANY) -> LeftOut:
    return LeftOut(ETHTOOL, dialect, re.compile(pattern), reason)


QUEUE = "one queue of the kernel's own traffic, which RDMA does not use"
KERNEL = "the kernel's own way through the driver, which RDMA does not use"
SIZE = "packets by size"
CAST = "packets by kind of address or tag; bytes and packets of the port are told"

LEFT_OUT = (
    _of(ANY, "lifespan", "a setting: for how many milliseconds the kernel may serve a cached value"),
    _of(
        "mlx5",
        "vport_.+",
        "the same counter of the VF or SF behind a representor, read on that function itself",
    ),
    _of("bnxt_re", "active_.+", "objects in use, which RDMA netlink tells as roce_resource_*"),
    _of(
        "bnxt_re",
        "watermark_.+|.+_watermark",
        "the most that was ever in use: max_over_time of roce_resource_*",
    ),
    _of(
        "bnxt_re",
        "max_(qp|cq|mr|pd|srq|ah|mw)s?|hw_retransmission|fw_service_prof_type_sup",
        "a limit or an ability, which never changes",
    ),
    _of("bnxt_re", "link_state", "the state of the link, which roce_port_state tells"),
    _of("bnxt_re", "db_fifo_register|dbq_dbr_fifo_reg", "the raw content of a register"),
    _of("bnxt_re", "resize_cq_cnt|te_bypassed", "activity that says nothing about health"),
    _of(
        "irdma",
        "RetransSegs|InOptErrors|InProtoErrors|InSegs|OutSegs",
        "TCP segments: iWARP, not RoCE",
    ),
    _of(
        "hns",
        "rx_buffer|trp_rx_sof|cq_cqe|cq_poe|cq_notify",
        "internals without a documented unit or meaning",
    ),
    _of("mana", "current_rate", "a rate in device units that are not documented"),
    _of(
        "efa",
        "submitted_cmds|completed_cmds|keep_alive_rcvd|alloc_.+_err|create_.+_err|reg_mr_err|mmap_err",
        "administration by the driver: an application sees the error itself",
    ),
    # Of ethtool, only queues are left out whoever answers: the names of a NIC that nobody knows are to be seen.
    _ethtool(
        r"\[\d+\]: .+|\d+: .+|(rx|tx|ch|xsk|xdp)[-_]?\d+[._](?!(to_\d+_)?bytes_phy).+|(rx|tx)_queue_\d+_.+|queue_\d+_.+"
        r"|(rx|tx)q\d+_.+|(rx|tx)_q-\d+_.+",
        QUEUE,
    ),
    _ethtool(r"(rx|tx)_\d+(_to_\d+)?_bytes_phy", SIZE, "mlx5"),
    _ethtool(r"(rx|tx)_(multicast|broadcast)_phy", CAST, "mlx5"),
    _ethtool(
        r"(rx|tx)_vport_(unicast|multicast|broadcast)_(packets|bytes)",
        "this function's traffic without RDMA, which the kernel's own statistics tell",
        "mlx5",
    ),
    _ethtool(r"vport_loopback_(packets|bytes)", "traffic inside the NIC, no sign of health", "mlx5"),
    _ethtool(
        r"(ipsec|macsec|psp|ptp|qos)_.+", "encryption, clocks and shaping of the kernel's own traffic", "mlx5"
    ),
    _ethtool(
        r"(rx|tx)_(packets|bytes|recover|nop|cqes|timestamps|(queue|csum|tso|lro|gro|hds|xdp|xsk|tls|arfs|cqe|wqe|mpwqe|skb"
        r"|cache|page|pp|buff|congst|added_vlan|removed_vlan|xmit|oversize_pkts_sw)_.+)|ch_.+",
        KERNEL,
        "mlx5",
    ),
    _ethtool(r"rx_(lt|gt)?_?\d+_.+|tx_(lt|gt)?_?\d+_.+", SIZE, "mlx4"),
    _ethtool(r"(rx|tx)_(multicast|broadcast|novlan)_(packets|bytes)", CAST, "mlx4"),
    _ethtool(
        r"(pf_)?(rx|tx)_(packets|bytes|errors|dropped|timeout|\w+_errors)|multicast|collisions|(rx|tx)_(csum|chksum|alloc|xdp)_.+"
        r"|tso_packets|xmit_more|queue_stopped|wake_queue",
        KERNEL,
        "mlx4",
    ),
    _ethtool(r"(rx|tx)_\d+b(_\d+b)?_frames", SIZE, "bnxt_re"),
    _ethtool(
        r"(rx|tx)_((ucast|mcast|bcast|ctrl|tagged|double_tagged|good|good_vlan)_frames)", CAST, "bnxt_re"
    ),
    _ethtool(
        r"(rx|tx)_(total_(?!frames).+|eee_.+|runt_.+|xthol_frames|jabber_frames|err)|total_missed_irqs|(tpa|ktls|lpbk)_.+",
        KERNEL,
        "bnxt_re",
    ),
    _ethtool(r"pcie_.+|hw_db_recov_oo_drop_count", "without a documented unit or meaning", "bnxt_re"),
    _ethtool(r"(port\.)?(rx|tx)_size_\w+(\.nic)?|port-(rx|tx)_size-.+", SIZE, "irdma"),
    _ethtool(
        r"(port\.)?(rx|tx)_(unicast|multicast|broadcast)(\.nic)?|port-(rx|tx)-(unicast|multicast|broadcast)_pkts",
        CAST,
        "irdma",
    ),
    _ethtool(
        r"(rx|tx)_(packets|bytes|errors|dropped|linearized?|busy|restart|unknown_protocol|alloc_fail|pg_alloc_fail|page_reuse"
        r"|gro_dropped|(length|crc|over|missed|fifo|frame)_errors)|collisions"
        r"|(port\.)?(tx_timeout|rx_csum_bad|rx_hwtstamp_cleared|(rx|tx)_lpi_(status|count))(\.nic)?"
        r"|(rx|tx)-(dropped|unknown-protocol|buf-alloc-fail|page-alloc-fail|linearized|busy)_.+"
        r"|port-(rx-csum_errors|tx-timeout_events|(rx|tx)-lpi_(status|count))",
        KERNEL,
        "irdma",
    ),
    _ethtool(
        r"veb\..+|(port\.)?fdir_.+|port-rx-fdir-.+|port\.VF_admin_.+",
        "the switch and the filters inside the NIC",
        "irdma",
    ),
    _ethtool(r"frames_[rt]x_(less_than_)?\d+b(_\d+b)?", SIZE, "ionic"),
    _ethtool(
        r"frames_[rt]x_(unicast|multicast|broadcast|vlan\w*|all|other)|octets_(rx_all|tx_total)",
        CAST,
        "ionic",
    ),
    _ethtool(r"(rx|tx)_(packets|bytes|tso|tso_bytes|csum\w*)|xdp_.+", KERNEL, "ionic"),
    _ethtool(r"mac_(rx|tx)_.*\d+_(max_)?(good_|bad_)?oct_pkt_num", SIZE, "hns"),
    _ethtool(r"mac_(rx|tx)_(uni|multi|broad)_pkt_num|mac_(rx|tx)_good_(pkt|oct)_num", CAST, "hns"),
    _ethtool(
        r"mac_(rx|tx)_(send_app|from_app|err_all)_.*pkt_num", "told as errors and packets of the port", "hns"
    ),
    _ethtool(r"(rx|tx)_\w+_byte_packets", SIZE, "qedr"),
    _ethtool(r"(rx|tx)_(ucast|mcast|bcast)_(bytes|pkts)", CAST, "qedr"),
    _ethtool(r"(non_)?coalesced_.+|ptp_.+|tx_(lpi_entry_count|total_collisions)", KERNEL, "qedr"),
    _ethtool(r"hc_(rx|tx)_([umb]cast_(pkts|bytes)|bytes)", CAST, "mana"),
    _ethtool(
        r"hc_tx_err_.+|hc_rx_err_vport_disabled", "packets of the kernel that the hypervisor refused", "mana"
    ),
    _ethtool(r"(stop|wake)_queue|(rx|tx)_cqe?_.+|tx_linear_.+", KERNEL, "mana"),
    _ethtool(
        r"(ena_)?admin_q_.+|interface_(up|down)|suspend|resume|io_(suspend|resume)|wd_expired|tx_timeout",
        "administration by the driver",
        "efa",
    ),
    _ethtool(
        r"\w+_allowance_exceeded",
        "what the cloud held back from this network device, which is not the RDMA device",
        "efa",
    ),
    LeftOut(
        "ethernet",
        ANY,
        re.compile(
            r"eth-mac-(Frames(Transmitted|Received)OK|Octets.+|Multicast.+|Broadcast.+|.*Collision.*|.*Defer.*)"
            r"|eth-mac-(InRange|OutOfRange|Carrier|Late).+"
        ),
        "bytes, packets and sizes, which the port's own counters tell",
    ),
    LeftOut(
        "dcb", ANY, re.compile(r"pfc_(requests|indications)_\d+"), "pause frames, which `ethtool -S` tells"
    ),
)


def left_out(dialect: str, source: str, raw: str) -> str:
    """Why this raw name is deliberately no metric; empty when it is not."""
    for entry in LEFT_OUT:
        if entry.source == source and entry.dialect in (ANY, dialect) and entry.pattern.fullmatch(raw):
            return entry.reason
    return ""
