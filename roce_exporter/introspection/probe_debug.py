"""One probe of a switch in detail: what was queried, what the replies were, and which raw value became which series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from roce_exporter.introspection.debug import series_text
from roce_exporter.net.login import hide
from roce_exporter.switches.readings import SwitchReading, Unreadable

if TYPE_CHECKING:
    from roce_exporter.switches.probe import ProbeResult


def probe_document(answer: ProbeResult) -> dict[str, Any]:
    """The answer as JSON, version 1: `sources`, `queries`, `facts`, `values` (object, raw name, value, series) and `rest`."""
    readings, login = answer.readings, answer.login
    return {
        "version": 1,
        "target": answer.target.name,
        "module": answer.target.module,
        "device": answer.device,
        "seconds": answer.seconds,
        "sources": [
            {
                "source": source,
                "up": source not in readings.faults,
                "fault": hide(readings.faults.get(source, ""), login),
            }
            for source in sorted({*readings.sources, *readings.faults})
        ],
        "queries": [
            {
                "source": exchange.source,
                "query": hide(exchange.query, login),
                "reply": hide(exchange.reply, login),
            }
            for exchange in answer.logged
        ],
        "facts": [series_text(series) for series in answer.samples[0].series[: answer.facts]],
        "values": list(_values(answer)),
        "rest": list(_rest(answer)),
    }


def _values(answer: ProbeResult) -> Iterator[dict[str, Any]]:
    values = answer.samples[0].values[answer.facts :]
    for source, value in zip(answer.sources, values, strict=True):
        reading = answer.readings.readings[source.places[0].reading]
        raw = source.raw[0]  # no spelling of a switch adds up several
        yield {**_raw_value(reading, raw), "series": series_text(source.series), "value": value}


def _rest(answer: ProbeResult) -> Iterator[dict[str, Any]]:
    """Raw values that became no series: the switch has a preferred one, or the catalogue has no row."""
    used = {(source.places[0].reading, source.raw[0]) for source in answer.sources}
    for position, reading in enumerate(answer.readings.readings):
        for raw in reading.values:
            if (position, raw) not in used:
                yield _raw_value(reading, raw)


def _raw_value(reading: SwitchReading, raw: str) -> dict[str, Any]:
    value = reading.values[raw]
    known = (
        {"raw_value": None, "missing": value.reason}
        if isinstance(value, Unreadable)
        else {"raw_value": value}
    )
    return {"source": reading.source, "object": dict(reading.labels), "raw": raw, **known}
