"""Where each RoCE driver's source keeps the names of its counters, for `extract.py`.

A place is one C file with the headers whose macros it needs. Each table of strings in it is either named here, with the
forms in which the driver prints its strings, or it is not a table of counters and matches `NO_COUNTERS`. Any other
table or format stops the extraction: a new kernel has something new.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

RDMA = "drivers/infiniband"
NET = "drivers/net/ethernet"
MLX5 = f"{NET}/mellanox/mlx5/core"

HW_COUNTERS = "hw_counters"
COUNTERS = "counters"
ETHTOOL = "ethtool"

NAME = "{name}"
AS_IS = (NAME,)

NO_COUNTERS = r"(?i).*(priv_?flags|private|_tests?(_|$)|test_names|test_strs|id_table).*|param"
"""Tables of strings in the same files that hold private flags, self-tests, devices, module parameters."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of names: the driver, the kernel's interface that shows them, and the C files, headers first."""

    driver: str
    source: str
    files: tuple[str, ...]
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per table of strings the names that a string of it becomes: `rx{queue}_{name}`."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per table the words that replace `%s` in its strings."""
    formats: tuple[str, ...] = ()
    """The formats that join a string of a table with a queue's number; `tables` has the result."""
    port: tuple[str, ...] = ()
    """The tables, with names as they are, that hold statistics of the physical port alone, as the NIC's MAC counts them."""

    @property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """All tables."""
        return {**self.others, **dict.fromkeys(self.port, AS_IS)}


