"""`roce-exporter tool otel-config`: an OpenTelemetry Collector's configuration that makes our series of what switches export by OTLP.

SONiC's high-frequency telemetry (countersyncd of sonic-swss e6b0c5b) names a counter by the numbers of SAI, NVIDIA Cumulus by
`nvswitch_interface_...`; both send gauges of cumulative values. Rows of the catalogue say what they are: names, units, HELP, counter or
gauge. Only the base units and labels of these rows leave the Collector.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER, Row, Spelling
from roce_exporter.catalog.switch_systems import CUMULUS, SONIC
from roce_exporter.cli.output import print_text
from roce_exporter.words import escaped, word_map

OTLP = "otlp"
TYPES = {"SAI_PORT_STAT_": 1, "SAI_QUEUE_STAT_": 21, "SAI_INGRESS_PRIORITY_GROUP_STAT_": 26}
"""The SAI object type of names that begin so (saitypes.h)."""
STATS = {
    name: int(number)
    for name, number in word_map("""
PACKETS=0 BYTES=1 WRED_DROPPED_PACKETS=22 CURR_OCCUPANCY_BYTES=24 WRED_ECN_MARKED_PACKETS=34 TRIM_PACKETS=40
IF_IN_OCTETS=0 IF_IN_UCAST_PKTS=1 IF_IN_DISCARDS=3 IF_IN_ERRORS=4 IF_OUT_OCTETS=9 IF_OUT_UCAST_PKTS=10
IF_OUT_DISCARDS=12 IF_OUT_ERRORS=13 ETHER_STATS_CRC_ALIGN_ERRORS=39 PAUSE_RX_PKTS=101 PAUSE_TX_PKTS=102
IF_IN_FEC_CORRECTABLE_FRAMES=178 IF_IN_FEC_NOT_CORRECTABLE_FRAMES=179 IF_IN_FEC_SYMBOL_ERRORS=180
IF_IN_FEC_CORRECTED_BITS=200
""").items()
}
"""The numbers of SAI's statistics (saiport.h, saiqueue.h), as countersyncd has them."""
DROPPED = {21: 2, 26: 8}
"""That of DROPPED_PACKETS, by object type."""
BY_PRIORITY = {
    "PFC_{priority}_RX_PKTS": (103, 2),
    "PFC_{priority}_TX_PKTS": (104, 2),
    "PFC_{priority}_RX_PAUSE_DURATION_US": (135, 2),
    "PFC_{priority}_ON2OFF_RX_PKTS": (151, 1),
}
"""The number for priority 0, and the step to the next priority."""
ATTRIBUTES = {
    "port": ("interface",),
    "priority": ("sp", "switch_priority"),
    "queue": ("tc", "traffic_class"),
    "priority_group": ("pg",),
}
"""Our labels, and what Cumulus calls them: those of switch priorities are in no document."""


class OtlpName(NamedTuple):
    """A name of OTLP and the series that it is."""

    name: str
    row: Row
    spelling: Spelling
    priority: str = ""


def otlp_names() -> Iterator[OtlpName]:
    """The names that rows of the catalogue have."""
    for row in CATALOG:
        for one in row.spellings:
            for raw in one.raw if (one.dialect, one.source) == (CUMULUS, OTLP) else ():
                yield OtlpName(raw, row, one)
            for raw in one.raw if one.dialect == SONIC and "window" not in row.labels else ():
                yield from _sai_names(raw, row, one)


def _sai_names(raw: str, row: Row, spelling: Spelling) -> Iterator[OtlpName]:
    for start, kind in TYPES.items():
        name = raw.removeprefix(start)
        stat = DROPPED.get(kind) if name == "DROPPED_PACKETS" else STATS.get(name)
        if name == raw or "egress_port" in row.labels:  # a virtual output queue is none of these objects
            continue
        if stat is not None:
            yield OtlpName(f"sai_counter_type_{kind}_stat_{stat}", row, spelling)
        first, step = BY_PRIORITY.get(name, (0, 0))
        for priority in range(8 if step else 0):
            number = first + step * priority
            yield OtlpName(f"sai_counter_type_{kind}_stat_{number}", row, spelling, str(priority))


