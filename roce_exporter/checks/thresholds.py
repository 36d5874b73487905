"""The limits of the rules: those of the alerts, from the file that operators edit, so that a finding and an alert agree.

`alerts/thresholds.yml` is part of the package. An edited copy is given with `--thresholds.file`; what it leaves out is as in the package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from roce_exporter.yaml_document import Entry, mapping_of, parse_document, read_text, text_of

FLAG = "--thresholds.file"
NAME = "thresholds.yml"
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
DURATION = re.compile(r"(?:[0-9]+(?:ms|[smhdw]))+")

COMMON = ("severity", "for", "keep_firing_for", "enabled")
"""Keys that every alert can have, and that no rule reads."""

Thresholds = Mapping[str, Mapping[str, float]]
"""By alert and key. Times are in seconds."""


def load_thresholds(path: str) -> Thresholds:
    """The limits of an operator's file.

    Raises:
        DocumentError: it cannot be read, or has a name that the file of the package does not have; one line with its place.
    """
    place, shipped = Path(path), _shipped()
    sections = _sections(place, read_text(place, FLAG))
    mapping_of(sections.get("shared"), mapping_of(shipped["shared"]).keys())
    known = mapping_of(shipped["alerts"])
    limits = dict(shipped_thresholds())
    for alert, entry in mapping_of(sections.get("alerts"), known.keys()).items():
        keys = mapping_of(entry, {**dict.fromkeys(COMMON), **mapping_of(known[alert])}.keys())
        limits[alert] = {**limits[alert], **_numbers(keys)}
    return limits


@cache
def shipped_thresholds() -> Thresholds:
    """The limits of the package."""
    return {alert: _numbers(mapping_of(entry)) for alert, entry in mapping_of(_shipped()["alerts"]).items()}


def _shipped() -> dict[str, Entry]:
    package = resources.files("roce_exporter")
    shipped = package.joinpath("alerts", NAME)
    if not shipped.is_file():
        # a checkout
        shipped = Path(str(package)).parent / "alerts" / NAME
    return _sections(Path(NAME), shipped.read_text(encoding="utf-8"))


def _sections(place: Path, text: str) -> dict[str, Entry]:
    return mapping_of(parse_document(place, text), ("shared", "alerts"))


def _numbers(keys: Mapping[str, Entry]) -> dict[str, float]:
    """The numbers and times of an alert, in seconds."""
    found: dict[str, float] = {}
    for key, entry in keys.items():
        if key not in COMMON and (number := _number(text_of(entry))) is not None:
            found[key] = number
    return found


def _number(text: str) -> float | None:
    if DURATION.fullmatch(text):
        return sum(int(count) * UNITS[unit] for count, unit in re.findall(r"([0-9]+)(ms|[smhdw])", text))
    try:
        return float(text)
    except ValueError:
        return None
