"""The settings of the simulated NICs as files: ToS, RoCE version, congestion control, the NIC's own pause watchdog.

The files are those of `sources.configuration`: mlx5 as in MLNX_OFED, bnxt as in debugfs for root, ionic as in AMD's
own driver. Values that are not in `Setup` are the drivers' defaults. ice has no such files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.simulated.conditions import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.host.simulated.conditions import Setup
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev

MICROSECONDS = 1_000_000
VERSIONS = {1: "IB/RoCE v1", 2: "RoCE v2"}

REACTION = {
    "clamp_tgt_rate": 0,
    "clamp_tgt_rate_after_time_inc": 1,
    "dce_tcp_g": 1019,
    "dce_tcp_rtt": 1,
    "initial_alpha_value": 1023,
    "rate_reduce_monitor_period": 4,
    "rate_to_set_on_first_cnp": 0,
    "rpg_ai_rate": 5,
    "rpg_byte_reset": 32767,
    "rpg_gd": 11,
    "rpg_hai_rate": 50,
    "rpg_max_rate": 0,
    "rpg_min_dec_fac": 50,
    "rpg_min_rate": 1,
    "rpg_threshold": 1,
    "rpg_time_reset": 300,
}
"""The reaction point of ConnectX, in the units of MLNX_OFED."""

BNXT = {
    "cc_mode": 1,
    "inactivity_cp": 10_000,
    "init_cr": 200,
    "init_tr": 200,
    "num_phase_per_state": 5,
    "rtt": 40,
    "run_avg_weight_g": 8,
    "tcp_cp": 0,
}
"""cc_config of Thor2."""

IONIC_REACTION = {
    "ai_rate": 1,
    "byte_reset": 431_068,
    "dce_tcp_g": 4,
    "gd": 1,
    "hai_rate": 200,
    "initial_alpha_value": 64,
    "min_dec_fac": 50,
    "min_rate": 1,
    "rate_reduce_monitor_period": 1,
    "rate_to_set_on_first_cnp": 85,
    "threshold": 5,
    "time_reset": 5,
    "token_bucket_size": 800_000,
}
"""The default profile of Pollara's driver."""


def setting_files(card: Card, slot: str) -> dict[str, str]:
    """The files with the settings of a card, by their path in a recording; `slot` is its PCI address."""
    setup = card.members[0].setup
    found = _manager(card.name, setup)
    if card.driver.module == "mlx5_core":
        found |= _tree(
            f"sys/class/infiniband/{card.name}/tc/1", {"traffic_class": f"Global tclass={setup.tos}"}
        )
        for member in card.members:
            found |= _mlx5(member)
    if card.driver.module == "bnxt_en":
        found |= _tree(f"sys/kernel/debug/bnxt_re/{slot}/cc_config", _bnxt(setup))
    if card.driver.module == "ionic":
        found |= _ionic(f"sys/class/infiniband/{card.name}/dcqcn", setup)
    return found


def ethtool_settings(member: SimulatedNetdev) -> str:
    """The output of `ethtool --get-tunable` and `ethtool -c`; empty if the driver supports neither.

    mlx5: milliseconds of transmitted pause after which the NIC stops it. bnxt: microseconds from one refresh of its
    counters to the next.
    """
    if member.driver.module == "mlx5_core":
        return f"pfc-prevention-tout: {member.setup.watchdog}"
    return f"stats-block-usecs: {int(member.driver.refresh * MICROSECONDS)}" if member.driver.refresh else ""


def _tree(folder: str, files: Mapping[str, object]) -> dict[str, str]:
    return {f"{folder}/{name}": str(value) for name, value in files.items()}


def _manager(device: str, setup: Setup) -> dict[str, str]:
    files = {"default_roce_tos": setup.tos, "default_roce_mode": VERSIONS[setup.roce_version]}
    return _tree(f"sys/kernel/config/rdma_cm/{device}/ports/1", files)


def _mlx5(member: SimulatedNetdev) -> dict[str, str]:
    setup, folder = member.setup, f"sys/class/net/{member.netdev}/ecn"
    notification = {
        "cnp_802p_prio": setup.cnp_priority,
        "cnp_dscp": setup.cnp_dscp,
        "min_time_between_cnps": 4,
    }
    return {
        **_tree(f"{folder}/roce_np", notification),
        **_tree(f"{folder}/roce_rp", REACTION),
        **_tree(f"{folder}/roce_np/enable", _enabled(setup, on=setup.notifies)),
        **_tree(f"{folder}/roce_rp/enable", _enabled(setup, on=setup.reacts)),
    }


def _enabled(setup: Setup, *, on: bool) -> dict[str, int]:
    return {str(priority): int(on and priority == setup.priority) for priority in PRIORITIES}


def _bnxt(setup: Setup) -> dict[str, int]:
    return {
        **BNXT,
        "enable_cc": int(setup.notifies and setup.reacts),
        "tos_dscp": setup.tos >> 2,
        "tos_ecn": setup.tos & 3,
        "alt_tos_dscp": setup.cnp_dscp,
        "alt_vlan_pcp": setup.cnp_priority,
    }


def _ionic(folder: str, setup: Setup) -> dict[str, str]:
    notification = {"cnp_dscp": setup.cnp_dscp, "icnp_802p_prio": setup.cnp_priority}
    return {
        f"{folder}/match_default": "1",
        **_tree(f"{folder}/profiles/1/roce_np", notification),
        **_tree(f"{folder}/profiles/1/roce_rp", IONIC_REACTION),
    }
