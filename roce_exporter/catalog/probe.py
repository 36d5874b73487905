"""The rows of active probes, by name."""

from roce_exporter.catalog import ROWS

SENT = ROWS["roce_probe_sent_total"]
LOST = ROWS["roce_probe_lost_total"]
LATE = ROWS["roce_probe_late_total"]
REFUSED = ROWS["roce_probe_refused_total"]
MARKED = ROWS["roce_probe_marked_total"]
REMARKED = ROWS["roce_probe_remarked_total"]
NETWORK = ROWS["roce_probe_network_seconds"]
NETWORK_MAX = ROWS["roce_probe_network_max_seconds"]
RESPONDER = ROWS["roce_probe_responder_seconds"]
ANSWER = ROWS["roce_probe_answer_seconds"]
PAIR_SENT = ROWS["roce_probe_pair_sent_total"]
PAIR_LOST = ROWS["roce_probe_pair_lost_total"]
PAIRS_HIDDEN = ROWS["roce_probe_pairs_hidden"]
REPLIES_DROPPED = ROWS["roce_probe_replies_dropped_total"]
ANSWERED = ROWS["roce_probe_answered_total"]
REQUESTS_DROPPED = ROWS["roce_probe_requests_dropped_total"]
PORT_INFO = ROWS["roce_probe_port_info"]
TARGETS = ROWS["roce_probe_targets"]
PLAN_CHANGES = ROWS["roce_probe_plan_changes_total"]