def _tables(*names: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(names, AS_IS)


def _mlx5(file: str, *tables: str) -> Place:
    return Place("mlx5", ETHTOOL, (f"{MLX5}/en_stats.h", f"{MLX5}/{file}"), _tables(*tables))


RINGS = ("[{queue}]: {name}",)
ENA_COM = ("ena_admin_q_{name}",)

PLACES = (
    Place(
        "mlx5",
        HW_COUNTERS,
        (f"{RDMA}/hw/mlx5/counters.c",),
        _tables(
            "basic_q_cnts",
            "out_of_seq_q_cnts",
            "retrans_q_cnts",
            "vport_basic_q_cnts",
            "vport_out_of_seq_q_cnts",
            "vport_retrans_q_cnts",
            "cong_cnts",
            "extended_err_cnts",
            "roce_accl_cnts",
            "vport_extended_err_cnts",
            "vport_roce_accl_cnts",
            "ext_ppcnt_cnts",
            "basic_op_cnts",
            "rdmarx_cnp_op_cnts",
            "rdmatx_cnp_op_cnts",
            "packets_op_cnts",
        ),
    ),
    Place(
        "mlx5",
        HW_COUNTERS,
        (f"{RDMA}/hw/mlx5/main.c",),
        _tables(
            "basic_q_cnts",
            "out_of_seq_q_cnts",
            "retrans_q_cnts",
            "cong_cnts",
            "extended_err_cnts",
            "ext_ppcnt_cnts",
        ),
    ),
    Place(
        "mlx5",
        ETHTOOL,
        (f"{MLX5}/en_stats.h", f"{MLX5}/en_stats.c"),
        _tables(
            "sw_stats_desc",
            "q_stats_desc",
            "drop_rq_stats_desc",
            "vnic_env_stats_steer_desc",
            "vnic_env_stats_dev_oob_desc",
            "vnic_env_stats_drop_desc",
            "vport_stats_desc",
            "vport_loopback_stats_desc",
            "pcie_perf_stats_desc",
            "pcie_perf_stats_desc64",
            "pcie_perf_stall_stats_desc",
            "mlx5e_pme_status_desc",
            "mlx5e_pme_error_desc",
            "rq_stats_desc",
            "sq_stats_desc",
            "rq_xdpsq_stats_desc",
            "xdpsq_stats_desc",
            "xskrq_stats_desc",
            "xsksq_stats_desc",
            "ch_stats_desc",
            "ptp_sq_stats_desc",
            "ptp_ch_stats_desc",
            "ptp_cq_stats_desc",
            "ptp_rq_stats_desc",
            "qos_sq_stats_desc",
        ),
        words={"pport_per_prio_pfc_stats_desc": ("prio{priority}", "global")},
        formats=("prio%d", "global"),
        port=(
            "pport_802_3_stats_desc",
            "pport_2863_stats_desc",
            "pport_2819_stats_desc",
            "pport_phy_layer_cntrs_stats_desc",
            "pport_phy_statistical_stats_desc",
            "pport_phy_statistical_err_lanes_stats_desc",
            "pport_phy_recovery_cntrs_stats_desc",
            "pport_eth_ext_stats_desc",
            "pport_per_tc_prio_stats_desc",
            "pport_per_tc_congest_prio_stats_desc",
            "pport_per_prio_traffic_stats_desc",
            "pport_per_prio_pfc_stats_desc",
            "pport_pfc_stall_stats_desc",
        ),
    ),
    _mlx5("en_accel/ipsec_stats.c", "mlx5e_ipsec_hw_stats_desc", "mlx5e_ipsec_sw_stats_desc"),
    _mlx5("en_accel/ktls_stats.c", "mlx5e_ktls_sw_stats_desc"),
    _mlx5("en_accel/macsec_stats.c", "mlx5e_macsec_hw_stats_desc"),
    _mlx5("en/pcie_cong_event.c", "mlx5e_pcie_cong_stats_desc"),
    _mlx5("en_rep.c", "sw_rep_stats_desc", "vport_rep_stats_desc", "vport_rep_loopback_stats_desc"),
    Place(
        "mlx4",
        HW_COUNTERS,
        (f"{RDMA}/hw/mlx4/mlx4_ib.h", f"{RDMA}/hw/mlx4/main.c"),
        _tables("diag_basic", "diag_ext", "diag_device_only"),
    ),
    Place("mlx4", ETHTOOL, (f"{NET}/mellanox/mlx4/en_ethtool.c",), _tables("main_strings")),
    Place(
        "bnxt_re",
        HW_COUNTERS,
        (f"{RDMA}/hw/bnxt_re/hw_counters.c",),
        _tables("bnxt_re_stat_descs", "bnxt_re_stat_name"),
    ),
    Place(
        "bnxt_re",
        ETHTOOL,
        (f"{NET}/broadcom/bnxt/bnxt_ethtool.c",),
        {
            "bnxt_ring_stats_str": RINGS,
            "bnxt_ring_sw_stats_str": RINGS,
            "bnxt_ring_rx_stats_str": RINGS,
            "bnxt_ring_tx_stats_str": RINGS,
            "bnxt_ring_tpa_stats_str": RINGS,
            "bnxt_ring_tpa2_stats_str": RINGS,
            "bnxt_rx_sw_stats_str": RINGS,
            "bnxt_cmn_sw_stats_str": RINGS,
            **_tables("bnxt_sw_func_stats", "bnxt_ring_drv_stats_arr", "bnxt_pcie_stats_arr"),
        },
        formats=("[%d]: %s",),
        port=(
            "bnxt_port_stats_arr",
            "bnxt_port_stats_ext_arr",
            "bnxt_tx_port_stats_ext_arr",
            "bnxt_rx_bytes_pri_arr",
            "bnxt_rx_pkts_pri_arr",
            "bnxt_tx_bytes_pri_arr",
            "bnxt_tx_pkts_pri_arr",
        ),
    ),
    Place(
        "bng_re",
        ETHTOOL,
        (f"{NET}/broadcom/bnge/bnge_ethtool.c",),
        {
            "bnge_ring_q_stats_str": ("rxq{queue}_{name}", "txq{queue}_{name}"),
            "bnge_ring_tpa2_stats_str": ("rxq{queue}_{name}",),
        },
        formats=("rxq%d_%s", "txq%d_%s"),
        port=(
            "bnge_port_stats_arr",
            "bnge_port_stats_ext_arr",
            "bnge_tx_port_stats_ext_arr",
            "bnge_rx_bytes_pri_arr",
            "bnge_rx_pkts_pri_arr",
            "bnge_tx_bytes_pri_arr",
            "bnge_tx_pkts_pri_arr",
        ),
    ),
    Place(
        "irdma",
        HW_COUNTERS,
        (f"{RDMA}/hw/irdma/verbs.c",),
        _tables("irdma_hw_stat_descs", "irdma_hw_stat_names"),
    ),
    Place("irdma", HW_COUNTERS, (f"{RDMA}/hw/i40iw/i40iw_verbs.c",), _tables("i40iw_hw_stat_names")),
    Place(
        "irdma",
        ETHTOOL,
        (f"{NET}/intel/ice/ice_ethtool.c",),
        _tables("ice_gstrings_vsi_stats"),
        port=("ice_gstrings_pf_stats",),
    ),
    Place(
        "irdma",
        ETHTOOL,
        (f"{NET}/intel/i40e/i40e_ethtool.c",),
        _tables(
            "i40e_gstrings_queue_stats",
            "i40e_gstrings_net_stats",
            "i40e_gstrings_veb_stats",
            "i40e_gstrings_veb_tc_stats",
            "i40e_gstrings_misc_stats",
        ),
        words={"i40e_gstrings_queue_stats": ("rx", "tx")},
        port=("i40e_gstrings_stats", "i40e_gstrings_pfc_stats"),
    ),
    Place(
        "irdma",
        ETHTOOL,
        (f"{NET}/intel/idpf/idpf_ethtool.c",),
        {
            "idpf_gstrings_tx_queue_stats": ("tx_q-{queue}_{name}",),
            "idpf_gstrings_rx_queue_stats": ("rx_q-{queue}_{name}",),
            "idpf_gstrings_port_stats": AS_IS,
        },
        formats=("%s_q-%u_%s",),
    ),
    Place(
        "ionic",
        ETHTOOL,
        (f"{NET}/pensando/ionic/ionic_stats.h", f"{NET}/pensando/ionic/ionic_stats.c"),
        {
            **_tables("ionic_lif_stats_desc"),
            "ionic_tx_stats_desc": ("tx_{queue}_{name}",),
            "ionic_rx_stats_desc": ("rx_{queue}_{name}",),
            "ionic_txq_stats_desc": ("txq_{queue}_{name}",),
            "ionic_dbg_cq_stats_desc": ("txq_{queue}_cq_{name}", "rxq_{queue}_cq_{name}"),
            "ionic_dbg_intr_stats_desc": ("txq_{queue}_intr_{name}", "rxq_{queue}_intr_{name}"),
            "ionic_dbg_napi_stats_desc": ("rxq_{queue}_napi_{name}",),
        },
        formats=(
            "tx_%d_%s",
            "rx_%d_%s",
            "txq_%d_%s",
            "txq_%d_cq_%s",
            "txq_%d_intr_%s",
            "rxq_%d_cq_%s",
            "rxq_%d_intr_%s",
            "rxq_%d_napi_%s",
        ),
        port=("ionic_port_stats_desc",),
    ),
    Place("hns", HW_COUNTERS, (f"{RDMA}/hw/hns/hns_roce_main.c",), _tables("hns_roce_port_stats_descs")),
    Place(
        "hns",
        ETHTOOL,
        (f"{NET}/hisilicon/hns3/hns3_ethtool.c",),
        {"hns3_txq_stats": ("txq{queue}_{name}",), "hns3_rxq_stats": ("rxq{queue}_{name}",)},
        formats=("%s%u_", "%s%u_%s", "%s%d_"),
    ),
    Place("hns", ETHTOOL, (f"{NET}/hisilicon/hns3/hns3_common/hclge_comm_tqp_stats.c",)),
    Place(
        "hns",
        ETHTOOL,
        (f"{NET}/hisilicon/hns3/hns3pf/hclge_main.h", f"{NET}/hisilicon/hns3/hns3pf/hclge_main.c"),
        port=("g_mac_stats_string",),
    ),
    Place(
        "qedr",
        ETHTOOL,
        (f"{NET}/qlogic/qede/qede_ethtool.c",),
        {
            "qede_rqstats_arr": ("{queue}: {name}",),
            "qede_tqstats_arr": ("{queue}_{class}: {name}", "{queue} [XDP]: {name}"),
            "qede_stats_arr": AS_IS,
        },
        formats=("%d [XDP]: %s", "%d_%d: %s", "%d: %s"),
    ),
    Place(
        "mana",
        HW_COUNTERS,
        (f"{RDMA}/hw/mana/counters.c",),
        _tables("mana_ib_port_stats_desc", "mana_ib_device_stats_desc"),
    ),
    Place(
        "mana",
        ETHTOOL,
        (f"{NET}/microsoft/mana/mana_ethtool.c",),
        _tables("mana_eth_stats", "mana_hc_stats"),
        port=("mana_phy_stats",),
    ),
    Place(
        "efa",
        HW_COUNTERS,
        (f"{RDMA}/hw/efa/efa_verbs.c",),
        _tables(
            "efa_device_stats_descs",
            "efa_port_stats_descs",
            "efa_device_stats_names",
            "efa_port_stats_names",
            "efa_stats_names",
        ),
    ),
    Place(
        "efa",
        ETHTOOL,
        (f"{NET}/amazon/ena/ena_ethtool.c",),
        {
            **_tables(
                "ena_stats_global_strings",
                "ena_stats_eni_strings",
                "ena_hw_stats_strings",
                "ena_srd_info_strings",
            ),
            "ena_stats_tx_strings": ("queue_{queue}_tx_{name}", "queue_{queue}_xdp_tx_{name}"),
            "ena_stats_rx_strings": ("queue_{queue}_rx_{name}",),
            "ena_stats_ena_com_strings": ENA_COM,
        },
        formats=("queue_%u_%s_%s", "queue_%u_rx_%s", "ena_admin_q_%s"),
    ),
    Place("erdma", HW_COUNTERS, (f"{RDMA}/hw/erdma/erdma_verbs.c",), _tables("erdma_descs")),
    Place(
        "rxe",
        HW_COUNTERS,
        (f"{RDMA}/sw/rxe/rxe_hw_counters.c",),
        _tables("rxe_counter_descs", "rxe_counter_name"),
    ),
)

FIRMWARE = {
    f"{RDMA}/hw/ionic/ionic_hw_stats.c": "ionic: its hw_counters are named by the firmware, not by the driver"
}
"""Files of drivers that read the names from the device: a source tree does not contain them."""

WITHOUT = {"siw": f"{RDMA}/sw/siw", "qedr": f"{RDMA}/hw/qedr", "bng_re": f"{RDMA}/hw/bng_re"}
"""Drivers without RDMA hardware counters, and their folder. The extraction stops if one of them gets some."""

OTHERS = (
    "infiniband/hw/hfi1/",
    "infiniband/hw/cxgb3/",
    "infiniband/hw/cxgb4/",
    "infiniband/core/",
    "mlx5/core/en_selftest.c",
    "mlx5/core/en_ethtool.c",
    "ionic/ionic_ethtool.c",
    "hns3vf/hclgevf_main.c",
    "ena/ena_netdev.c",
)
"""Files that mention strings of statistics without defining any: they pass them on, or belong to drivers without RoCE."""
