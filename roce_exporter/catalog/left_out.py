"""Raw names that are deliberately not exported, each with the reason.

A reason has a category, which a test can check: names of one queue contain a number, counters that are never written have
no row, the parts of a sum have rows of their own, and no counter of the physical port is in the category of the kernel's
own path through the driver. See `tests/drift/test_reasons.py`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from roce_exporter.catalog.row import ANY, COUNTERS, ETHTOOL, HW_COUNTERS
from roce_exporter.catalog.windows_names import PERFORMANCE_COUNTER, WINOF2


class Reason(NamedTuple):
    """Why names are left out: the category for tests, and the sentence for users."""

    category: str
    text: str


QUEUE = "queue"
KERNEL = "kernel"
SIZE = "size"
CAST = "cast"
SAME = "same"
"""Another metric has the fact; the text names it if it is a single metric."""
SUM = "sum"
NEVER = "never written"
NARROW = "low bits"
TCP = "tcp"
CLOCK = "clock"
IDLE = "energy"
DUPLEX = "half duplex"
FILTER = "filter"
ADMINISTRATION = "administration"
SETTING = "setting"
UNDOCUMENTED = "undocumented"
OTHER = "other traffic"

CATEGORIES = (
    QUEUE,
    KERNEL,
    SIZE,
    CAST,
    SAME,
    SUM,
    NEVER,
    NARROW,
    TCP,
    CLOCK,
    IDLE,
    DUPLEX,
    FILTER,
    ADMINISTRATION,
    SETTING,
    UNDOCUMENTED,
    OTHER,
)


class LeftOut(NamedTuple):
    """Names of one source and dialect whose full text matches a regular expression, and why they are left out."""

    source: str
    dialect: str
    pattern: re.Pattern[str]
    reason: Reason
    parts: tuple[str, ...] = ()
    """For a sum: the raw names that it adds up."""


def _rdma(dialect: str, pattern: str, category: str, text: str, *parts: str) -> LeftOut:
    return LeftOut(HW_COUNTERS, dialect, re.compile(pattern), Reason(category, text), parts)


def _pma(dialect: str, pattern: str, category: str, text: str) -> LeftOut:
    return LeftOut(COUNTERS, dialect, re.compile(pattern), Reason(category, text))


def _winof2(pattern: str, reason: Reason) -> LeftOut:
    return LeftOut(PERFORMANCE_COUNTER, WINOF2, re.compile(rf"Mellanox WinOF-2 {pattern}"), reason)


def _ethtool(dialect: str, pattern: str, reason: Reason) -> LeftOut:
    return LeftOut(ETHTOOL, dialect, re.compile(pattern), reason)


OF_QUEUE = Reason(QUEUE, "one queue of the kernel's own traffic, which RDMA does not use")
OF_KERNEL = Reason(KERNEL, "the kernel's own path through the driver, which RDMA does not use")
BY_SIZE = Reason(SIZE, "packets by size")
BY_CAST = Reason(CAST, "packets by kind of address or tag; the port's bytes and packets have metrics")
OF_PORT = Reason(SAME, "parts of the bytes, packets and errors of the port, which have metrics of their own")
OF_CLOCK = Reason(CLOCK, "timestamps of the kernel's own traffic")
OF_IDLE = Reason(IDLE, "idle times of energy-efficient Ethernet, not related to health")
NO_DUPLEX = Reason(DUPLEX, "collisions occur on half-duplex links only, and RoCE ports are full duplex")
OF_FILTERS = Reason(FILTER, "the switch and the filters inside the NIC")
BY_DRIVER = Reason(ADMINISTRATION, "administration by the driver")
OF_ANOTHER_DRIVER = Reason(OTHER, "a counter of veth, below RDMA in software: not related to RDMA")
NO_MEANING = Reason(UNDOCUMENTED, "no documented unit or meaning")
SUMMED = "a sum, calculated by the driver, of counters that have metrics of their own"
UNWRITTEN = "declared by the driver but never written: 0 on every host"

RDMA = (
    _rdma(
        ANY,
        "lifespan",
        SETTING,
        "a setting: the time in milliseconds for which the kernel may return a cached value",
    ),
    _rdma(
        "mlx5",
        "vport_.+",
        SAME,
        "the same counter of the VF or SF behind a representor, read on that function itself",
    ),
    _rdma(
        "bnxt_re",
        "active_.+",
        SAME,
        "objects in use, which RDMA netlink reports: roce_resource_*",
    ),
    _rdma(
        "bnxt_re",
        "watermark_.+|.+_watermark",
        SAME,
        "the highest number ever in use: max_over_time of roce_resource_*",
    ),
    _rdma(
        "bnxt_re",
        "max_(qps|cqs|mrs|(pd|srq|ah|mw)s?)|hw_retransmission|fw_service_prof_type_sup",
        SETTING,
        "a limit or a capability, which never changes",
    ),
    _rdma("bnxt_re", "link_state", SAME, "the state of the link: roce_port_state"),
    _rdma("bnxt_re", "db_fifo_register|dbq_dbr_fifo_reg", UNDOCUMENTED, "the raw content of a register"),
    _rdma("bnxt_re", "resize_cq_cnt|te_bypassed", OTHER, "activity that is not related to health"),
    _rdma(
        "bnxt_re",
        "req_cqe_error",
        SUM,
        SUMMED,
        "bad_resp_err",
        "local_qp_op_err",
        "local_protection_err",
        "mem_mgmt_op_err",
        "req_remote_invalid_request",
        "req_remote_access_errors",
        "remote_op_err",
    ),
    _rdma("bnxt_re", "resp_cqe_error", SUM, SUMMED, "res_cmp_err", "res_cq_load_err"),
    _rdma("bnxt_re", "resp_remote_access_errors", SUM, SUMMED, "res_rx_no_perm", "res_tx_no_perm"),
    _rdma(
        "bnxt_re",
        "(req|resp)_cqe_flush_error|roce_adp_retrans(_to)?|roce_slow_restart(_cnps|_trans)?|rp_cnp_ignored"
        "|rx_icrc_encapsulated",
        NEVER,
        UNWRITTEN,
    ),
    _rdma(
        "irdma",
        "(tcp)?(RetransSegs|InOptErrors|InProtoErrors|InSegs|OutSegs)",
        TCP,
        "TCP segments: iWARP, not RoCE",
    ),
    _rdma(
        "hns",
        "rx_buffer|trp_rx_sof|cq_cqe|cq_poe|cq_notify",
        UNDOCUMENTED,
        "internals without a documented unit or meaning",
    ),
    _rdma("mana", "current_rate", UNDOCUMENTED, "a rate in device units that are not documented"),
    _rdma(
        "efa",
        "submitted_cmds|completed_cmds|keep_alive_rcvd|alloc_.+_err|create_.+_err|reg_mr_err|mmap_err",
        ADMINISTRATION,
        "administration by the driver: the application gets the error itself",
    ),
)

# The PMA that Linux 7 adds for two drivers. Their own counters of the same facts are 64 bits wide.
PMA = (
    _pma(
        "bnxt_re",
        "port_rcv_errors|port_xmit_discards|port_(rcv|xmit)_constraint_errors",
        NARROW,
        "the low 8 or 16 bits of a counter that hw_counters has in full width, and not a count of partition errors",
    ),
    _pma(
        "bnxt_re",
        "symbol_error|link_error_recovery|link_downed|port_rcv_(remote_physical|switch_relay)_errors"
        "|local_link_integrity_errors|excessive_buffer_overrun_errors|VL15_dropped|port_xmit_wait|multicast_.+",
        NEVER,
        UNWRITTEN,
    ),
    _pma(
        "rxe",
        "symbol_error|link_error_recovery|port_(rcv|xmit)_.*errors|port_xmit_(discards|wait)|local_link_integrity_errors"
        "|excessive_buffer_overrun_errors|VL15_dropped|(uni|multi)cast_.+",
        NEVER,
        UNWRITTEN,
    ),
)

# ocrdma_pma_counters fills four of the fields, each with the low 32 bits of a counter.
OCRDMA_PMA = (
    _pma(
        "ocrdma",
        "port_(rcv|xmit)_data",
        NARROW,
        "the low 32 bits of a count of 4-byte words, which wrap every 14 seconds at 10 Gb/s",
    ),
    _pma(
        "ocrdma",
        "symbol_error|link_error_recovery|link_downed|port_(rcv|xmit)_.*errors|port_xmit_(discards|wait)"
        "|local_link_integrity_errors|excessive_buffer_overrun_errors|VL15_dropped",
        NEVER,
        UNWRITTEN,
    ),
)

# From ethtool, only queues are left out for every driver: the names of an unknown NIC must be visible.
QUEUES = (
    _ethtool("rxe", "peer_ifindex|rx_pp_.+", OF_ANOTHER_DRIVER),
    _ethtool("siw", "peer_ifindex|rx_pp_.+", OF_ANOTHER_DRIVER),
    _ethtool(
        ANY,
        r"\[\d+\]: .+|\d+(_\d+| \[XDP\])?: .+|(rx|tx|ch|xsk|xdp)[-_]?\d+[._](?!(to_\w+_)?bytes?_p).+"
        r"|(rx|tx)_queue_\d+_.+|queue_\d+_.+|(rx|tx)q\d+_.+|(rx|tx)_q-\d+_.+",
        OF_QUEUE,
    ),
)

MLX = (
    _ethtool("mlx5", r"(rx|tx)_\d+(_to_\d+)?_bytes_phy", BY_SIZE),
    _ethtool("mlx5", r"(rx|tx)_(multicast|broadcast)_phy", BY_CAST),
    _ethtool(
        "mlx5",
        r"(rx|tx)_vport_(unicast|multicast|broadcast)_(packets|bytes)",
        Reason(OTHER, "this function's traffic without RDMA, which the kernel's own statistics count"),
    ),
    _ethtool(
        "mlx5",
        r"vport_(rx|tx)_(packets|bytes)",
        Reason(OTHER, "all traffic of the VF or SF behind a representor, read on that function itself"),
    ),
    _ethtool(
        "mlx5",
        r"vport_loopback_(packets|bytes)",
        Reason(OTHER, "traffic inside the NIC, not related to health"),
    ),
    _ethtool(
        "mlx5",
        r"(ipsec|macsec|psp|ptp|qos)_.+",
        Reason(OTHER, "encryption, clocks and shaping of the kernel's own traffic"),
    ),
    _ethtool("mlx5", r"rx_pet_.+_drop|clear_counters", NO_MEANING),
    _ethtool(
        "mlx5",
        r"(rx|tx)_(packets|bytes|recover|nop|cqes|timestamps|(queue|csum|tso|lro|gro|hds|xdp|xsk|tls|arfs|cqe|wqe|mpwqe|skb"
        r"|cache|page|pp|buff|congst|added_vlan|removed_vlan|xmit|oversize_pkts_sw)_.+)|ch_.+",
        OF_KERNEL,
    ),
    _ethtool("mlx4", r"rx_(lt|gt)?_?\d+_.+|tx_(lt|gt)?_?\d+_.+", BY_SIZE),
    _ethtool("mlx4", r"(rx|tx)_(multicast|broadcast|novlan)_(packets|bytes)", BY_CAST),
    _ethtool(
        "mlx4",
        r"(pf_)?(rx|tx)_(packets|bytes|errors|dropped|timeout|\w+_errors)|multicast|(rx|tx)_(csum|chksum|alloc|xdp)_.+"
        r"|tso_packets|xmit_more|queue_stopped|wake_queue",
        OF_KERNEL,
    ),
    _ethtool("mlx4", "collisions", NO_DUPLEX),
)

RUNTS = Reason(SAME, "bytes of the short frames that roce_phy_receive_fragments_total counts")

BROADCOM = (
    _ethtool("bnxt_re", r"(rx|tx)_\d+b(_\d+b)?_frames", BY_SIZE),
    _ethtool("bnxt_re", r"(rx|tx)_(ucast|mcast|bcast|ctrl|tagged|double_tagged|good_vlan)_frames", BY_CAST),
    _ethtool("bnxt_re", r"(rx|tx)_good_frames", OF_PORT),
    _ethtool("bnxt_re", r"(rx|tx)_eee_.+", OF_IDLE),
    _ethtool("bnxt_re", r"rx_runt_bytes", RUNTS),
    _ethtool("bnxt_re", r"tx_total_collisions", NO_DUPLEX),
    _ethtool(
        "bnxt_re", r"(rx|tx)_total_(?!frames|collisions).+|total_missed_irqs|(tpa|ktls|lpbk)_.+", OF_KERNEL
    ),
    _ethtool("bnxt_re", r"tx_xthol_frames|pcie_.+|hw_db_recov_oo_drop_count", NO_MEANING),
    _ethtool("bng_re", r"[rt]xp_(tagged|double_tagged|good_vlan)_frames", BY_CAST),
    _ethtool("bng_re", r"[rt]xp_eee_.+", OF_IDLE),
    _ethtool("bng_re", r"rxp_runt_bytes", RUNTS),
    _ethtool("bng_re", r"txp_xthol_frames", NO_MEANING),
)

INTEL = (
    _ethtool("irdma", r"(port\.)?(rx|tx)_size_\w+(\.nic)?|port-(rx|tx)_size-.+", BY_SIZE),
    _ethtool(
        "irdma",
        r"(port\.)?(rx|tx)_(unicast|multicast|broadcast)(\.nic)?|(port-)?(rx|tx)-(unicast|multicast|broadcast)_pkts",
        BY_CAST,
    ),
    _ethtool(
        "irdma",
        r"(rx|tx)_(packets|bytes|errors|dropped|linearized?|busy|restart|stopped|force_wb|unknown_protocol|alloc_fail"
        r"|pg_alloc_fail|page_reuse|cache_(alloc|busy|reuse|waive)|gro_dropped|(length|crc|over|missed|fifo|frame)_errors)"
        r"|(rx|tx)-(dropped|unknown-protocol|buf-alloc-fail|page-alloc-fail|linearized|busy)_.+"
        r"|rx-(bad_descs|csum_errors|hsplit|hsplit_hbo|unknown_protocol)|tx-(dma_map_errs|skb_drops)",
        OF_KERNEL,
    ),
    _ethtool(
        "irdma",
        r"(port\.)?(rx_csum_bad|tx_timeout)(\.nic)?|rx_eipe_error\.nic|port-(rx-csum_errors|tx-timeout_events)",
        Reason(OTHER, "checksums and timeouts that the driver counts for the kernel's own traffic"),
    ),
    _ethtool(
        "irdma",
        r"(port\.)?[rt]x_hwtstamp_(cleared|skipped|timeouts|flushed|discarded)|late_cached_phc_updates",
        OF_CLOCK,
    ),
    _ethtool("irdma", r"(port\.)?(rx|tx)_lpi_(status|count)|port-(rx|tx)-lpi_(status|count)", OF_IDLE),
    _ethtool("irdma", r"collisions", NO_DUPLEX),
    _ethtool("irdma", r"port\.(arq_overflows|VF_admin_.+)", BY_DRIVER),
    _ethtool("irdma", r"veb\..+|(port\.)?fdir_.+|port-rx-fdir-.+", OF_FILTERS),
)

OTHERS = (
    _ethtool("ionic", r"frames_[rt]x_(less_than_)?\d+b(_\d+b)?", BY_SIZE),
    _ethtool("ionic", r"frames_[rt]x_(unicast|multicast|broadcast|vlan\w*)", BY_CAST),
    _ethtool("ionic", r"frames_[rt]x_(all|other)|octets_(rx_all|tx_total)", OF_PORT),
    _ethtool("ionic", r"(rx|tx)_(packets|bytes|tso|tso_bytes|csum\w*)|xdp_.+", OF_KERNEL),
    _ethtool(
        "hns",
        r"mac_(rx|tx)_.*\d+_(max_)?(good_|bad_)?oct_pkt_num|mac_(rx|tx)_\d+_max_(good|bad)_pkt_num",
        BY_SIZE,
    ),
    _ethtool("hns", r"mac_(rx|tx)_(uni|multi|broad)_pkt_num", BY_CAST),
    _ethtool(
        "hns",
        r"mac_(rx|tx)_good_(pkt|oct)_num|mac_(rx|tx)_bad_oct_num|mac_(rx|tx)_(send_app|from_app|err_all)_.*pkt_num",
        OF_PORT,
    ),
    _ethtool("hns", r"mac_(rx|tx)_undermin_pkt_num", NO_MEANING),
    _ethtool("qedr", r"(rx|tx)_\w+_byte_packets", BY_SIZE),
    _ethtool("qedr", r"(rx|tx)_(ucast|mcast|bcast)_(bytes|pkts)", BY_CAST),
    _ethtool("qedr", r"(non_)?coalesced_.+", OF_KERNEL),
    _ethtool("qedr", r"ptp_.+", OF_CLOCK),
    _ethtool("qedr", r"tx_lpi_entry_count", OF_IDLE),
    _ethtool("qedr", r"tx_total_collisions", NO_DUPLEX),
    _ethtool("qedr", r"gft_filter_drop|(mac|mftag)_filter_discards", OF_FILTERS),
    _ethtool(
        "qedr",
        r"ttl0_discard",
        Reason(OTHER, "IP packets whose time to live was 0: routing, not the port"),
    ),
    _ethtool("mana", r"hc_(rx|tx)_([umb]cast_(pkts|bytes)|bytes)", BY_CAST),
    _ethtool(
        "mana",
        r"hc_tx_err_.+|hc_rx_err_vport_disabled",
        Reason(OTHER, "packets of the kernel's own traffic that the hypervisor refused"),
    ),
    _ethtool("mana", r"(stop|wake)_queue|(rx|tx)_cqe?_.+|tx_linear_.+|rx_coalesced_err", OF_KERNEL),
    _ethtool(
        "efa",
        r"(ena_)?admin_q_.+|interface_(up|down)|suspend|resume|io_(suspend|resume)|wd_expired|tx_timeout|reset_fail",
        BY_DRIVER,
    ),
    _ethtool(
        "efa",
        r"\w+_allowance_(exceeded|available)",
        Reason(OTHER, "allowances of the cloud for this network device, which is not the RDMA device"),
    ),
    _ethtool(
        "efa",
        r"ena_srd_.+",
        Reason(OTHER, "ENA Express of this network device, which is not the RDMA device"),
    ),
)

OCRDMA = (
    _ethtool("ocrdma", r"(rx|tx)q\d+: .+", OF_QUEUE),
    _ethtool("ocrdma", r"dma_map_errors|eth_red_drops|rx_drops_(no_erx_descr|too_many_frags)", OF_KERNEL),
    _ethtool("ocrdma", r"rx_address_filtered", OF_FILTERS),
    _ethtool(
        "ocrdma",
        r"rx_dropped_(too_small|too_short|header_too_small|tcp_length)|rx_(ip|tcp|udp)_checksum_errs|rx_drops_no_tpre_descr",
        Reason(OTHER, "packets of IP, TCP, UDP and storage offloads, not of RDMA"),
    ),
    _ethtool(
        "ocrdma",
        r"rx_roce_frames",
        Reason(SAME, "the RDMA packets received: roce_port_receive_packets_total"),
    ),
    _ethtool(
        "ocrdma",
        r"rx_roce_bytes_[lm]sd",
        Reason(NARROW, "the lower and the upper 32 bits of one count, which the driver updates separately"),
    ),
    _ethtool(
        "ocrdma",
        r"rx_alignment_symbol_errors|rx_dropped_runt|forwarded_packets|roce_drops_(crc|payload_len)",
        NO_MEANING,
    ),
)

STANDARD = (
    LeftOut(
        "ethernet",
        ANY,
        re.compile(
            r"eth-mac-(Frames(Transmitted|Received)OK|Octets.+|Multicast.+|Broadcast.+|.*Collision.*|.*Defer.*)"
            r"|eth-mac-(InRange|OutOfRange|Carrier|Late).+"
        ),
        Reason(SAME, "bytes, packets and sizes, which the port's own counters include"),
    ),
    LeftOut(
        "dcb",
        ANY,
        re.compile(r"pfc_(requests|indications)_\d+"),
        Reason(SAME, "pause frames, which `ethtool -S` counts"),
    ),
)

IP_SIDE = (
    LeftOut(
        "addresses",
        ANY,
        re.compile(r"(address|gateway|failing|rule|path|limit|capped) .*|\w+\.(all|own)|facts|paths"),
        Reason(SETTING, "a fact about addresses and routes, which the audit's checks judge"),
    ),
)

WINDOWS = (
    _winof2(r".+/[Ss]ec", Reason(SAME, "a rate that Windows calculates from a counter that has a metric")),
    _winof2(
        r"Port (Traffic|QoS)\\(Bytes|Packets) Total",
        Reason(SAME, "both directions together, which have metrics of their own"),
    ),
    _winof2(
        r"Port QoS\\Received Pause (Frames|Duration)",
        Reason(
            SAME,
            "the names in the revision history of the manual for `Rcv Pause Frames` and `Rcv Pause Duration`",
        ),
    ),
    _winof2(
        r"Diagnostics Ext 1\\(Generated|Handled) Packets dropped due to steering failure",
        Reason(
            SAME, "the same counters of `Mellanox WinOF-2 VF Diagnostics` have metrics: roce_devlink_vnic_*"
        ),
    ),
    _winof2(r"Diagnostics Ext 1\\CM DREQ|VF Diagnostics\\Packets Received WQE too small", NO_MEANING),
)

LEFT_OUT = (
    *IP_SIDE,
    *RDMA,
    *PMA,
    *OCRDMA_PMA,
    *QUEUES,
    *MLX,
    *BROADCOM,
    *INTEL,
    *OTHERS,
    *OCRDMA,
    *STANDARD,
    *WINDOWS,
)


def entry_of(dialect: str, source: str, raw: str) -> LeftOut | None:
    """The entry that leaves this raw name out, or None."""
    for entry in LEFT_OUT:
        if entry.source == source and entry.dialect in (ANY, dialect) and entry.pattern.fullmatch(raw):
            return entry
    return None


def reason_for(dialect: str, source: str, raw: str) -> str:
    """Why this raw name is deliberately not exported; empty when it is not left out."""
    entry = entry_of(dialect, source, raw)
    return entry.reason.text if entry else ""
