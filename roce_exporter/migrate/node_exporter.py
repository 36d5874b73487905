"""The names of node_exporter, collectors `infiniband` and `ethtool`, and of the collector that AWS adds for EFA.

Learnt from `collector/infiniband_linux.go`, `collector/ethtool_linux.go` and `collector/helper.go` of node_exporter 1.5.0 and
1.12.1, and from `sysfs/class_infiniband.go` of procfs. `infiniband` has a fixed table of names; those of `hw_counters` are in 1.11.0
and newer. It multiplies the data counters by 4, so they are bytes. `ethtool` makes a name of every counter of the driver; where that
replaces a character, as in `port.rx_bytes`, versions 1.8.0 to 1.9.1 write 0. AWS's writes each file of `hw_counters` under its name.
"""

import re

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS
from roce_exporter.migrate.naming import PORT, Written, expanded, in_words, totals
from roce_exporter.words import word_list, word_map

OF_COUNTERS = totals(
    "excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors "
    "multicast_rcv_packets=multicast_packets_received "
    "multicast_xmit_packets=multicast_packets_transmitted "
    "port_rcv_constraint_errors=port_constraint_errors_received "
    "port_xmit_constraint_errors=port_constraint_errors_transmitted "
    "port_rcv_data=port_data_received_bytes port_xmit_data=port_data_transmitted_bytes "
    "port_rcv_discards=port_discards_received port_xmit_discards=port_discards_transmitted "
    "port_rcv_errors=port_errors_received port_rcv_packets=port_packets_received "
    "port_xmit_packets=port_packets_transmitted port_xmit_wait=port_transmit_wait "
    "unicast_rcv_packets=unicast_packets_received unicast_xmit_packets=unicast_packets_transmitted "
    "port_rcv_remote_physical_errors=port_receive_remote_physical_errors "
    "port_rcv_switch_relay_errors=port_receive_switch_relay_errors symbol_error "
    "VL15_dropped=vl15_dropped"
)
DOUBLEWORDS = ("port_rcv_data", "port_xmit_data")
OF_HW_COUNTERS = totals(
    "duplicate_request=duplicate_requests_packets implied_nak_seq_err=implied_nak_seq_errors "
    "local_ack_timeout_err=local_ack_timeout_errors np_cnp_sent=np_cnp_packets_sent "
    "np_ecn_marked_roce_packets=np_ecn_marked_roce_packets_received out_of_buffer=out_of_buffer_drops "
    "out_of_sequence=out_of_sequence_packets_received packet_seq_err=packet_sequence_errors "
    "req_cqe_error=req_cqes_errors req_cqe_flush_error=req_cqes_flush_errors req_remote_access_errors "
    "req_remote_invalid_request=req_remote_invalid_request_errors resp_cqe_error=resp_cqes_errors "
    "resp_cqe_flush_error=resp_cqes_flush_errors resp_local_length_error=resp_local_length_errors "
    "resp_remote_access_errors rnr_nak_retry_err=rnr_nak_retry_packets_received "
    "roce_adp_retrans=roce_adp_retransmits roce_adp_retrans_to=roce_adp_retransmits_timeout "
    "roce_slow_restart=roce_slow_restart_used roce_slow_restart_cnps "
    "roce_slow_restart_trans=roce_slow_restart rp_cnp_handled=rp_cnp_packets_handled "
    "rp_cnp_ignored=rp_cnp_ignored_packets_received rx_atomic_requests "
    "rx_dct_connect=rx_dct_connect_requests rx_icrc_encapsulated=rx_icrc_encapsulated_errors "
    "rx_read_requests rx_write_requests"
)
OF_PORT = {"state": "state_id", "phys_state": "physical_state_id", "rate": "rate_bytes_per_second"}
LEGACY = word_list(
    "multicast_packets_received multicast_packets_transmitted data_received_bytes packets_received "
    "unicast_packets_received unicast_packets_transmitted data_transmitted_bytes packets_transmitted"
)

WELL_KNOWN = totals(
    "rx_bytes=received_bytes rx_dropped=received_dropped rx_errors=received_errors "
    "rx_packets=received_packets tx_bytes=transmitted_bytes tx_errors=transmitted_errors "
    "tx_packets=transmitted_packets"
)
"""Names of ethtool for which node_exporter has a fixed name."""

