"""The rows that the fast loop fills, by name."""

from __future__ import annotations

from roce_exporter.catalog import INDEX

ROWS = INDEX.named

ACTIVE = ROWS["roce_pfc_storm_active"]
STORMS = ROWS["roce_pfc_storms_total"]
RESTORED = ROWS["roce_pfc_storms_restored_total"]
SECONDS = ROWS["roce_pfc_storm_seconds_total"]
NEAR_MISSES = ROWS["roce_pfc_storm_near_misses_total"]
CONGESTED = ROWS["roce_pfc_congested_seconds_total"]
ESTIMATED = ROWS["roce_pfc_pause_estimated_max_seconds_total"]
LONGEST = ROWS["roce_pfc_longest_pause_seconds"]
STATE = ROWS["roce_pfc_storm_detector_state"]
UNKNOWN = ROWS["roce_pfc_storm_unknown"]
INFO = ROWS["roce_pfc_storm_detector_info"]
HINT = ROWS["roce_pfc_storm_hint"]
LAST_START = ROWS["roce_pfc_storm_last_start_timestamp_seconds"]
FAULTS = ROWS["roce_pfc_detector_faults_total"]
RATIO = ROWS["roce_pfc_pause_ratio"]
EPISODES = ROWS["roce_pfc_pause_episode_seconds"]
TICKS = ROWS["roce_exporter_sampler_ticks_total"]
LATE_TICKS = ROWS["roce_exporter_sampler_late_ticks_total"]
MISSED_TICKS = ROWS["roce_exporter_sampler_missed_ticks_total"]
SAMPLER_ERRORS = ROWS["roce_exporter_sampler_errors_total"]
INTERVAL = ROWS["roce_exporter_sampler_interval_seconds"]
STUCK = ROWS["roce_exporter_sampler_stuck"]
REFRESH = ROWS["roce_exporter_sampler_refresh_seconds"]
READ_DURATION = ROWS["roce_exporter_sampler_read_duration_seconds"]
