"""Hosts built from the names that drivers use for counters and files: `incidents.toml`, `incidents_foreign.toml`. Two ports of one driver carry traffic; the first one has the fault."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fault_histories import recorded_history

from roce_exporter.checks.finding import Finding, Report
from roce_exporter.checks.health.causes import NAMED
from roce_exporter.host.recorded.recorded import play_recording
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.view.host_view import History

TABLE = Path(__file__).with_name("incidents.toml")
FOREIGN = Path(__file__).with_name("incidents_foreign.toml")
"""Rows of three hands that have not read the rules; an engineer who changes a rule does not read them."""
REPAIRED = Path(__file__).with_name("incidents_repaired.toml")
"""Rows of the hand that changed the rules for the classes of `FOREIGN`; no score counts them."""
EPOCH = 1_790_000_000
BYTES = 4e9
"""Bytes per second and direction of a port that is busy."""

RISING = re.compile("<<([0-9.]+)>>")
PFC = {
    "pfc_cap": 8,
    "macsec_bypass": False,
    "delay": 7,
    "prio_pfc": [priority == 3 for priority in range(8)],
    "requests": [0] * 8,
    "indications": [0] * 8,
}
NEWER = {"link_mode_mismatch": ("link_down", "link_lost")}
"""Causes that the list did not have when the truths were written, and what their hosts were called then."""
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
        "hw/ip4InDiscards hw/ip6InDiscards hw/ip4OutNoRoutes hw/ip6OutNoRoutes hw/ip4InTruncatedPkts hw/ip6InTruncatedPkts hw/ip4InReasmRqd hw/ip6InReasmRqd "
        "hw/ip4OutSegRqd hw/ip6OutSegRqd hw/cnpSent hw/cnpHandled hw/cnpIgnored hw/RxECNMrkd ethtool/rx_dropped.nic ethtool/rx_crc_errors.nic "
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
    "mlx4": Names(
        "mlx4_core", "", "rx_prio_3_bytes tx_prio_3_bytes rx_prio_3_packets tx_prio_3_packets",
        "hw/sq_num_to hw/sq_num_oos hw/rq_num_oos hw/rq_num_dup hw/sq_num_rnr hw/rq_num_rnr hw/sq_num_tree hw/sq_num_rree hw/sq_num_rae hw/sq_num_wrfe "
        "ethtool/rx_pause_prio_3 ethtool/rx_pause_duration_prio_3 ethtool/rx_pause_transition_prio_3 ethtool/tx_pause_prio_3 "
        "ethtool/tx_pause_duration_prio_3 ethtool/tx_pause_transition_prio_3 ethtool/rx_crc_errors ethtool/rx_jabbers",
    ),
    "hns": Names(
        "hns3", "rx_pkt tx_pkt", "mac_rx_total_oct_num mac_tx_total_oct_num mac_rx_total_pkt_num mac_tx_total_pkt_num",
        "hw/rx_cnp_pkt hw/tx_cnp_pkt hw/rx_err_pkt hw/tx_err_pkt hw/trp_get_mpt_err_pkt hw/trp_get_irrl_err_pkt ethtool/mac_rx_fcs_err_pkt_num "
        "ethtool/mac_rx_pfc_pri3_pkt_num ethtool/mac_tx_pfc_pri3_pkt_num ethtool/mac_rx_pfc_pri3_xoff_time ethtool/mac_tx_pfc_pri3_xoff_time",
    ),
    "qedr": Names(
        "qede", "", "rx_ucast_bytes tx_ucast_bytes rx_ucast_pkts tx_ucast_pkts", "ethtool/rx_pfc_frames ethtool/tx_pfc_frames ethtool/rx_pause_frames "
        "ethtool/tx_pause_frames ethtool/rx_crc_errors ethtool/brb_discards ethtool/brb_truncates ethtool/link_change_count",
    ),
    "mana": Names(
        "mana", "rx_bytes tx_bytes rx_packets tx_packets", "", "hw/requester_timeout hw/requester_retries_exceeded hw/requester_oos_nak "
        "hw/requester_implicit_nak hw/requester_rnr_nak hw/requester_rnr_nak_retries_exceeded hw/responder_oos hw/responder_dup_request hw/responder_rnr_nak "
        "hw/nak_access_error hw/nak_inv_req hw/responder_rem_access_error hw/received_cnps hw/total_fatal_error hw/general_hw_error", pfc=False,
    ),
    "rxe": Names(
        "", "sent_pkts rcvd_pkts", "", "hw/out_of_seq_request hw/duplicate_request hw/rcvd_seq_err hw/rcvd_rnr_err hw/send_rnr_err hw/completer_retry_err "
        "hw/retry_exceeded_err hw/retry_rnr_exceeded_err hw/send_err hw/link_downed hw/ack_deferred", pfc=False,
    ),
    "ocrdma": Names(
        "be2net", "", "rx_roce_frames", "ethtool/rx_crc_errors ethtool/rx_alignment_symbol_errors ethtool/rx_pause_frames ethtool/tx_pauseframes "
        "ethtool/rx_priority_pause_frames ethtool/tx_priority_pauseframes ethtool/rx_input_fifo_overflow_drop ethtool/rxpp_fifo_overflow_drop ethtool/pmem_fifo_overflow_drop "
        "ethtool/rx_drops_no_pbuf ethtool/roce_drops_crc ethtool/jabber_events", pfc=False,
    ),
    "cxgb4": Names(
        "cxgb4", "ip4InSegs ip4OutSegs", "rx_octets_ok tx_octets_ok", "hw/ip4RetransSegs hw/ip4OutRsts hw/ip6InSegs hw/ip6OutSegs hw/ip6RetransSegs hw/ip6OutRsts "
        "ethtool/rx_bg0_frames_dropped ethtool/rx_bg1_frames_dropped ethtool/rx_bg2_frames_dropped ethtool/rx_bg3_frames_dropped "
        "ethtool/rx_bg0_frames_trunc ethtool/rx_bg1_frames_trunc ethtool/rx_bg2_frames_trunc ethtool/rx_bg3_frames_trunc", pfc=False,
    ),
    "hfi1": Names("hfi1", "", "", "counters/symbol_error counters/link_downed counters/port_xmit_discards", pfc=False),
    "siw": Names("siw", "", "", "", pfc=False),
    "vmw_pvrdma": Names("vmw_pvrdma", "", "", "", pfc=False),
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
    """`side: cause|cause`, or `fit`: no finding that degrades a port. `none`: no cause of the list."""
    predicted: str
    rates: Mapping[str, float] = field(default_factory=dict)
    """Counter (`hw/NAME`, `ethtool/NAME`, `counters/NAME`) and its rise per second."""
    burst: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Counter: how much it rises, at which second it begins, and in how many seconds."""
    files: Mapping[str, Any] = field(default_factory=dict)
    """Path and its text, or text, second, and the text from then on; an empty text is no file, `<<80>>` rises by 80 per second.

    `net/`, `ib/`, `port/` and `pci/` are the folders of the faulty port."""
    ecn: Mapping[str, str] = field(default_factory=dict)
    """`roce_rp` and `roce_np`: the priorities on which the reaction and the notification point are on."""
    traffic: float = 1.0
    """Share of what a busy port carries."""
    speed: float = 100.0
    batch: int = 1
    """Each batch was written and committed before the rules were changed for it."""
    group: str = ""
    """The class of weakness."""
    shown: str = "words"
    """What of the evidence is the source's own: `values`, `names` or `words`."""
    acts: str = ""
    """Who has to do something, where it does not follow from the side."""
    missed: str = ""
    """What the rules said first in the first run of the batch, where it, or anything else that they said, was wrong."""
    open: str = ""
    """Why it is wrong today."""
    wrong_truth: str = ""
    """Why the truth was wrong by its own source; it counts as it did in the first run."""
    truth_too: str = ""
    """The second fault of the same port: its cause must be among the findings."""
    other_truth: str = ""
    """Of the port after this one, which has the next two."""
    other_rates: Mapping[str, float] = field(default_factory=dict)
    other_burst: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    start: Mapping[str, float] = field(default_factory=dict)
    """What a counter shows at the begin."""
    without: tuple[str, ...] = ()
    """Patterns of counters that this driver, firmware or function does not have."""
    down: tuple[tuple[float, float], ...] = ()
    """Seconds in which the port has no link."""
    set_down: tuple[tuple[float, float], ...] = ()
    """Seconds in which an operator has set the network device down."""
    gone: tuple[tuple[float, float], ...] = ()
    """Seconds in which device and network device do not exist; their counters begin at 0 then."""
    log: tuple[tuple[float, int, str], ...] = ()
    """Messages of the kernel: second, level, text, with `{pci}`, `{net}` and `{dev}`."""
    ports: int = 2
    at: int = 0
    """Which of them has the fault."""
    moments: int = 21
    apart: float = 30.0
    vf: bool = False
    bond: str = ""
    """The mode of a LAG of the faulty port, whose second member is eth9."""
    under: str = ""
    """The PCIe port above the faulty device."""

    @property
    def device(self) -> str:
        """The faulty one."""
        return f"{self.driver}_{self.at}"

    @property
    def other(self) -> str:
        """The one with `other_truth`."""
        return f"{self.driver}_{(self.at + 1) % self.ports}"

    @property
    def sides(self) -> frozenset[str]:
        """Of each of its faults."""
        return frozenset(one.partition(":")[0] for one in (self.truth, self.truth_too) if one)

    def is_said(self, wanted: str, side: str, check: str) -> bool:
        """Whether this side and cause are what `wanted` says."""
        right, _, names = wanted.partition(": ")
        causes = names.replace("none", "fault_counted|unknown_message").split("|")
        return side == right and not {check, *NEWER.get(check, ())}.isdisjoint(causes)


