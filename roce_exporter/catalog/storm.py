"""What the fast loop detects between two scrapes: PFC storms, and how well they can be judged. Filled by `sampler`, not by a driver."""

from __future__ import annotations

from roce_exporter.catalog.row import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    LEAN,
    NETDEV_LABELS,
    PRIORITY_LABELS,
    STANDARD,
    Row,
)

TRACK_LABELS = (*PRIORITY_LABELS, "direction")
"""`direction` is `receive` for pause that this host must obey, `transmit` for pause that this host sends."""

DETECTION = (
    "A storm is pause that blocks all traffic of the priority for 0.4 s. `transmit`: this host pauses its switch and is "
    "the cause. `receive`: the fabric or another host pauses this one."
)

ACTIVE = Row(
    "roce_pfc_storm_active",
    GAUGE,
    "bool",
    "Whether a PFC storm is in progress (1) or not (0). " + DETECTION,
    labels=TRACK_LABELS,
    metric_set=LEAN,
    usual=0,
)
STORMS = Row(
    "roce_pfc_storms_total",
    COUNTER,
    "events",
    "PFC storms that began. " + DETECTION,
    labels=TRACK_LABELS,
    metric_set=LEAN,
)
RESTORED = Row(
    "roce_pfc_storms_restored_total",
    COUNTER,
    "events",
    "PFC storms whose end was observed. Storms cut short by a link failure or by a loss of visibility are not counted.",
    labels=TRACK_LABELS,
    metric_set=STANDARD,
    usual=0,
)
SECONDS = Row(
    "roce_pfc_storm_seconds_total",
    COUNTER,
    "seconds",
    "Time spent in PFC storms.",
    labels=TRACK_LABELS,
    metric_set=STANDARD,
    usual=0,
)
NEAR_MISSES = Row(
    "roce_pfc_storm_near_misses_total",
    COUNTER,
    "events",
    "Pauses without progress that lasted at least half the detection time of a storm, but less than all of it.",
    labels=TRACK_LABELS,
    metric_set=LEAN,
    usual=0,
)
CONGESTED = Row(
    "roce_pfc_congested_seconds_total",
    COUNTER,
    "seconds",
    "Time during which the priority was paused almost continuously while packets still passed: a slow receiver, not a "
    "storm. Only where the NIC measures paused time.",
    labels=TRACK_LABELS,
    metric_set=STANDARD,
    usual=0,
)
ESTIMATED = Row(
    "roce_pfc_pause_estimated_max_seconds_total",
    COUNTER,
    "seconds",
    "Longest time for which the pause frames can have stopped the priority, for NICs that count frames but not time. An "
    "upper bound: most frames request less.",
    labels=TRACK_LABELS,
)
LONGEST = Row(
    "roce_pfc_longest_pause_seconds",
    GAUGE,
    "seconds",
    "Longest single pause of the last five minutes. A lower bound: the pause lasted at least this long.",
    labels=TRACK_LABELS,
    metric_set=LEAN,
    usual=0,
)
STATE = Row(
    "roce_pfc_storm_detector_state",
    GAUGE,
    "state",
    "State of the storm detector for the priority: 0 normal, 1 suspect, 2 storm, 3 recovering, 4 unknown (cannot judge).",
    labels=TRACK_LABELS,
    metric_set=LEAN,
)
UNKNOWN = Row(
    "roce_pfc_storm_unknown",
    GAUGE,
    "info",
    "Why the detector cannot judge the priority now; constant 1. `counters_vanished`: the driver no longer lists the "
    "counters. `pfc_disabled`: PFC is off for the priority. `stale`: the counters do not change although they should. "
    "`implausible`: more time paused than elapsed. `speed_unknown`: the link speed is needed but not known. `stuck`: the "
    "driver does not respond. `fault`: an internal error of the exporter, see its log. Otherwise the errno.",
    labels=(*TRACK_LABELS, "reason"),
    metric_set=LEAN,
)
INFO = Row(
    "roce_pfc_storm_detector_info",
    GAUGE,
    "info",
    "Detection method; constant 1. `duration`: paused time. `xoff_xon`: XOFF and XON frames. `frames`: pause frames of "
    "either kind, the least reliable.",
    labels=(*TRACK_LABELS, "method"),
    metric_set=STANDARD,
)
HINT = Row(
    "roce_pfc_storm_hint",
    GAUGE,
    "info",
    "Likely kind of the storm in progress; constant 1. `slow_receiver`: PCIe stalls. `host_stopped`: the host no longer "
    "receives anything. `receiver_overwhelmed`: only this priority is blocked. `all_ports_paused`: every port of the host "
    "is paused, by the switch or a deadlock. `paused_by_fabric`: another host or the fabric pauses this one. A hint, not "
    "a diagnosis.",
    labels=(*TRACK_LABELS, "hint"),
    metric_set=LEAN,
)
LAST_START = Row(
    "roce_pfc_storm_last_start_timestamp_seconds",
    GAUGE,
    "seconds",
    "Unix time at which the latest storm began. Missing until the first storm.",
    labels=TRACK_LABELS,
    metric_set=LEAN,
)
FAULTS = Row(
    "roce_pfc_detector_faults_total",
    COUNTER,
    "events",
    "Samples with more time paused than elapsed: the counter is not in the documented unit.",
    labels=TRACK_LABELS,
    metric_set=LEAN,
    usual=0,
)
RATIO = Row(
    "roce_pfc_pause_ratio",
    HISTOGRAM,
    "ratio",
    "Fraction of time paused, per sample of the fast loop. Only where the NIC measures paused time.",
    labels=(*TRACK_LABELS, "le"),
    metric_set=LEAN,
    usual=0,
    only=("le", "0.5"),
)
EPISODES = Row(
    "roce_pfc_pause_episode_seconds",
    HISTOGRAM,
    "seconds",
    "Duration of each pause, of any length, counted when it ends. The sum is exact. Pauses that end between the same "
    "two reads of the fast loop count with their mean length; where the NIC does not count the pauses that end (transmit "
    "of mlx5, ionic), pauses in the same or adjacent reads count as one. Only where the NIC measures paused time.",
    labels=(*TRACK_LABELS, "le"),
)

