"""The rows of the wire view, by name."""

from __future__ import annotations

from roce_exporter.catalog import INDEX

ROWS = INDEX.named

PACKETS = ROWS["roce_wire_packets_total"]
BYTES = ROWS["roce_wire_bytes_total"]
ECN = ROWS["roce_wire_ecn_packets_total"]
CNPS = ROWS["roce_wire_cnps_total"]
NAKS = ROWS["roce_wire_naks_total"]
RNR_NAKS = ROWS["roce_wire_rnr_naks_total"]
RETRANSMISSIONS = ROWS["roce_wire_retransmitted_packets_total"]
GAPS = ROWS["roce_wire_sequence_gaps_total"]
DUPLICATE_ACKS = ROWS["roce_wire_duplicate_acks_total"]
OUTSIDE_LOSSLESS = ROWS["roce_wire_outside_lossless_packets_total"]
BAD_ICRC = ROWS["roce_wire_bad_icrc_packets_total"]
ROUND_TRIP = ROWS["roce_wire_acknowledge_seconds"]
PFC_FRAMES = ROWS["roce_wire_pfc_frames_total"]
PAUSE_FRAMES = ROWS["roce_wire_global_pause_frames_total"]
NEIGHBOR = ROWS["roce_wire_neighbor_info"]
FRAMES = ROWS["roce_wire_capture_frames_total"]
DROPPED = ROWS["roce_wire_capture_dropped_frames_total"]
PAIRS = ROWS["roce_wire_pairs"]
