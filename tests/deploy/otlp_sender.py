"""A page of metrics as an OTLP request, made as the collector's Prometheus receiver makes it (OpenTelemetry's compatibility document).

It tests what Prometheus makes of OTLP where no collector is installed. Names are as scraped, with the unit of OpenMetrics; counters are
monotonic sums, histograms have explicit bounds, and `job` and `instance` are attributes of the resource.
"""

from __future__ import annotations

import json
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client import Metric
    from prometheus_client.samples import Sample

CUMULATIVE = 2


def attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": text}} for key, text in labels.items()]


def request(page: str, target: Mapping[str, str], now: float) -> dict[str, Any]:
    """The request for a page in OpenMetrics; `target` are the labels of the target."""
    known = {"service.name": target["job"], "service.instance.id": target["instance"]}
    of_target = {key: text for key, text in target.items() if key not in ("job", "instance")}
    nanoseconds = str(int(now * 1000) * 1_000_000)
    metrics = [
        metric
        for family in text_string_to_metric_families(page)
        for metric in metrics_of(family, of_target, nanoseconds)
    ]
    scope = {"name": "github.com/open-telemetry/opentelemetry-collector-contrib/receiver", "version": "1"}
    resource = {"attributes": attributes({**known, "server.address": "host1", "url.scheme": "http"})}
    scopes = [{"scope": scope, "metrics": metrics}]
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": scopes}]}


def metrics_of(family: Metric, target: Mapping[str, str], now: str) -> Iterator[dict[str, Any]]:
    """The metrics of a family: one, or none if it is a histogram without a count, which the receiver drops."""
    if family.type == "histogram":
        points = [
            point for group in groups(family.samples).values() if (point := histogram(group, target, now))
        ]
        data: dict[str, Any] = {"histogram": {"dataPoints": points, "aggregationTemporality": CUMULATIVE}}
        name = family.name
    else:
        points = [
            {
                "attributes": attributes({**one.labels, **target}),
                "timeUnixNano": now,
                "asDouble": one.value,
            }
            for one in family.samples
        ]
        data = {"gauge": {"dataPoints": points}}
        if family.type == "counter":
            data = {"sum": {"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": True}}
        name = family.samples[0].name if family.samples else family.name
    if points:
        yield {"name": name, "unit": family.unit, "description": family.documentation, **data}


def groups(samples: Iterable[Sample]) -> dict[frozenset[tuple[str, str]], list[Sample]]:
    """The samples of each histogram of a family."""
    found: dict[frozenset[tuple[str, str]], list[Sample]] = {}
    for one in samples:
        labels = frozenset(pair for pair in one.labels.items() if pair[0] != "le")
        found.setdefault(labels, []).append(one)
    return found


def histogram(samples: list[Sample], target: Mapping[str, str], now: str) -> dict[str, Any] | None:
    """A point of a histogram; None without a count."""
    buckets = [one for one in samples if one.name.endswith("_bucket")]
    others = {one.name.rpartition("_")[2]: one.value for one in samples if not one.name.endswith("_bucket")}
    if "count" not in others:
        return None
    counts = [one.value for one in buckets]
    labels = {key: text for key, text in samples[0].labels.items() if key != "le"}
    return {
        "attributes": attributes({**labels, **target}),
        "timeUnixNano": now,
        "count": str(int(others["count"])),
        "sum": others["sum"],
        "explicitBounds": [float(one.labels["le"]) for one in buckets[:-1]],
        "bucketCounts": [
            str(int(after - before)) for before, after in zip([0.0, *counts], counts, strict=False)
        ],
    }


def send(url: str, page: str, target: Mapping[str, str]) -> None:
    """Send a page to a Prometheus.

    Raises:
        OSError: it refuses the request.
    """
    body = json.dumps(request(page, target, time.time())).encode()
    headers = {"Content-Type": "application/json"}
    place = f"{url}/api/v1/otlp/v1/metrics"
    with urllib.request.urlopen(urllib.request.Request(place, body, headers), timeout=60):
        pass
