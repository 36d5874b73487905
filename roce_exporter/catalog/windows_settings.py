"""Settings of WinOF-2 by the names that Windows gives them, and the row of the same setting on Linux.

A setting is a row without series: no counter of Windows has its value, so nothing exports it. `roce-exporter explain NAME` prints
what it means and what a Linux host reports for it. The names, values and defaults are those of NVIDIA's manual, "Ethernet
Network" and "Ethernet Registry Keys" of WinOF-2; the roles are those of IEEE 802.1Qau, as in `host/sources/configuration_names.py`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple


class WindowsSetting(NamedTuple):
    """One setting of Windows."""

    name: str
    """As the manual spells it; a placeholder stands for the number of a priority, traffic class or port."""
    place: str
    """Where Windows keeps or prints it."""
    meaning: str
    values: str = ""
    """Its values, unit and default, as far as the manual has them."""
    source: str = ""
    """The catalogue's source of the same setting on Linux; empty where Linux has no such setting."""
    raw: str = ""
    """The setting's name in that source."""

    def matches(self, name: str) -> re.Match[str] | None:
        """Whether this name is the setting's, in any case."""
        return _pattern(self.name).fullmatch(name)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\d+)", re.escape(name)), re.IGNORECASE)


DCQCN = "mlx5cmd -Qosconfig -Dcqcn"
UNTAGGED = "mlx5cmd -Qosconfig -DefaultUntaggedPriority"
ADAPTER = "registry key of the adapter"
DRIVER = "registry key of the adapter or of the driver (mlx5\\Parameters\\Roce)"
DCB = "cmdlets of the module DcbQos"
POLICY = "New-NetQosPolicy"
FIRMWARE = "mlxconfig, the settings of the firmware"

CONFIGURATION = "configuration"
"""The source of the catalogue for settings that have no interface of their own."""


def _dcqcn(name: str, meaning: str, values: str, raw: str = "") -> WindowsSetting:
    return WindowsSetting(name, DCQCN, meaning, values, CONFIGURATION if raw else "", raw)


_key = partial(WindowsSetting, place=ADAPTER)

RATE = "Mbit/s, at most the line rate"
FRACTION = "0 to 1023, in 1/1024"