NO_NETDEV = "`device` is the network device, and ours has the RDMA device and its port instead"
INFO = tuple(word_map("device=device board_id=board firmware_version=firmware hca_type=model").items())
FACTS: tuple[tuple[str, Written], ...] = (
    (
        "roce_device_info",
        Written("node_infiniband_info", INFO, loss="there is no driver, GUID or PCI address"),
    ),
    *(
        (row.name, Written(f"node_amazonefa_{raw}", PORT))
        for row in CATALOG
        for one in row.spellings
        if (one.dialect, one.source) == ("efa", HW_COUNTERS)
        for raw in one.raw
    ),
)
"""Metrics with fixed names, and the metric of ours that has the same fact."""

UNTRANSLATABLE = {
    "node_infiniband_port_discards_received_total": "no driver has the file port_rcv_discards",
    **dict.fromkeys(
        (f"node_infiniband_legacy_{name}_total" for name in LEGACY),
        "read from counters_ext, which Linux 4.5 removed",
    ),
    "node_infiniband_lifespan_seconds": "node_exporter declares the name and never writes it",
    "node_amazonefa_lifespan": "a setting: the time for which the kernel may return a cached value",
    "node_amazonefa_info": "the name of the device alone; roce_device_info has more",
    "node_amazonefa_(submitted_cmds|completed_cmds|keep_alive_rcvd|alloc_.+_err|create_.+_err|reg_mr_err|mmap_err)": (
        "administration by the driver: the application gets the error itself"
    ),
    "node_ethtool_info": "the driver and firmware of every network device; roce_device_info has those of RDMA devices only",
    "node_network_(supported_port_info|autonegotiate|((autonegotiate|(asymmetric)?pause)_)?(supported|advertised)(_speed_bytes)?)": (
        "a link mode that the network device supports or advertises, not what is in use"
    ),
}

_INVALID = re.compile(r"_*[^0-9A-Za-z_]+_*")
_RECEIVED = re.compile(r"(^|_)rx(_|$)")
_TRANSMITTED = re.compile(r"(^|_)tx(_|$)")
_BOTH = re.compile(r"\(rx\|tx\)_")
_WORD = re.compile(r"(?<![A-Za-z0-9)])[rt]x_")
_LEFT = re.compile(r"[rt]x")


def ethtool_name(raw: str) -> str:
    """The metric that the ethtool collector makes of a raw name."""
    clean = _INVALID.sub("_", raw)
    if fixed := WELL_KNOWN.get(clean):
        return f"node_ethtool_{fixed}"
    name = _RECEIVED.sub(r"\1received\2", clean.lower().lstrip("_"))
    return "node_ethtool_" + _TRANSMITTED.sub(r"\1transmitted\2", name)


def written(source: str, raw: str, labels: tuple[str, ...]) -> list[Written]:
    """How node_exporter writes a raw name of a source; `labels` are those of our metric."""
    if source == ETHTOOL:
        pairs = (("device", "netdev"),) if "netdev" in labels else ()
        loss = "" if pairs else NO_NETDEV
        return [Written(ethtool_name(name), pairs, matching, loss=loss) for name, matching in expanded(raw)]
    tables = {COUNTERS: OF_COUNTERS, HW_COUNTERS: OF_HW_COUNTERS, "port": OF_PORT}
    if (name := tables.get(source, {}).get(raw)) is None:
        return []
    return [Written(f"node_infiniband_{name}", PORT, times=4 if raw in DOUBLEWORDS else 1)]


def pattern_of(source: str, pattern: str) -> str:
    """The regular expression of the metrics of raw names that match a pattern; empty where that cannot be said."""
    if source != ETHTOOL or not in_words(pattern):
        return ""
    words = _BOTH.sub("(received|transmitted)_", pattern)
    words = _WORD.sub(lambda found: "received_" if found[0] == "rx_" else "transmitted_", words)
    # Where `rx` or `tx` is left, it is a part of a word, or the form is not known.
    return "" if _LEFT.search(words) else f"node_ethtool_({words.lower()})"
