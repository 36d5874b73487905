"""The rows of owners, by name, and the counters of a port that owners have, too."""

from roce_exporter.catalog import ROWS
from roce_exporter.catalog.row import COUNTER

QUEUE_PAIRS = ROWS["roce_owner_queue_pairs"]
QUEUE_PAIRS_IN_ERROR = ROWS["roce_owner_queue_pairs_in_error"]
REMOTE_QUEUE_PAIRS = ROWS["roce_owner_remote_queue_pairs"]
COMPLETION_QUEUES = ROWS["roce_owner_completion_queues"]
MEMORY_REGIONS = ROWS["roce_owner_memory_regions"]
MEMORY_REGION_BYTES = ROWS["roce_owner_memory_region_bytes"]
CONTEXTS = ROWS["roce_owner_contexts"]
CONNECTIONS = ROWS["roce_owner_connections"]
PROCESSES = ROWS["roce_owner_processes"]
OWNER_INFO = ROWS["roce_owner_info"]
FOLDED = ROWS["roce_owner_folded"]
UNSEEN = ROWS["roce_owner_unseen_objects"]
HIDDEN_PROCESSES = ROWS["roce_owner_hidden_processes"]
SURVEY_SECONDS = ROWS["roce_owner_survey_duration_seconds"]
SURVEY_TIME = ROWS["roce_owner_survey_timestamp_seconds"]

SUMMED = frozenset(
    name for name, row in ROWS.items() if row.labels[:2] == ("device", "owner") and row is not QUEUE_PAIRS
)
"""Rows that lean and standard have once per owner, without `device`, for all devices; the set full has them per device. Queue pairs say
in every set which device an owner uses."""

OWNER_COUNTERS = tuple(
    (ROWS[name.replace("_owner", "", 1)], row)
    for name, row in ROWS.items()
    if name.startswith("roce_owner_") and row.kind == COUNTER
)
"""Each row of a port with the row of its owners. The spellings of the port's row name the values of a counter set."""
