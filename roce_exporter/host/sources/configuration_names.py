"""Each driver's names for the parameters of congestion control, and their units: `role.parameter.unit`.

Roles are those of IEEE 802.1Qau, on which DCQCN is built: `np` is the notification point, which responds to marks with
CNPs, `rp` the reaction point, which slows down when it receives CNPs; `rtt` is RTT-based control, and `cc` is the rest.
The parameter is our own name and ends in the base unit, if the driver's unit is known.
"""

from __future__ import annotations

_REACTION = {
    "clamp_tgt_rate": "clamp_target_rate.one",
    "clamp_tgt_rate_after_time_inc": "clamp_target_rate_after_time_increase.one",
    "time_reset": "time_reset_seconds.us",
    "byte_reset": "byte_reset.one",
    "threshold": "threshold.one",
    "ai_rate": "additive_increase_bytes_per_second.mbps",
    "hai_rate": "hyper_increase_bytes_per_second.mbps",
    "max_rate": "max_rate_bytes_per_second.mbps",
    "min_dec_fac": "min_decrease_ratio.percent",
    "min_rate": "min_rate_bytes_per_second.mbps",
    "rate_to_set_on_first_cnp": "first_cnp_rate_bytes_per_second.mbps",
    "dce_tcp_g": "alpha_gain_ratio.per1024",
    "dce_tcp_rtt": "alpha_update_seconds.us",
    "rate_reduce_monitor_period": "rate_reduce_monitor_seconds.us",
    "initial_alpha_value": "initial_alpha_ratio.per1024",
    "gd": "alpha_to_rate_shift.one",
}
"""Of mlx5, without the prefixes that distinguish the firmware's generic parameters from its own."""

_GENERIC = frozenset(
    {
        "time_reset",
        "byte_reset",
        "threshold",
        "ai_rate",
        "hai_rate",
        "max_rate",
        "min_dec_fac",
        "min_rate",
        "gd",
    }
)
"""The parameters with the prefix `rpg_` in OFED."""

OFED = {
    "roce_rp": {
        f"rpg_{file}" if file in _GENERIC else file: f"rp.{name}" for file, name in _REACTION.items()
    },
    "roce_np": {
        "min_time_between_cnps": "np.min_time_between_cnps_seconds.us",
        "cnp_dscp": "np.cnp_dscp.one",
        "cnp_802p_prio": "np.cnp_priority.one",
    },
}
"""class/net/IF/ecn of MLNX_OFED, by folder."""

MLX5_DEBUGFS = {
    **{f"rp_{file.replace('_after_time_inc', '_ati')}": f"rp.{name}" for file, name in _REACTION.items()},
    "np_min_time_between_cnps": "np.min_time_between_cnps_seconds.us",
    "np_cnp_dscp": "np.cnp_dscp.one",
    "np_cnp_prio_mode": "np.cnp_priority_mode.one",
    "np_cnp_prio": "np.cnp_priority.one",
    "rtt_resp_dscp_valid": "rtt.response_dscp_valid.one",
    "rtt_resp_dscp": "rtt.response_dscp.one",
}
"""cc_params of the kernel's own mlx5."""

BNXT_DEBUGFS = {
    "enable_cc": "cc.enabled.one",
    "cc_mode": "cc.mode.one",
    "tos_ecn": "cc.ecn_codepoint.one",
    "tos_dscp": "cc.roce_dscp.one",
    "tcp_cp": "cc.tcp_compatibility.one",
    "alt_vlan_pcp": "np.cnp_priority.one",
    "alt_tos_dscp": "np.cnp_dscp.one",
    "alt_vlan_dscp": "np.cnp_dscp.one",
    "run_avg_weight_g": "rp.alpha_weight.one",
    "num_phase_per_state": "rp.phases_per_state.one",
    "init_cr": "rp.initial_current_rate.one",
    "init_tr": "rp.initial_target_rate.one",
    "rtt": "rp.round_trip_seconds.us",
    "inactivity_cp": "rp.inactivity_seconds.us",
}
"""cc_config. `tx_queue` is not read: the driver always returns EINVAL."""

BNXT_CONFIGFS = {
    "ecn_enable": "cc.enabled.one",
    "cc_mode": "cc.mode.one",
    "ecn_marking": "cc.ecn_codepoint.one",
    "roce_dscp": "cc.roce_dscp.one",
    "roce_prio": "cc.roce_priority.one",
    "tcp_cp": "cc.tcp_compatibility.one",
    "disable_prio_vlan_tx": "cc.priority_vlan_disabled.one",
    "cnp_prio": "np.cnp_priority.one",
    "cnp_dscp": "np.cnp_dscp.one",
    "g": "rp.alpha_weight.one",
    "nph_per_state": "rp.phases_per_state.one",
    "time_pph": "rp.time_per_phase.one",
    "pkts_pph": "rp.packets_per_phase.one",
    "init_cr": "rp.initial_current_rate.one",
    "init_tr": "rp.initial_target_rate.one",
    "rtt": "rp.round_trip_seconds.us",
    "inact_th": "rp.inactivity.one",
}
"""ports/N/cc of Broadcom's own driver, without its tables and commands (`advanced`, `apply`)."""

UNITS = ("one", "us", "mbps", "percent", "per1024")
"""A plain number, microseconds, Mbit/s, percent, 1/1024."""

_MEANT = {"cnp_802p_prio": "cnp_priority", "icnp_802p_prio": "cnp_priority"}

_NO_PARAMETER = ("lifespan",)


def plain(role: str, file: str) -> str:
    """The name for a parameter of a driver with unknown units; empty if the file is not a parameter."""
    if file in _NO_PARAMETER or not file.isidentifier():
        return ""
    return f"{role}.{_MEANT.get(file, file.lower())}.one"
