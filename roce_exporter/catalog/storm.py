"""Rows that the fast loop fills, by name."""

from roce_exporter.catalog import ROWS

ACTIVE = ROWS["roce_pfc_storm_active"]
STORMS = ROWS["roce_pfc_storms_total"]
ESTIMATED = ROWS["roce_pfc_pause_estimated_max_seconds_total"]
LONGEST = ROWS["roce_pfc_longest_pause_seconds"]
STATE = ROWS["roce_pfc_storm_detector_state"]
UNKNOWN = ROWS["roce_pfc_storm_unknown"]
INFO = ROWS["roce_pfc_storm_detector_info"]
HINT = ROWS["roce_pfc_storm_hint"]
RATIO = ROWS["roce_pfc_pause_ratio"]
EPISODES = ROWS["roce_pfc_pause_episode_seconds"]
REFRESH = ROWS["roce_exporter_sampler_refresh_seconds"]
READ_DURATION = ROWS["roce_exporter_sampler_read_duration_seconds"]
