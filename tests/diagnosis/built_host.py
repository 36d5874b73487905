"""Hosts built from the names that drivers use for counters and files: `incidents.toml`. Two ports of one driver carry traffic; the first one has the fault."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fault_histories import recorded_history

from roce_exporter.host.recorded.recorded import play_recording
from roce_exporter.host.recorded.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.view.history import History

TABLE = Path(__file__).with_name("incidents.toml")
EPOCH, APART, MOMENTS = 1_790_000_000, 30, 21
BYTES = 4e9
"""Bytes per second and direction of a port that is busy."""

PFC = {
    "pfc_cap": 8,
    "macsec_bypass": False,
    "delay": 7,
    "prio_pfc": [priority == 3 for priority in range(8)],
    "requests": [0] * 8,
    "indications": [0] * 8,
}
MARKED = {
    "np_ecn_marked_roce_packets": 40.0,
    "np_cnp_sent": 30.0,
    "rp_cnp_handled": 20.0,
    "rp_cnp_ignored": 0.0,
}


class Names:
    """What one driver calls the traffic of a port, by source, and what it lists besides."""

    def __init__(self, module: str, hw: str, stats: str, zeros: str, *, pfc: bool = True) -> None:
        self.module = module
        self.hw = hw.split()
        self.stats = stats.split()
        self.zeros = [name.replace("+", " ") for name in zeros.split()]
        self.pfc = pfc


DRIVERS = {
    "mlx5": Names(
        "mlx5_core",
        "",  # in `counters`, in words of four bytes
        "rx_bytes_phy tx_bytes_phy rx_packets_phy tx_packets_phy rx_vport_rdma_unicast_bytes tx_vport_rdma_unicast_bytes "
        "rx_vport_rdma_unicast_packets tx_vport_rdma_unicast_packets rx_prio3_bytes tx_prio3_bytes rx_prio3_packets tx_prio3_packets",
        "hw/out_of_sequence hw/packet_seq_err hw/local_ack_timeout_err hw/out_of_buffer hw/rnr_nak_retry_err hw/roce_adp_retrans "
        "hw/roce_slow_restart_cnps hw/req_cqe_error hw/req_transport_retries_exceeded hw/duplicate_request hw/implied_nak_seq_err "
        "hw/rx_icrc_encapsulated ethtool/rx_prio3_pause ethtool/rx_prio3_pause_duration "
        "ethtool/rx_prio3_pause_transition ethtool/tx_prio3_pause ethtool/tx_prio3_pause_duration ethtool/rx_crc_errors_phy "
        "ethtool/rx_symbol_err_phy ethtool/rx_pcs_symbol_err_phy ethtool/rx_discards_phy ethtool/rx_prio3_buf_discard "
        "ethtool/outbound_pci_stalled_wr_events ethtool/outbound_pci_stalled_wr ethtool/outbound_pci_stalled_rd ethtool/link_down_events_phy",
    ),
    "bnxt": Names(
        "bnxt_en",
        "rx_bytes tx_bytes rx_pkts tx_pkts",
        "rx_bytes tx_bytes rx_total_frames tx_total_frames",
        "hw/seq_err_naks_rcvd hw/to_retransmits hw/max_retry_exceeded hw/rnr_naks_rcvd hw/rx_roce_discards hw/oos_drop_count "
        "hw/missing_resp hw/dup_req hw/rx_out_of_buffer ethtool/rx_fcs_err_frames ethtool/rx_pcs_symbol_err ethtool/continuous_roce_pause_events "
        "ethtool/pfc_pri3_rx_duration_us ethtool/pfc_pri3_tx_duration_us ethtool/pfc_pri3_rx_transitions ethtool/pfc_pri3_tx_transitions "
        "ethtool/rx_pfc_ena_frames_pri3 ethtool/tx_pfc_ena_frames_pri3",
        pfc=False,
    ),
    "irdma": Names(
        "ice",
        "ip4InOctets ip4OutOctets ip4InPkts ip4OutPkts ip6InOctets ip6OutOctets ip6InPkts ip6OutPkts",
        "rx_bytes.nic tx_bytes.nic",
        "hw/ip4InDiscards hw/ip6InDiscards hw/cnpSent hw/cnpHandled hw/cnpIgnored hw/RxECNMrkd ethtool/rx_dropped.nic ethtool/rx_crc_errors.nic "
        "ethtool/link_down_events.nic ethtool/rx_priority_3_xoff.nic ethtool/rx_priority_3_xon.nic ethtool/tx_priority_3_xoff.nic "
        "ethtool/tx_priority_3_xon.nic ethtool/mac_local_faults.nic ethtool/mac_remote_faults.nic",
    ),
    "ionic": Names(
        "ionic",
        "rx_rdma_ucast_bytes tx_rdma_ucast_bytes rx_rdma_ucast_pkts tx_rdma_ucast_pkts rx_rdma_mcast_bytes tx_rdma_mcast_bytes rx_rdma_mcast_pkts tx_rdma_mcast_pkts",
        "",
        "hw/tx_rdma_ack_timeout hw/tx_rdma_retx_pkts hw/req_tx_retry_excd_err hw/req_rx_rnr_retry_err hw/resp_rx_outouf_seq hw/req_rx_pkt_seq_err "
        "ethtool/frames_rx_pri_3 ethtool/frames_rx_bad_fcs",
        pfc=False,
    ),
    "efa": Names(
        "efa", "rx_bytes tx_bytes rx_pkts tx_pkts", "", "hw/rx_drops hw/retrans_pkts hw/retrans_bytes hw/retrans_timeout_events "
        "hw/unresponsive_remote_events hw/impaired_remote_conn_events hw/cmds_err hw/rdma_read_wr_err", pfc=False,
    ),
    "erdma": Names(
        "erdma", "rx_bytes_cnt tx_bytes_cnt rx_packets_cnt tx_packets_cnt", "", "hw/rx_disable_drop_cnt hw/tx_disable_drop_cnt "
        "hw/rx_bps_limit_drop_cnt hw/tx_bps_limit_drop_cnt hw/rx_pps_limit_drop_cnt hw/tx_pps_limit_drop_cnt", pfc=False,
    ),
    "siw": Names("siw", "", "", "", pfc=False),
    "ib": Names("mlx5_core", "", "", "hw/out_of_sequence hw/local_ack_timeout_err counters/symbol_error counters/link_downed", pfc=False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Incident:
    """One host: what happens to its first port, the truth about it, and what was expected of the rules before they were run."""

    id: str
    source: str
    """Named public incident, or the driver's documentation."""
    kind: str
    """`fault`, `below` (the same below the limit), `alike` (looks like it and is none), `busy` or `idle` (healthy)."""
    driver: str
    truth: str
    """`side: cause|cause`, or `fit`: no finding that degrades a port."""
    predicted: str
    rates: Mapping[str, float] = field(default_factory=dict)
    """Counter (`hw/NAME`, `ethtool/NAME`, `counters/NAME`) and its rise per second."""
    burst: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Counter: how much it rises, at which second it begins, and in how many seconds."""
    files: Mapping[str, Any] = field(default_factory=dict)
    """Path and its text, or text, second, and the text from then on; an empty text is no file."""
    traffic: float = 1.0
    """Share of what a busy port carries."""
    speed: float = 100.0

    def is_said(self, wanted: str, side: str, check: str) -> bool:
        """Whether this side and cause are what `wanted` says."""
        right, _, names = wanted.partition(": ")
        return side == right and check in names.split("|")


def load_incidents() -> tuple[Incident, ...]:
    """Every row of the table."""
    return tuple(
        Incident(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in tomllib.loads(TABLE.read_text())["incident"]
    )


async def incident_history(incident: Incident) -> History:
    """Ten minutes of the host, a sample every 30 s."""
    tree = Tree()
    for number in range(MOMENTS):
        for port in (0, 1):
            _port(tree, incident, number, port)
        tree.files[f"{number}/time"] = f"{EPOCH + number * APART}\n".encode()
    for path in (*tree.files, *tree.links):
        tree.add(path)
    return await recorded_history(play_recording(tree, incident.id))


def _port(tree: Tree, incident: Incident, number: int, port: int) -> None:
    driver, now = DRIVERS[incident.driver], number * APART
    device, netdev, pci = f"{incident.driver}_{port}", f"eth{port}", f"0000:1{port}:00.0"
    values = _values(incident if port == 0 else None, incident, now)
    here = f"{number}/sys/class/infiniband/{device}"
    files = {f"{here}/ports/1/{name}": text for name, text in _identity(incident, port, netdev).items()}
    files[f"{here}/node_type"] = _node(incident.driver)
    for name, value in values.items():
        source, _, counter = name.partition("/")
        if source != "ethtool":
            files[f"{here}/ports/1/{'hw_counters' if source == 'hw' else source}/{counter}"] = f"{value:.0f}"
    if incident.driver not in ("efa", "ib"):
        net = f"{number}/sys/class/net/{netdev}"
        files |= {f"{net}/{name}": text for name, text in NETDEV.items()}
        files[f"{number}/ethtool/{netdev}.driver"] = f"driver: {driver.module}"
        files[f"{number}/ethtool/{netdev}.link"] = (
            f"Settings for {netdev}:\n\tSpeed: {incident.speed * 1000:.0f}Mb/s\n\tDuplex: Full\n\tLink detected: yes"
        )
        stats = {name[8:]: value for name, value in values.items() if name.startswith("ethtool/")}
        if stats:
            lines = [f"     {name}: {value:.0f}" for name, value in stats.items()]
            files[f"{number}/ethtool/{netdev}.stats"] = "\n".join(["NIC statistics:", *lines])
    if driver.pfc:
        files[f"{number}/dcb/{netdev}.pfc.json"] = json.dumps(PFC)
        files[f"{number}/dcb/{netdev}.app.json"] = json.dumps({"dscp_prio": [[26, 3], [48, 6]]})
    if port == 0:
        for path, text in incident.files.items():
            files[f"{number}/{path}"] = text if isinstance(text, str) else text[0 if now < text[1] else 2]
    tree.files |= {path: f"{text}\n".encode() for path, text in files.items() if text}
    tree.links[f"{here}/device"] = f"../../../devices/{pci}"
    tree.links[f"{number}/sys/devices/{pci}/driver"] = f"../../bus/pci/drivers/{driver.module}"


NETDEV = {
    "mtu": "4200",
    "operstate": "up",
    "flags": "0x1003",
    "carrier": "1",
    "carrier_changes": "3",
    "carrier_up_count": "2",
    "carrier_down_count": "1",
}


def _identity(incident: Incident, port: int, netdev: str) -> Mapping[str, str]:
    found = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": f"{incident.speed:.0f} Gb/sec (4X EDR)"}
    if incident.driver == "ib":
        return found | {"link_layer": "InfiniBand", "gids/0": f"fe80:0000:0000:0000:506b:4b03:0000:000{port}"}
    if incident.driver == "efa":
        return found | {
            "link_layer": "Unspecified",
            "gids/0": f"fe80:0000:0000:0000:0200:00ff:fe00:000{port}",
        }
    if incident.driver in ("erdma", "siw"):
        mac = f"0216:3e00:000{port}:0000:0000:0000:0000:0000"
        return found | {
            "link_layer": "Ethernet",
            "gids/0": mac,
            "gid_attrs/types/0": "IB/RoCE v1",
            "gid_attrs/ndevs/0": netdev,
        }
    return found | {
        "link_layer": "Ethernet",
        "gids/1": f"0000:0000:0000:0000:0000:ffff:0a00:000{port + 1}",
        "gid_attrs/types/1": "RoCE v2",
        "gid_attrs/ndevs/1": netdev,
    }  # fmt: skip


def _node(driver: str) -> str:
    return {"erdma": "4: RNIC", "siw": "4: RNIC", "efa": "7: unspecified"}.get(driver, "1: CA")


def _values(fault: Incident | None, incident: Incident, now: float) -> dict[str, float]:
    """The counters of one port after `now` seconds."""
    names, rate = DRIVERS[incident.driver], BYTES * incident.traffic
    values = dict.fromkeys(names.zeros, 7.0)
    for source, every in (("hw", names.hw), ("ethtool", names.stats)):
        for name in every:
            is_packets = any(word in name.lower() for word in ("pkts", "packets", "frames"))
            values[f"{source}/{name}"] = (
                0.0 if "ip6" in name or "mcast" in name else now * rate / (4140 if is_packets else 1)
            )
    if incident.driver in ("mlx5", "ib"):
        for way in ("rcv", "xmit"):
            values[f"counters/port_{way}_data"] = now * rate / 4
            values[f"counters/port_{way}_packets"] = now * rate / 4140
    if incident.driver == "mlx5":
        values |= {f"hw/{name}": now * per * incident.traffic for name, per in MARKED.items()}
    if fault:
        for name, per in fault.rates.items():
            values[name] = values.get(name, 0.0) + now * per
        for name, (amount, begin, seconds) in fault.burst.items():
            values[name] = values.get(name, 0.0) + amount * min(max((now - begin) / seconds, 0.0), 1.0)
    return values
