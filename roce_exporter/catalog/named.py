"""Rows that code fills or reads by name; each of the parts with many rows of its own has a module of them."""

from __future__ import annotations

from roce_exporter.catalog import INDEX

ROWS = INDEX.named

DEVICE_INFO = ROWS["roce_device_info"]
PORT_INFO = ROWS["roce_port_info"]
PORT_NETDEV_INFO = ROWS["roce_port_netdev_info"]
GID_INFO = ROWS["roce_gid_info"]

RDMA_MTU = ROWS["roce_config_rdma_mtu_bytes"]
CHECK_OK = ROWS["roce_config_check_ok"]
CHECKS_PASSED = ROWS["roce_config_checks_passed"]
CHECKS_FAILED = ROWS["roce_config_checks_failed"]
CHECK_UNREADABLE = ROWS["roce_config_check_unreadable"]
FINGERPRINT = ROWS["roce_config_fingerprint"]

SOURCE_UP = ROWS["roce_exporter_source_up"]
SOURCE_DURATION = ROWS["roce_exporter_source_duration_seconds"]
READ_ERRORS = ROWS["roce_exporter_read_errors_total"]
UNREADABLE = ROWS["roce_exporter_unreadable_values"]
QUARANTINED = ROWS["roce_exporter_quarantined_files"]
UNMAPPED = ROWS["roce_exporter_unmapped_names"]
UNMAPPED_NAME = ROWS["roce_exporter_unmapped_name_info"]
MISSING = ROWS["roce_exporter_missing_facts"]
DEVICES = ROWS["roce_exporter_devices"]
DEVICES_EXCLUDED = ROWS["roce_exporter_devices_excluded"]
PORTS_WITHOUT_NETDEV = ROWS["roce_exporter_ports_without_netdev"]
COLLECTION_DURATION = ROWS["roce_exporter_collection_duration_seconds"]
UNFINISHED = ROWS["roce_exporter_unfinished_sources"]
METRIC_SET_INFO = ROWS["roce_exporter_metric_set_info"]

BUILD_INFO = ROWS["roce_exporter_build_info"]
KERNEL_INFO = ROWS["roce_exporter_kernel_info"]
COLLECTION_AGE = ROWS["roce_exporter_collection_age_seconds"]
HTTP_REQUESTS = ROWS["roce_exporter_http_requests_total"]
SWITCH_PROBES = ROWS["roce_exporter_switch_probes_total"]
TLS = ROWS["roce_exporter_tls"]
PROCESS_CPU = ROWS["process_cpu_seconds_total"]
PROCESS_MAX_FDS = ROWS["process_max_fds"]
PROCESS_VIRTUAL_MEMORY = ROWS["process_virtual_memory_bytes"]
PROCESS_RESIDENT_MEMORY = ROWS["process_resident_memory_bytes"]
PROCESS_START = ROWS["process_start_time_seconds"]
PROCESS_OPEN_FDS = ROWS["process_open_fds"]

PORT_HEALTH = ROWS["roce_port_health"]
PORT_HEALTH_REASON = ROWS["roce_port_health_reason"]
HEALTH_THRESHOLDS = ROWS["roce_health_thresholds_info"]

KERNEL_LOG_EVENTS = ROWS["roce_kernel_log_events_total"]
KERNEL_LOG_LOST = ROWS["roce_kernel_log_lost_total"]
KERNEL_LOG_READABLE = ROWS["roce_kernel_log_readable"]

POD_DEVICE_INFO = ROWS["roce_owner_device_info"]

SHARED = ROWS["roce_rdma_namespaces_shared"]
HIDDEN_DEVICES = ROWS["roce_exporter_rdma_devices_unseen"]
UNVISITED = ROWS["roce_exporter_rdma_namespaces_unseen"]
NAMESPACE_OBJECTS = ROWS["roce_namespace_objects"]

SWITCH_INFO = ROWS["roce_switch_info"]
SWITCH_PORT_INFO = ROWS["roce_switch_port_info"]
SWITCH_NEIGHBOR_INFO = ROWS["roce_switch_lldp_neighbor_info"]
SWITCH_QUEUE_INFO = ROWS["roce_switch_queue_info"]
SWITCH_TRANSCEIVER_INFO = ROWS["roce_switch_transceiver_info"]
SWITCH_LINK_UP = ROWS["roce_switch_link_up"]

PROBE_SUCCESS = ROWS["roce_switch_probe_success"]
PROBE_SECONDS = ROWS["roce_switch_probe_duration_seconds"]
ANSWER_AGE = ROWS["roce_switch_answer_age_seconds"]
LOGIN_REFUSED = ROWS["roce_switch_login_refused"]
SWITCH_SOURCE_UP = ROWS["roce_switch_source_up"]
SWITCH_SOURCE_MISSING = ROWS["roce_switch_source_missing"]
SOURCE_UNREADABLE = ROWS["roce_switch_source_unreadable_values"]
SOURCE_RENEWAL = ROWS["roce_switch_source_renewal_seconds"]
