"""The names of the RDMA metrics of spiderpool's agent.

Learnt from `pkg/rdmametrics` and `pkg/metric` of spiderpool 1.1 (July 2026). It runs `rdma statistic` and reads the counters of
`ethtool -S` that have `vport` in their name, and mlx5's pause frames and discards by priority. All are counters of OpenTelemetry,
whose Prometheus exporter appends `_total`, also to the speed and the ToS byte. It has no label for the port.
"""

import re

from roce_exporter.catalog.row import ETHTOOL, HW_COUNTERS
from roce_exporter.migrate.naming import Written, in_words
from roce_exporter.words import word_list

DEVICE = (("ifname", "device"),)
NETDEV = (*DEVICE, ("net_dev_name", "netdev"))
NO_PORT = "there is no label for the port"
NOT_FORCED = "0 also means that no value is forced, where ours has no series"

PRIORITIES = {
    f"{way}_prio{{priority}}_{what}": f"{way}_{what}"
    for way in ("rx", "tx")
    for what in ("pause", "discards")
}

LOST = word_list(
    "node_name node_guid sys_image_guid is_root rdma_parent_name pod_namespace pod_name "
    "owner_api_version owner_kind owner_namespace owner_name"
)
"""Labels of all its series that ours do not have."""

FACTS: tuple[tuple[str, Written], ...] = (
    (
        "roce_link_speed_bytes_per_second",
        Written("rdma_vport_speed_mbps_total", NETDEV, times=8, per=1_000_000, loss=NO_PORT),
    ),
    ("roce_config_traffic_class", Written("rdma_device_tos_total", DEVICE, loss=f"{NO_PORT}; {NOT_FORCED}")),
)

UNTRANSLATABLE = {"rdma_tx_discards_total": "no driver has a counter of discards when sending by priority"}

_VALID = re.compile(r"[-_./A-Za-z0-9]+")  # OpenTelemetry refuses other names
_CAPITAL_BEFORE_SMALL = re.compile(r"(?<!^)(?=[A-Z][a-z])")
_INVALID = re.compile(r"[^A-Za-z0-9_]")


def statistic_name(raw: str) -> str:
    """The metric that it makes of a name of `rdma statistic`; empty if OpenTelemetry refuses it."""
    if not _VALID.fullmatch(raw):
        return ""
    name = _CAPITAL_BEFORE_SMALL.sub("_", raw).lower()
    return f"rdma_{_INVALID.sub('_', name)}_total"


def written(source: str, raw: str, labels: tuple[str, ...]) -> list[Written]:
    """How spiderpool writes a raw name of a source; `labels` are those of our metric."""
    pairs = NETDEV if "netdev" in labels else DEVICE
    loss = NO_PORT if "port" in labels else ""
    if source == ETHTOOL and (name := PRIORITIES.get(raw)):
        return [Written(f"rdma_{name}_total", (*pairs, ("priority", "priority")), loss=loss)]
    if source == ETHTOOL and "vport" in raw:
        return [Written(f"rdma_{raw}_total", pairs, loss=loss)]
    if source == HW_COUNTERS and (name := statistic_name(raw)):
        return [Written(name, pairs, loss=loss)]
    return []


def pattern_of(source: str, pattern: str) -> str:
    """The regular expression of the metrics of raw names that match a pattern; empty where that cannot be said."""
    if not in_words(pattern) or not (source == HW_COUNTERS or (source == ETHTOOL and "vport" in pattern)):
        return ""
    return f"rdma_({pattern})_total"