CONFIGURATION = """\
# An OpenTelemetry Collector of switches that export by OTLP, with the processors attributes, transform and filter of its contrib distribution.
receivers:
  otlp: {{protocols: {{grpc: {{endpoint: "0.0.0.0:4317"}}}}}}
processors:
  attributes:  # countersyncd does not say on which switch it is
    actions: [{{key: device, from_context: client.address, action: upsert}}]
  transform:
    error_mode: ignore
    metric_statements:
      - context: datapoint
        statements:
{values}
      - context: metric
        statements:
{names}
  filter: {{metrics: {{metric: ['not IsMatch(name, "^roce_switch_")']}}}}
exporters:
  prometheus: {{endpoint: "0.0.0.0:9464", add_metric_suffixes: false}}
service:
  pipelines:
    metrics: {{receivers: [otlp], processors: [attributes, transform, filter], exporters: [prometheus]}}
"""


def collector_config() -> str:
    """The configuration: an OTLP receiver for switches, the conversion, and an endpoint that Prometheus scrapes."""
    return CONFIGURATION.format(
        values="\n".join(map(_item, _values())), names="\n".join(map(_item, _names()))
    )


def _item(statement: str) -> str:
    """An item of a list in YAML."""
    quoted = statement.replace("'", "''")
    return f"          - '{quoted}'"


def _values() -> Iterator[str]:
    """Labels and base units of each data point."""
    for name in ("net.host.name", "host.name"):
        yield f'set(datapoint.attributes["device"], resource.attributes["{name}"]) where resource.attributes["{name}"] != nil'
    # countersyncd writes Ethernet0, and of a queue or a priority group Ethernet0|3.
    yield 'set(datapoint.attributes["port"], datapoint.attributes["object_name"]) where datapoint.attributes["object_name"] != nil'
    yield 'replace_pattern(datapoint.attributes["port"], "[|][0-9]+$", "") where datapoint.attributes["object_name"] != nil'
    for label, kind in (("queue", 21), ("priority_group", 26)):
        mine = f'where IsMatch(metric.name, "^sai_counter_type_{kind}_")'
        yield f'set(datapoint.attributes["{label}"], datapoint.attributes["object_name"]) {mine}'
        yield f'replace_pattern(datapoint.attributes["{label}"], "^.*[|]", "") {mine}'
    for label, others in ATTRIBUTES.items():
        for other in others:
            yield f'set(datapoint.attributes["{label}"], String(datapoint.attributes["{other}"])) where datapoint.attributes["{other}"] != nil'
    for one in otlp_names():
        mine = f'where metric.name == "{one.name}"'
        if one.priority:
            yield f'set(datapoint.attributes["priority"], "{one.priority}") {mine}'
        if one.row.name == "roce_switch_link_up":  # a bitmap: 1 is up
            yield f"set(datapoint.value_double, 0.0) {mine} and datapoint.value_double != 1.0"
        if one.spelling.times != one.spelling.per:
            # The first one for integers, which then are no integers any more.
            yield f"set(datapoint.value_double, Double(datapoint.value_int)) {mine} and datapoint.value_int != 0"
            yield f"set(datapoint.value_double, datapoint.value_double * {float(one.spelling.times)} / {float(one.spelling.per)}) {mine}"
    kept = ", ".join(f'"{label}"' for label in ("device", *ATTRIBUTES))
    yield f"keep_keys(datapoint.attributes, [{kept}])"


def _names() -> Iterator[str]:
    for one in otlp_names():
        mine = f'where metric.name == "{one.name}"'
        if one.row.kind == COUNTER:
            yield f'convert_gauge_to_sum("cumulative", true) {mine}'
        yield f'set(metric.description, "{escaped(one.row.help)}") {mine}'
        yield f'set(metric.unit, "{one.row.unit}") {mine}'
        yield f'set(metric.name, "{one.row.name}") {mine}'


async def otel_config(options: argparse.Namespace) -> int:  # noqa: ARG001 - the signature of commands
    """Print the configuration."""
    print_text(collector_config())
    return 0
