"""What the fast loop finds between two scrapes: PFC storms, and how well it can see. Filled by `sampler`, not from a driver."""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, HISTOGRAM, NETDEV_LABELS, PRIORITY_LABELS, Row

TRACK_LABELS = (*PRIORITY_LABELS, "direction")
"""`direction` is `receive` for pause that this host must obey, `transmit` for pause that it sends."""

DETECTION = (
    "A storm is pause that lets nothing through for 0.4 s. `transmit`: this host holds up its switch, it is the culprit. "
    "`receive`: the fabric or another host holds up this one."
)

ACTIVE = Row(
    "roce_pfc_storm_active",
    GAUGE,
    "bool",
    "Whether a PFC storm is going on (1) or not (0). " + DETECTION,
    labels=TRACK_LABELS,
)
STORMS = Row(
    "roce_pfc_storms_total", COUNTER, "events", "PFC storms that began. " + DETECTION, labels=TRACK_LABELS
)
RESTORED = Row(
    "roce_pfc_storms_restored_total",
    COUNTER,
    "events",
    "PFC storms that were seen to end. Those that a link failure or blindness cut short are not among them.",
    labels=TRACK_LABELS,
)
SECONDS = Row(
    "roce_pfc_storm_seconds_total", COUNTER, "seconds", "Time spent in PFC storms.", labels=TRACK_LABELS
)
NEAR_MISSES = Row(
    "roce_pfc_storm_near_misses_total",
    COUNTER,
    "events",
    "Pauses without progress that lasted at least half as long as a storm, and not as long.",
    labels=TRACK_LABELS,
)
CONGESTED = Row(
    "roce_pfc_congested_seconds_total",
    COUNTER,
    "seconds",
    "Time in which the priority was paused nearly throughout while packets still passed: a slow receiver, no storm. "
    "Only where the NIC measures the time paused.",
    labels=TRACK_LABELS,
)
ESTIMATED = Row(
    "roce_pfc_pause_estimated_max_seconds_total",
    COUNTER,
    "seconds",
    "The longest that the pause frames can have held the priority, of NICs that count frames and no time. An upper "
    "bound: most frames ask for less.",
    labels=TRACK_LABELS,
)
LONGEST = Row(
    "roce_pfc_longest_pause_seconds",
    GAUGE,
    "seconds",
    "The longest single pause of the last five minutes, as far as it can be told: it was at least that long.",
    labels=TRACK_LABELS,
)
STATE = Row(
    "roce_pfc_storm_detector_state",
    GAUGE,
    "state",
    "What the detector makes of the priority: 0 nothing, 1 suspect, 2 storm, 3 recovering, 4 unknown: it cannot judge.",
    labels=TRACK_LABELS,
)
UNKNOWN = Row(
    "roce_pfc_storm_unknown",
    GAUGE,
    "info",
    "Why the detector cannot judge the priority now; 1. `counters_vanished`: the driver lists it no more. `pfc_disabled`: "
    "PFC is off for it. `stale`: its counters stand still although it should not. `implausible`: more time paused than "
    "passed. `speed_unknown`: the link's speed would be needed. `stuck`: the driver does not answer. `fault`: a fault of "
    "the exporter itself, which the log tells. Else the errno.",
    labels=(*TRACK_LABELS, "reason"),
)
INFO = Row(
    "roce_pfc_storm_detector_info",
    GAUGE,
    "info",
    "By what the detector judges; always 1. `duration`: time paused. `xoff_xon`: frames that stop and let go. `frames`: "
    "pause frames of either kind, the least certain.",
    labels=(*TRACK_LABELS, "method"),
)
HINT = Row(
    "roce_pfc_storm_hint",
    GAUGE,
    "info",
    "What the storm that is going on looks like; 1. `slow_receiver`: PCIe stalls. `host_stopped`: nothing is received any "
    "more. `receiver_overwhelmed`: only this priority stands. `all_ports_paused`: every port of the host is held, the "
    "switch or a deadlock. `paused_by_fabric`: another host or the fabric holds this one. A guess, not a finding.",
    labels=(*TRACK_LABELS, "hint"),
)
LAST_START = Row(
    "roce_pfc_storm_last_start_timestamp_seconds",
    GAUGE,
    "seconds",
    "When the latest storm began, as Unix time. Missing while there was none.",
    labels=TRACK_LABELS,
)
FAULTS = Row(
    "roce_pfc_detector_faults_total",
    COUNTER,
    "events",
    "Looks in which more time was paused than passed: the counter is not in the unit that it should be in.",
    labels=TRACK_LABELS,
)
RATIO = Row(
    "roce_pfc_pause_ratio",
    HISTOGRAM,
    "ratio",
    "Share of the time paused, per look of the fast loop. Only where the NIC measures the time paused.",
    labels=(*TRACK_LABELS, "le"),
)
EPISODES = Row(
    "roce_pfc_pause_episode_seconds",
    HISTOGRAM,
    "seconds",
    "How long each pause lasted, counted when it ends, at any length. The sum is exact. Pauses that end between the same "
    "two reads of the fast loop count with their mean length; where the NIC does not count the pauses that end (transmit "
    "of mlx5, ionic), pauses in the same or adjacent reads count as one. Only where the NIC measures the time paused.",
    labels=(*TRACK_LABELS, "le"),
)

TICKS = Row(
    "roce_exporter_sampler_ticks_total",
    COUNTER,
    "events",
    "Looks of the fast loop at the network device.",
    labels=NETDEV_LABELS,
)
LATE_TICKS = Row(
    "roce_exporter_sampler_late_ticks_total",
    COUNTER,
    "events",
    "Looks that came more than half an interval late.",
    labels=NETDEV_LABELS,
)
MISSED_TICKS = Row(
    "roce_exporter_sampler_missed_ticks_total",
    COUNTER,
    "events",
    "Looks that did not take place because the one before came too late.",
    labels=NETDEV_LABELS,
)
SAMPLER_ERRORS = Row(
    "roce_exporter_sampler_errors_total",
    COUNTER,
    "errors",
    "Looks that failed.",
    labels=NETDEV_LABELS,
)
INTERVAL = Row(
    "roce_exporter_sampler_interval_seconds",
    GAUGE,
    "seconds",
    "How often the network device is looked at now.",
    labels=NETDEV_LABELS,
)
STUCK = Row(
    "roce_exporter_sampler_stuck",
    GAUGE,
    "bool",
    "Whether a look has not come back (1): nobody watches this network device until it does.",
    labels=NETDEV_LABELS,
)
REFRESH = Row(
    "roce_exporter_sampler_refresh_seconds",
    GAUGE,
    "seconds",
    "How often the driver renews its counters, as the fast loop has learnt it. Missing until it has.",
    labels=NETDEV_LABELS,
)
READ_DURATION = Row(
    "roce_exporter_sampler_read_duration_seconds",
    HISTOGRAM,
    "seconds",
    "How long a look took.",
    labels=(*NETDEV_LABELS, "le"),
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
