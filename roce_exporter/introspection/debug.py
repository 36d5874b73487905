"""One observation in detail: every source and its state, every raw name with its series and value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roce_exporter.exporter import Observation
    from roce_exporter.model import DeviceReadings, SourceState
    from roce_exporter.normalise.normaliser import Normaliser, Plan
    from roce_exporter.normalise.series import Series, Value

OF_STATE = ("seconds", "error", "errors_total", "unreadable", "quarantined")


def snapshot_document(
    observation: Observation, normaliser: Normaliser, more: Sequence[SourceState] = ()
) -> dict[str, Any]:
    """The observation as JSON: `sources`, `devices` and, per device, `values` (raw name, series, value) and `unmapped`.

    `more` are the states of sources that are read between collections.
    """
    snapshot = observation.snapshot
    return {
        "seconds": snapshot.seconds,
        "unfinished": snapshot.unfinished,
        "sources": [
            {
                **{name: getattr(state, name) for name in ("source", "device", "netdev")},
                "state": {True: "up", False: "down", None: "absent"}[state.up],
                **{name: getattr(state, name) for name in OF_STATE},
            }
            for state in (*snapshot.states, *more)
        ],
        "devices": [
            {
                "device": found.device.name,
                "driver": found.device.driver,
                "dialect": found.device.dialect,
                "values": list(_values(found, normaliser.plans[found.device.name], samples.values)),
                "lost": [
                    {"source": reading.source, "port": reading.port, "raw": loss.name, "reason": loss.reason}
                    for reading in found.readings
                    for loss in reading.losses
                ],
                "unmapped": [
                    {"source": source, "port": port, "raw": raw}
                    for source, port, raw in normaliser.plans[found.device.name].unmapped
                ],
            }
            for found, samples in zip(snapshot.devices, observation.samples, strict=False)
        ],
    }


def _values(found: DeviceReadings, plan: Plan, values: tuple[Value, ...]) -> Iterator[dict[str, Any]]:
    facts = len(plan.constant)
    for source, value in zip(plan.sources, values[facts:], strict=True):
        raw = {
            name: found.readings[place.reading].values[place.position]
            for name, place in zip(source.raw, source.places, strict=True)
        }
        yield {
            "source": source.spelling.source,
            "raw": raw,
            "series": series_text(source.series),
            "value": value,
        }


def series_text(series: Series) -> str:
    """A series as PromQL selects it: `roce_cnp_sent_total{device="mlx5_0",port="1"}`."""
    pairs = zip(series.row.labels, series.labels, strict=True)
    labels = ",".join(f'{name}="{value}"' for name, value in pairs if value)
    name = series.row.name + series.suffix
    return f"{name}{{{labels}}}" if labels else name