TICKS = Row(
    "roce_exporter_sampler_ticks_total",
    COUNTER,
    "events",
    "Samples that the fast loop took of the network device.",
    labels=NETDEV_LABELS,
    metric_set=LEAN,
)
LATE_TICKS = Row(
    "roce_exporter_sampler_late_ticks_total",
    COUNTER,
    "events",
    "Samples taken more than half an interval late.",
    labels=NETDEV_LABELS,
    metric_set=LEAN,
    usual=0,
)
MISSED_TICKS = Row(
    "roce_exporter_sampler_missed_ticks_total",
    COUNTER,
    "events",
    "Samples skipped because the previous one was too late.",
    labels=NETDEV_LABELS,
    metric_set=LEAN,
    usual=0,
)
SAMPLER_ERRORS = Row(
    "roce_exporter_sampler_errors_total",
    COUNTER,
    "errors",
    "Samples that failed.",
    labels=NETDEV_LABELS,
    metric_set=STANDARD,
    usual=0,
)
INTERVAL = Row(
    "roce_exporter_sampler_interval_seconds",
    GAUGE,
    "seconds",
    "Current sampling interval of the network device.",
    labels=NETDEV_LABELS,
    metric_set=STANDARD,
)
STUCK = Row(
    "roce_exporter_sampler_stuck",
    GAUGE,
    "bool",
    "Whether a sample has not returned (1): this network device is not monitored until it does.",
    labels=NETDEV_LABELS,
    metric_set=LEAN,
    usual=0,
)
REFRESH = Row(
    "roce_exporter_sampler_refresh_seconds",
    GAUGE,
    "seconds",
    "Refresh interval of the driver's counters, as learnt by the fast loop. Missing until it is learnt.",
    labels=NETDEV_LABELS,
)
READ_DURATION = Row(
    "roce_exporter_sampler_read_duration_seconds",
    HISTOGRAM,
    "seconds",
    "Duration of a sample.",
    labels=(*NETDEV_LABELS, "le"),
    metric_set=STANDARD,
    only=("le", "0.001", "0.01", "0.1"),
)

ROWS = (
    ACTIVE,
    STORMS,
    RESTORED,
    SECONDS,
    NEAR_MISSES,
    CONGESTED,
    ESTIMATED,
    LONGEST,
    STATE,
    UNKNOWN,
    INFO,
    HINT,
    LAST_START,
    FAULTS,
    RATIO,
    EPISODES,
)

SAMPLER = (
    TICKS,
    LATE_TICKS,
    MISSED_TICKS,
    SAMPLER_ERRORS,
    INTERVAL,
    STUCK,
    REFRESH,
    READ_DURATION,
)
