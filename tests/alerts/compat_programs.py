"""A sysfs of files that our exporter and others read."""

import subprocess
import sys
from pathlib import Path

COUNTERS = (
    *("VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery"),
    *("local_link_integrity_errors", "multicast_rcv_packets", "multicast_xmit_packets"),
    *("port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors", "port_rcv_packets"),
    *("port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors"),
    *("port_xmit_constraint_errors", "port_xmit_data", "port_xmit_discards", "port_xmit_packets"),
    *("port_xmit_wait", "symbol_error", "unicast_rcv_packets", "unicast_xmit_packets"),
)
HW_COUNTERS = (
    *("duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "np_cnp_sent"),
    *("np_ecn_marked_roce_packets", "out_of_buffer", "out_of_sequence", "packet_seq_err"),
    *("req_cqe_error", "req_cqe_flush_error", "req_remote_access_errors"),
    *("req_remote_invalid_request", "req_rnr_retries_exceeded", "req_transport_retries_exceeded"),
    *("resp_cqe_error", "resp_cqe_flush_error", "resp_local_length_error"),
    *("resp_remote_access_errors", "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to"),
    *("roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans", "rp_cnp_handled"),
    *("rp_cnp_ignored", "rx_atomic_requests", "rx_dct_connect", "rx_icrc_encapsulated"),
    *("rx_read_requests", "rx_write_requests"),
)
"""The counters of a ConnectX-7 with Linux 6 (constructed after mlx5's `counters.c`)."""

DEVICE = {"fw_ver": "28.39.1002", "board_id": "MT_0000000838", "hca_type": "MT4129", "node_type": "1: CA"}
UP = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)"}
DOWN = {"state": "1: DOWN", "phys_state": "3: Disabled", "rate": "40 Gb/sec (4X QDR)"}


def write_tree(root: Path) -> Path:
    """A sysfs with two ports of mlx5, one of them down. No two counters have the same value."""
    (root / "class/net").mkdir(parents=True)
    for number, port in enumerate((UP, DOWN)):
        device = root / f"class/infiniband/mlx5_{number}"
        _write(device, {**DEVICE, "node_guid": f"9803:9b03:0000:{number:04x}"})
        below = device / "ports/1"
        _write(below, {**port, "link_layer": "Ethernet"})
        first = 1_000_003 * (number + 1)
        _write(below / "counters", {name: str(first + 97 * i) for i, name in enumerate(COUNTERS)})
        _write(
            below / "hw_counters", {name: str(first + 9_973 * (i + 1)) for i, name in enumerate(HW_COUNTERS)}
        )
        _write(below / "gids", {"0": f"fe80:0000:0000:0000:9a03:9bff:fe00:000{number}"})
        _write(below / "gid_attrs/types", {"0": "RoCE v2"})
    return root


def _write(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")


def ours_on(tree: Path) -> str:
    """What `roce-exporter once` prints."""
    command = [sys.executable, "-m", "roce_exporter", "once", f"--path.sysfs={tree}", "--metrics.set=full"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
