"""The limits of the rules, by what is measured: those of the alerts and boards, from the file that operators edit, so that they agree.

`alerts/thresholds.yml` is part of the package. An edited copy is given with `--thresholds.file`; what it leaves out is as in the package.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from roce_exporter.words import seconds_of
from roce_exporter.yaml_document import Entry, mapping_of, parse_document, read_text, text_of

FLAG = "--thresholds.file"
NAME = "thresholds.yml"

OF_PROMETHEUS = re.compile(
    r"(?:[0-9]{1,9}(?:ms|[smhdw]))+"
)  # of the times that `seconds_of` reads: rules have the text as it is
ALERT_KEYS = ("severity", "for", "keep_firing_for", "enabled")
"""Keys that an alert can have. No rule of health reads them."""
COLOUR = "severity"  # what boards read of a limit

Thresholds = Mapping[str, Mapping[str, float]]
"""By what is measured, and key. Times are in seconds."""


def load_thresholds(path: str) -> Thresholds:
    """The limits of an operator's file.

    Raises:
        DocumentError: it cannot be read, or has a name that the file of the package does not have; one line with its place.
    """
    place, shipped = Path(path), _shipped()
    sections = _sections(place, read_text(place, FLAG))
    mapping_of(sections.get("shared"), mapping_of(shipped["shared"]).keys())
    for entry in mapping_of(sections.get("alerts"), mapping_of(shipped["alerts"]).keys()).values():
        mapping_of(entry, ALERT_KEYS)
    known = mapping_of(shipped["limits"])
    limits = dict(shipped_thresholds())
    for name, entry in mapping_of(sections.get("limits"), known.keys()).items():
        keys = mapping_of(entry, mapping_of(known[name]).keys())
        limits[name] = {**limits[name], **(given := _numbers(keys))}
        for key in limits[name].keys() & keys.keys():
            least = sys.float_info.min if "window" in key else 0.0
            if (
                not least <= given.get(key, math.nan) < math.inf
            ):  # no value is above NaN, none is within no time
                keys[key].refuse("is no number of 0 or more and no time such as 10m, or a window of 0")
    return limits


@cache
def shipped_thresholds() -> Thresholds:
    """The limits of the package."""
    return {name: _numbers(mapping_of(entry)) for name, entry in mapping_of(_shipped()["limits"]).items()}


def sum_of(limits: Thresholds) -> str:
    """The sum that identifies these limits, equal to that of the rules which `alerts/generate.py` writes from them."""
    numbers = ((f"{name}.{key}", number) for name, keys in limits.items() for key, number in keys.items())
    lines = sorted(f"{name}={number:.10f}".rstrip("0").rstrip(".") for name, number in numbers)
    return hashlib.md5("\n".join(lines).encode(), usedforsecurity=False).hexdigest()


def shipped_alerts(name: str) -> Path:
    """A file or folder of `alerts/`, in the package or in a checkout."""
    package = Path(__file__).parents[1]
    return next(place for place in (package, package.parent) if (place / "alerts").is_dir()) / "alerts" / name


def _shipped() -> dict[str, Entry]:
    return _sections(Path(NAME), shipped_alerts(NAME).read_text(encoding="utf-8"))


def _sections(place: Path, text: str) -> dict[str, Entry]:
    return mapping_of(parse_document(place, text), ("shared", "limits", "alerts"))


def _numbers(keys: Mapping[str, Entry]) -> dict[str, float]:
    """The numbers and times of a limit, in seconds."""
    read = {key: number_of(text_of(entry)) for key, entry in keys.items() if key != COLOUR}
    return {key: number for key, number in read.items() if number is not None}


def number_of(text: str) -> float | None:
    """A number, or a time as in Prometheus in seconds; None for other texts."""
    try:
        return float(text)
    except ValueError:
        return seconds_of(text) if OF_PROMETHEUS.fullmatch(text) else None
