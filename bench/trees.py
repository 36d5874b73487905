"""Hosts made of plain files, of any size: input for all exporters under comparison."""

from __future__ import annotations

from pathlib import Path

COUNTERS = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "multicast_rcv_packets",
    "multicast_xmit_packets",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
    "unicast_rcv_packets",
    "unicast_xmit_packets",
)
HW_COUNTERS = (
    "clear_counters",
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_cqe_error",
    "req_cqe_flush_error",
    "req_remote_access_errors",
    "req_remote_invalid_request",
    "req_rnr_retries_exceeded",
    "req_transport_retries_exceeded",
    "resp_cqe_error",
    "resp_cqe_flush_error",
    "resp_local_length_error",
    "resp_remote_access_errors",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_atomic_requests",
    "rx_icrc_encapsulated",
    "rx_read_requests",
)
"""The hw_counters of a ConnectX-7, and one that no exporter maps."""

DEVICE = {"fw_ver": "28.39.1002", "board_id": "MT_0000000838", "hca_type": "MT4129", "node_type": "1: CA"}
PORT = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "400 Gb/sec (4X NDR)",
    "link_layer": "Ethernet",
}
VALUE = 123_456_789_012


def write_host(root: Path, ports: int, netdevs: tuple[str, ...] = (), sysfs: Path = Path("/sys")) -> Path:
    """Write a sysfs of mlx5 devices with one port each, `netdevs` of `sysfs` behind the first; returns its root."""
    (root / "class/net").mkdir(parents=True, exist_ok=True)
    for number in range(ports):
        device = root / f"class/infiniband/mlx5_{number}"
        _write(device, {**DEVICE, "node_guid": f"9803:9b03:0000:{number:04x}"})
        _write(device / "ports/1", PORT)
        _write(device / "ports/1/counters", {name: str(VALUE + i) for i, name in enumerate(COUNTERS)})
        _write(device / "ports/1/hw_counters", {name: str(VALUE + i) for i, name in enumerate(HW_COUNTERS)})
    for number, netdev in enumerate(netdevs):
        (root / "class/net" / netdev).symlink_to(sysfs / "class/net" / netdev)
        port = root / f"class/infiniband/mlx5_{number}/ports/1"
        _write(port / "gids", {"0": "fe80:0000:0000:0000:9a03:9bff:fe00:0001"})
        _write(port / "gid_attrs/types", {"0": "RoCE v2"})
        _write(port / "gid_attrs/ndevs", {"0": netdev})
    return root


def _write(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