REACTION_POINT = (
    _dcqcn(
        "DcqcnRPEnablePrio{priority}",
        "Whether the adapter slows down on the priority when it receives CNPs.",
        "0 or 1",
        "reaction_enabled_{priority}",
    ),
    _dcqcn(
        "DcqcnClampTgtRate",
        "Whether each CNP sets the target rate to the current rate.",
        "0 or 1, default 0",
        "rp.clamp_target_rate.one",
    ),
    _dcqcn(
        "DcqcnClampTgtRateAfterTimeInc",
        "Whether a CNP sets the target rate also after an increase by the timer.",
        "0 or 1, default 1",
        "rp.clamp_target_rate_after_time_increase.one",
    ),
    _dcqcn(
        "DcqcnRpgTimeReset",
        "Time between increases of the rate by the timer.",
        "0 to 131071 microseconds",
        "rp.time_reset_seconds.us",
    ),
    _dcqcn(
        "DcqcnRpgByteReset",
        "Bytes between increases of the rate by the byte counter.",
        "0 to 32767, in 64 bytes",
        "rp.byte_reset.one",
    ),
    _dcqcn(
        "DcqcnRpgThreshold",
        "Increases in a row before the next phase: fast recovery, additive, hyper additive.",
        "1 to 31",
        "rp.threshold.one",
    ),
    _dcqcn(
        "DcqcnRpgAiRate",
        "Step of the additive increase.",
        RATE,
        "rp.additive_increase_bytes_per_second.mbps",
    ),
    _dcqcn(
        "DcqcnRpgHaiRate",
        "Step of the hyper additive increase.",
        RATE,
        "rp.hyper_increase_bytes_per_second.mbps",
    ),
    _dcqcn(
        "DcqcnAlphaToRateShift",
        "How strongly alpha lowers the rate: by alpha / 2^shift.",
        "0 to 11",
        "rp.alpha_to_rate_shift.one",
    ),
    _dcqcn(
        "DcqcnRpgMinDecFac",
        "The strongest decrease of the rate in one step.",
        "0 to 100",
        "rp.min_decrease_ratio.percent",
    ),
    _dcqcn(
        "DcqcnRpgMinRate",
        "The lowest rate of one flow. The line rate turns congestion control off.",
        "Mbit/s",
        "rp.min_rate_bytes_per_second.mbps",
    ),
    _dcqcn(
        "DcqcnRateToSetOnFirstCnp",
        "Rate of a flow after its first CNP.",
        RATE,
        "rp.first_cnp_rate_bytes_per_second.mbps",
    ),
    _dcqcn("DcqcnDceTcpG", "Weight of a new estimate in alpha.", FRACTION, "rp.alpha_gain_ratio.per1024"),
    _dcqcn(
        "DcqcnDceTcpRtt",
        "Time between updates of alpha.",
        "0 to 131071 microseconds",
        "rp.alpha_update_seconds.us",
    ),
    _dcqcn(
        "DcqcnRateReduceMonitorPeriod",
        "Time between decreases of the rate, whatever the number of CNPs.",
        "microseconds",
        "rp.rate_reduce_monitor_seconds.us",
    ),
    _dcqcn(
        "DcqcnInitialAlphaValue",
        "Alpha of a flow at its first CNP.",
        FRACTION,
        "rp.initial_alpha_ratio.per1024",
    ),
)
NOTIFICATION_POINT = (
    _dcqcn(
        "DcqcnNPEnablePrio{priority}",
        "Whether the adapter answers marked packets of the priority with CNPs.",
        "0 or 1",
        "notification_enabled_{priority}",
    ),
    _dcqcn("DcqcnCnpDscp", "DSCP of CNPs.", "0 to 63", "np.cnp_dscp.one"),
    _dcqcn(
        "DcqcnCnp802pPrio",
        "Priority in the VLAN tag of CNPs, used when DcqcnCnpPrioMode is 0.",
        "0 to 7",
        "np.cnp_priority.one",
    ),
    _dcqcn(
        "DcqcnCnpPrioMode",
        "Whether CNPs have the priority of the marked packets (1) or DcqcnCnp802pPrio (0).",
        "0 or 1",
        "np.cnp_priority_mode.one",
    ),
    _dcqcn("fCnpDscp", "DcqcnCnpDscp, as a table of the manual spells it.", "0 to 63", "np.cnp_dscp.one"),
    _dcqcn(
        "DcqcnDecTcpG",
        "DcqcnDceTcpG, as the formulas of the manual spell it.",
        FRACTION,
        "rp.alpha_gain_ratio.per1024",
    ),
    _dcqcn(
        "DcqcnEnablePrio{priority}",
        "Switches both points of the priority on; `-Get` prints DcqcnRPEnablePrioN and DcqcnNPEnablePrioN.",
        "0 or 1",
    ),
)
TRUST = (
    _key(
        "RxTrustedState",
        meaning="Whether the adapter trusts the DSCP of received packets. DSCP 24 to 31 is priority 3: the mapping is fixed.",
        values="1 the VLAN tag (default), 2 the DSCP; roce_config_trust_dscp is 0 or 1",
        source="dcb",
        raw="trust_dscp",
    ),
    _key(
        "PriorityToDscpMappingTable_{priority}",
        meaning="DSCP of RoCE packets sent on the priority. The opposite direction is fixed: DSCP / 8 is the priority.",
        values="0 to 63, default: the number of the priority",
    ),
    _key(
        "RroceDscpMarkPriorityFlowControl{priority}",
        meaning="An older name of PriorityToDscpMappingTable_N in the manual.",
    ),
    _key(
        "TxUntagPriorityTag",
        meaning="Whether packets with a priority and without a VLAN are sent without a tag; DSCP-based PFC needs 1.",
        values="0 (default) or 1",
    ),
    _key(
        "RxUntaggedMapToLossless",
        meaning="Whether untagged packets go to the lossless receive queue; DSCP-based PFC needs 1.",
        values="0 (default) or 1",
    ),
    _key(
        "RxUntaggedMapToLossles",
        meaning="RxUntaggedMapToLossless, as the manual's table of defaults spells it.",
    ),
    _key("DscpBasedEtsEnabled", meaning="Whether ETS follows the DSCP.", values="0 (default) or 1"),
    _key("DscpBasedpfcEnabled", meaning="Whether the DSCP of RoCE packets follows their priority."),
    _key(
        "DscpForGlobalFlowControl",
        meaning="DSCP of RoCE packets while the adapter uses global pause.",
        values="default 26",
    ),
    WindowsSetting(
        "DefaultUntaggedPriority", UNTAGGED, "Priority of untagged packets of the port.", "0 to 7, default 0"
    ),
)
STALL = (
    _key(
        "DeviceRxStallTimeout",
        meaning="Receive stall watchdog: how long the receive path may be stalled before the adapter stops its pause frames, "
        "on all priorities. The counter is Critical Stall Watermark Reached.",
        source="settings",
        raw="pfc_prevention_timeout",
    ),
    _key(
        "DeviceRxStallWatermark",
        meaning="Receive stall watchdog: the earlier time after which Minor Stall Watermark Reached counts.",
    ),
    _key(
        "DelayDropTimeout",
        meaning="Dropless mode: how long a packet waits for a receive buffer before it is dropped.",
        values="0 (off) to 100, default 50, in 100 microseconds",
        source="delay_drop",
        raw="timeout",
    ),
    _key("TCHeadOfQueueLifeTimeLimit", meaning="How long a packet may wait at the head of a send queue."),
    _key("TCHeadOfQueueLifeTimeLimitEnable", meaning="For which traffic classes that limit is on."),
    _key(
        "TCStallCount",
        meaning="After how many such drops the adapter drops all packets of the traffic class.",
    ),
    _key(
        "AsyncReceiveIndicate",
        meaning="Packet burst handling of the operating system's own packets.",
        values="0 off (default), 1 threaded DPC, 2 polling",
    ),
    _key(
        "RfdReservationFactor",
        meaning="Receive buffers in reserve for bursts.",
        values="default 150, at most 5,000,000",
    ),
)
ROCE = (
    WindowsSetting(
        "roce_mode",
        DRIVER,
        "RoCE version of the adapter. On Linux each GID has a version, and RDMA-CM has a default.",
        "0 RoCE v1, 2 RoCE v2 (default since WinOF-2 1.30), 4 no RoCE",
        CONFIGURATION,
        "cm_roce_version",
    ),
    _key("*NetworkDirect", meaning="Whether RDMA is on.", values="0 or 1"),
    _key("VlanID", meaning="VLAN of the adapter.", values="0: none"),
    _key("*VxlanUDPPortNumber", meaning="UDP port of VXLAN; not related to RoCE."),
    _key("*EncapsulatedPacketTaskOffloadVxlan", meaning="Offloads of VXLAN; not related to RoCE."),
    WindowsSetting(
        "Dropless_mode", "OID 0xFFA0C932", "Whether dropless mode is on; see DelayDropTimeout.", "0 or 1"
    ),
)
EXCHANGE = (
    WindowsSetting(
        "Willing",
        DCB,
        "DCBX: whether Windows adopts the peer's settings (Get-NetQosDcbxSetting).",
        "1 by default",
        "dcb",
        "ets_willing",
    ),
    _key(
        "DcbxMode",
        meaning="Which side negotiates DCB; the driver's DCBX is off by default.",
        values="2: the firmware",
        source="dcb",
        raw="dcbx_mode",
    ),
    WindowsSetting("LLDP_NB_DCBX_P{port}", FIRMWARE, "Whether the firmware runs DCBX on the port.", "0 or 1"),
    WindowsSetting("LLDP_NB_RX_MODE_P{port}", FIRMWARE, "Whether the firmware receives LLDP.", "2: yes"),
    WindowsSetting("LLDP_NB_TX_MODE_P{port}", FIRMWARE, "Whether the firmware sends LLDP.", "2: yes"),
    WindowsSetting(
        "BandwidthPercentage",
        DCB,
        "ETS: share of the bandwidth of a traffic class (Get-NetQosTrafficClass).",
        "percent",
        "dcb",
        "ets_transmit_bandwidth_{traffic_class}",
    ),
    WindowsSetting(
        "Algorithm",
        DCB,
        "ETS: how a traffic class is scheduled (Get-NetQosTrafficClass).",
        "ETS or Strict",
        "dcb",
        "ets_algorithm_{traffic_class}",
    ),
    WindowsSetting(
        "NetQosFlowControl",
        DCB,
        "Whether PFC is on for a priority (Get-NetQosFlowControl).",
        "True or False",
        "dcb",
        "pfc_enabled_{priority}",
    ),
    WindowsSetting(
        "PriorityValue8021Action",
        POLICY,
        "Priority of the packets that match the policy: of RDMA by NetDirectPortMatchCondition.",
        "0 to 7",
    ),
    WindowsSetting(
        "DSCPAction", POLICY, "DSCP of the operating system's own packets that match the policy.", "0 to 63"
    ),
    WindowsSetting(
        "NetDirectPortMatchCondition",
        POLICY,
        "Network Direct port of the RDMA traffic that a policy matches.",
    ),
)

WINDOWS_SETTINGS = (*REACTION_POINT, *NOTIFICATION_POINT, *TRUST, *STALL, *ROCE, *EXCHANGE)