def load_incidents(table: Path = TABLE) -> tuple[Incident, ...]:
    """Every row of the table."""
    return tuple(
        Incident(
            **{
                "kind": "fault",
                "truth": "fit",
                "predicted": row.get("truth", "fit"),
                "id": name,
                "batch": int(batch),
                "group": group,
                "driver": driver,
            }
            | {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        )
        for batch, groups in tomllib.loads(table.read_text()).items()
        for group, rows in groups.items()
        for driver, of_driver in rows.items()
        for name, row in of_driver.items()
    )


def misread(incident: Incident, findings: Sequence[Finding]) -> str:
    """What is wrong in what the rules said: what they said first of this port, `nothing`, and ports without a fault; empty if all is right.

    `side: check; also DEVICE: side: check`.
    """
    here = [one for one in findings if one.device == incident.device]
    there = [one for one in findings if one.device == incident.other and incident.other_truth]
    truths = [one for one in (incident.truth, incident.truth_too) if one]
    if incident.truth == "fit":
        here = [one for one in here if one.is_wrong]
        is_right = not here
    else:
        # Both faults of a port are said; which is worse has no truth.
        said = [[incident.is_said(truth, one.side.value, one.check) for one in here] for truth in truths]
        is_right = all(map(any, said)) and any(one[0] for one in said)
    wrong = [] if is_right else [_said(*here[:1])]
    if incident.other_truth and not (
        there and incident.is_said(incident.other_truth, there[0].side.value, there[0].check)
    ):
        wrong.append(f"also {incident.other}: {_said(*there[:1])}")
    wrong += [
        f"also {one.device}: {_said(one)}" for one in findings if one.is_wrong and one not in (*here, *there)
    ]
    own = [one for one in findings if not one.caused_by]
    wrong += [f"not listed: {_said(one)}" for one in own if one.side not in NAMED[one.check].sides]
    return "; ".join(wrong)


def _said(finding: Finding | None = None) -> str:
    return f"{finding.side.value}: {finding.check}" if finding else "nothing"


WORDS = {
    "drops": r"\bdrop|discard",
    "loss": r"(?<!link was )\blost\b|out of sequence|sent again|gave up",
    "pause": r"\bpause",
    "PCIe": r"\bPCIe\b(?! is not stalled)",
    "link": r"could not be corrected|wrong checksum|losses of the link",
    "optics": r"transceiver|laser",
}
"""What a text about each area has."""


def fine_and_said(report: Report) -> list[str]:
    """Areas that are fine although a finding speaks of them: a note, a consequence, a symptom of a wrong setting; and the text."""
    found = []
    for one in report.findings:
        said = " ".join((one.title, *one.evidence))
        spoken = one.areas | {area for area, words in WORDS.items() if re.search(words, said)}
        found += [f"{area}: {said}" for area in report.fine if area in spoken]
    return found


async def incident_history(incident: Incident) -> History:
    """Ten minutes of the host, a sample every 30 s, or what the incident says."""
    tree = Tree()
    for number in range(incident.moments):
        now = number * incident.apart
        for port in sorted(
            range(incident.ports), key=lambda port: port == incident.at
        ):  # its files are whole
            if port != incident.at or not _within(incident.gone, now):
                _port(tree, incident, number, port)
        tree.files[f"{number}/time"] = f"{EPOCH + now}\n".encode()
        if incident.log:
            tree.files[f"{number}/dev/kmsg"] = _messages(incident, now).encode()
    for path in (*tree.files, *tree.links):
        tree.add(path)
    return await recorded_history(play_recording(tree, incident.id))


def _within(spans: tuple[tuple[float, float], ...], now: float) -> bool:
    return any(begin <= now < end for begin, end in spans)


def _address(incident: Incident, port: int) -> str:
    return f"0000:{16 + port:x}:00.0"


def _messages(incident: Incident, now: float) -> str:
    pci, net = _address(incident, incident.at), f"eth{incident.at}"
    return "".join(
        f"{level},{number},{second * 1e6:.0f},-;{text.format(pci=pci, net=net, dev=incident.device)}\n"
        for number, (second, level, text) in enumerate(incident.log, 1000)
        if second <= now
    )


def _port(tree: Tree, incident: Incident, number: int, port: int) -> None:
    driver, now = DRIVERS[incident.driver], number * incident.apart
    device, pci = f"{incident.driver}_{port}", _address(incident, port)
    is_faulty = port == incident.at
    netdev = "bond0" if incident.bond and is_faulty else f"eth{port}"
    here = f"{number}/sys/class/infiniband/{device}"
    files = {
        f"{here}/ports/1/{name}": text for name, text in _identity(incident, number, port, netdev).items()
    }
    files[f"{here}/node_type"] = _node(incident.driver)
    if incident.ports > 2:
        files[f"{here}/board_id"] = f"{incident.driver} board"
    values = _values(incident, port, now)
    for name, value in values.items():
        source, _, counter = name.partition("/")
        if source != "ethtool":
            files[f"{here}/ports/1/{'hw_counters' if source == 'hw' else source}/{counter}"] = f"{value:.0f}"
    if incident.driver not in ("efa", "ib", "hfi1"):
        files |= _netdev(incident, number, f"eth{port}", values, is_faulty)
        if incident.bond and is_faulty:
            files |= _bonded(tree, incident, number, values)
    if is_faulty:
        files |= {
            f"{number}/sys/class/net/eth{port}/ecn/{role}/enable/{one}": str(int(str(one) in on))
            for role, on in incident.ecn.items()
            for one in range(8)
        }
        _port_above(tree, incident, number)
        home = f"sys/devices/{f'{incident.under}/' * bool(incident.under)}{pci}"
        places = {
            "net/": f"sys/class/net/eth{port}/",
            "ib/": f"sys/class/infiniband/{device}/",
            "port/": f"sys/class/infiniband/{device}/ports/1/",
            "pci/": f"{home}/",
        }
        for path, text in incident.files.items():
            whole = next(
                (place + path[len(short) :] for short, place in places.items() if path.startswith(short)),
                path,
            )
            said = text if isinstance(text, str) else text[0 if now < text[1] else 2]
            files[f"{number}/{whole}"] = RISING.sub(lambda found: f"{float(found[1]) * now:.0f}", said)
    else:
        home = f"sys/devices/{pci}"
    tree.files |= {path: f"{text}\n".encode() for path, text in files.items() if text}
    if driver.module:
        _card(tree, incident, f"{number}", here, home)


def _card(tree: Tree, incident: Incident, number: str, here: str, home: str) -> None:
    """The PCI function of a device; of RDMA in software that of its network device."""
    place = f"../../../{home.removeprefix('sys/')}"
    if incident.driver == "siw":
        tree.links[f"{number}/sys/class/net/eth{here.rpartition('_')[2]}/device"] = place
        return
    tree.links[f"{here}/device"] = place
    tree.links[f"{number}/{home}/driver"] = f"../../bus/pci/drivers/{DRIVERS[incident.driver].module}"
    if incident.vf:
        tree.links[f"{number}/{home}/physfn"] = "../0000:0f:00.0"


def _port_above(tree: Tree, incident: Incident, number: int) -> None:
    """The PCIe port that the device is plugged into, where the incident names it."""
    if incident.under:
        above = f"DRIVER=pcieport\nPCI_SLOT_NAME={incident.under}\n"
        tree.files[f"{number}/sys/devices/{incident.under}/uevent"] = above.encode()


def _bonded(tree: Tree, incident: Incident, number: int, values: Mapping[str, float]) -> dict[str, str]:
    """The second member and the bond."""
    first, bond = f"eth{incident.at}", f"{number}/sys/class/net/bond0"
    shown = dict.fromkeys(values, 7.0) if "active" in incident.bond else values
    for member in (first, "eth9"):
        tree.links[f"{bond}/lower_{member}"] = f"../{member}"
    return _netdev(incident, number, "eth9", shown, is_faulty=False) | {
        f"{bond}/bonding/mode": incident.bond,
        f"{bond}/bonding/slaves": f"{first} eth9",
        f"{bond}/mtu": "4200",
    }


def _netdev(
    incident: Incident, number: int, netdev: str, values: Mapping[str, float], is_faulty: bool
) -> dict[str, str]:
    """The files of a network device; `is_faulty`: it has the times without a link."""
    driver, now = DRIVERS[incident.driver], number * incident.apart
    lost = incident.down + incident.set_down if is_faulty else ()
    downs, ups = sum(begin <= now for begin, _ in lost), sum(end <= now for _, end in lost)
    is_set = is_faulty and _within(incident.set_down, now)
    is_up = not (is_faulty and _within(lost, now))
    own = {
        "operstate": "up" if is_up else "down",
        "flags": "0x1002" if is_set else "0x1003",
        "carrier": "" if is_set else str(int(is_up)),
        "carrier_changes": str(3 + downs + ups),
        "carrier_up_count": str(2 + ups),
        "carrier_down_count": str(1 + downs),
    }
    net = f"{number}/sys/class/net/{netdev}"
    files = {f"{net}/{name}": text for name, text in (NETDEV | own).items()}
    files[f"{number}/ethtool/{netdev}.driver"] = f"driver: {driver.module}"
    speed = f"{incident.speed * 1000:.0f}Mb/s" if is_up else "Unknown!"
    files[f"{number}/ethtool/{netdev}.link"] = (
        f"Settings for {netdev}:\n\tSpeed: {speed}\n\tDuplex: Full\n\tLink detected: {'yes' if is_up else 'no'}"
    )
    stats = {name[8:]: value for name, value in values.items() if name.startswith("ethtool/")}
    for name in ("link_down_events_phy", "link_down_events.nic"):
        if name in stats:
            stats[name] += downs
    if stats:
        lines = [f"     {name}: {value:.0f}" for name, value in stats.items()]
        files[f"{number}/ethtool/{netdev}.stats"] = "\n".join(["NIC statistics:", *lines])
    if driver.pfc:
        files[f"{number}/dcb/{netdev}.pfc.json"] = json.dumps(PFC)
        files[f"{number}/dcb/{netdev}.app.json"] = json.dumps({"dscp_prio": [[26, 3], [48, 6]]})
    return files


NETDEV = {"mtu": "4200"}


def _identity(incident: Incident, number: int, port: int, netdev: str) -> Mapping[str, str]:
    # A LAG is up as long as one member is.
    now = number * incident.apart
    lost = port == incident.at and not incident.bond and _within(incident.down + incident.set_down, now)
    found = {
        "state": "1: DOWN" if lost else "4: ACTIVE",
        "phys_state": "3: Disabled" if lost else "5: LinkUp",
        "rate": f"{incident.speed:.0f} Gb/sec (4X EDR)",
    }
    if incident.driver in ("ib", "hfi1"):
        return found | {
            "link_layer": "InfiniBand",
            "gids/0": f"fe80:0000:0000:0000:506b:4b03:0000:{port:04x}",
        }
    if incident.driver == "efa":
        return found | {
            "link_layer": "Unspecified",
            "gids/0": f"fe80:0000:0000:0000:0200:00ff:fe00:{port:04x}",
        }
    if incident.driver in ("erdma", "siw", "cxgb4"):
        mac = f"0216:3e00:{port:04x}:0000:0000:0000:0000:0000"
        return found | {
            "link_layer": "Ethernet",
            "gids/0": mac,
            "gid_attrs/types/0": "IB/RoCE v1",
            "gid_attrs/ndevs/0": netdev,
        }
    return found | {
        "link_layer": "Ethernet",
        "gids/1": f"0000:0000:0000:0000:0000:ffff:0a00:{port + 1:04x}",
        "gid_attrs/types/1": "RoCE v2",
        "gid_attrs/ndevs/1": netdev,
    }  # fmt: skip


def _node(driver: str) -> str:
    return {"erdma": "4: RNIC", "siw": "4: RNIC", "cxgb4": "4: RNIC", "efa": "7: unspecified"}.get(
        driver, "1: CA"
    )


def _values(incident: Incident, port: int, now: float) -> dict[str, float]:
    """The counters of one port after `now` seconds."""
    names, rate = DRIVERS[incident.driver], BYTES * incident.traffic
    is_faulty = port == incident.at
    # Nothing passes while there is no link, and after a reload of the driver all counters begin at 0.
    begun = max((end for _, end in incident.gone if is_faulty and end <= now), default=0.0)
    lost = incident.down + incident.set_down if is_faulty and not incident.bond else ()
    busy = now - begun - sum(max(min(end, now) - begin, 0.0) for begin, end in lost)
    values = dict.fromkeys(names.zeros, 0.0 if begun else 7.0)
    for source, every in (("hw", names.hw), ("ethtool", names.stats)):
        for name in every:
            is_packets = any(word in name.lower() for word in ("pkt", "packets", "frames", "segs"))
            values[f"{source}/{name}"] = (
                0.0 if "ip6" in name or "mcast" in name else busy * rate / (4140 if is_packets else 1)
            )
    if incident.driver in ("mlx5", "mlx4", "ib", "ocrdma", "hfi1"):
        for way in ("rcv", "xmit"):
            values[f"counters/port_{way}_data"] = busy * rate / 4
            values[f"counters/port_{way}_packets"] = busy * rate / 4140
    if incident.driver == "mlx5":
        values |= {f"hw/{name}": busy * per * incident.traffic for name, per in MARKED.items()}
    _add_faults(values, incident, port, now)
    return {
        name: value % 2**32 if name.startswith("hw/") and incident.driver == "mlx5" and is_faulty else value
        for name, value in values.items()
        if not any(fnmatch(name, one) for one in incident.without)
    }


def _add_faults(values: dict[str, float], incident: Incident, port: int, now: float) -> None:
    """Add what the faults of this port count."""
    is_other = incident.other_truth and f"{incident.driver}_{port}" == incident.other
    if port != incident.at and not is_other:
        return
    rates = incident.other_rates if is_other else incident.rates
    bursts = incident.other_burst if is_other else incident.burst
    start = {} if is_other else incident.start
    for name, per in rates.items():
        values[name] = values.get(name, 0.0) + now * per
    for name, (amount, begin, seconds) in bursts.items():
        values[name] = values.get(name, 0.0) + amount * min(max((now - begin) / seconds, 0.0), 1.0)
    for name, first in start.items():
        values[name] = values.get(name, 0.0) + first
