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
    _ethtool(
        r"\[\d+\]: .+|(rx|tx|ch|xsk)[-_]?\d+[._].+|(rx|tx)_queue_\d+_.+|queue_\d+_.+|(rx|tx)_(bytes|packets)_cos\d+"
        r"|(rx|tx)_xsk_.+|(rx|tx)q\d+_.+",
        "one queue of the kernel's own traffic; RDMA does not use it",
    ),
    _ethtool(
        r".*\d+_bytes_phy|(rx|tx)_\d+b(_\d+b)?_frames|(port\.)?(rx|tx)_size_.+|frames_[rt]x_(less_than_)?\d+b(_\d+b)?"
        r"|mac_(rx|tx)_.*\d+_oct_pkt_num",
        "packets by size",
    ),
    _ethtool(
        r".*(unicast|multicast|broadcast|ucast|mcast|bcast|vlan|tagged|uni_pkt|multi_pkt|broad_pkt).*"
        r"|(rx|tx)_(good|ctrl)_frames|frames_[rt]x_(all|other)|octets_(rx_all|tx_total)",
        "packets by kind of address or tag; bytes and packets of the port are told",
    ),
    _ethtool(
        r"(rx|tx|ch)_.*(csum|tso|lro|gro|gso|xdp|cache|page|pg_|cqe|wqe|mpwqe|buff|skb|copybreak|linearize|nop|tls|arfs"
        r"|netpoll|oom|restart|busy|recover|rearm|arm|poll|events|aff_change|hwtstamp|hwstamp|ptp|xmit_more|unknown_protocol"
        r"|alloc_fail|queue_(stopped|wake|dropped|dropped)|removed|added|congst_umr|resets|ring_discards|buf_errors|tx_err"
        r"|double|eee|runt|collisions|xthol|lpi).*|(ch|xdp|tpa|ktls|lpbk)_.+|xdp_.+|total_missed_irqs|tx_(err|jabber_frames)",
        "the kernel's own path or a rare fault of it; RDMA does not use it",
    ),
    _ethtool(
        r"(rx|tx)_(packets|bytes|dropped|errors|crc_errors|length_errors|timeout|csum|tso)|collisions|hw_tx_aborted_errors"
        r"|(port\.)?tx_timeout(\.nic)?|tx_errors\.nic|(rx|tx)_(good|no|stat).*|rx_nodesc_trunc",
        "the kernel's own traffic, which its own statistics tell",
    ),
    _ethtool(
        r"veb\..+|(port\.)?fdir_.+|port\.(VF_admin|rx_csum|rx_hwtstamp|.*_lpi).*",
        "the switch inside the NIC",
        "irdma",
    ),
    _ethtool(
        r"(ena_)?admin_q_.+|interface_(up|down)|io_(suspend|resume)|wd_expired|tx_timeout|.*_allowance_exceeded|ena_.+",
        "administration by the driver",
        "efa",
    ),
    _ethtool(r"pcie_.+|hw_db_recov_oo_drop_count", "without a documented unit", "bnxt_re"),
    _ethtool(
        r"rx_unsupported_op_phy|rx_oversize_pkts_sw_drop|ipsec_.+|vport_loopback_.+|rx_vport_.+|tx_vport_.+",
        "not RDMA, or told elsewhere",
        "mlx5",
    ),
    _ethtool(r"mac_(rx|tx)_(send_app|from_app|err_all).+", "told as errors of the port", "hns"),
    LeftOut(
        "ethernet",
        ANY,
        re.compile(
            r"rmon-.+|eth-mac-(Frames(Transmitted|Received)OK|Octets.+|Multicast.+|Broadcast.+|.*Collision.*|.*Defer.*)"
            r"|eth-mac-(InRange|OutOfRange|Carrier|Late).+|eth-ctrl-Unsupported.+|phy-.+"
        ),
        "bytes, packets and sizes, which the port's own counters tell",
    ),
)


def left_out(dialect: str, source: str, raw: str) -> str:
    """Why this raw name is deliberately no metric; empty when it is not."""
    for entry in LEFT_OUT:
        if entry.source == source and entry.dialect in (ANY, dialect) and entry.pattern.fullmatch(raw):
            return entry.reason
    return ""
