"""Histories for tests of the verdict: written by hand, or taken from a simulated host with a clock that the test moves."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import pytest
from _pytest.mark.structures import ParameterSet

from roce_exporter.catalog import INDEX
from roce_exporter.checks.finding import Finding, Report
from roce_exporter.view.host_view import History, TimedSamples

ROWS = INDEX.named
DEFAULTS = {
    "device": "mlx5_0",
    "port": "1",
    "netdev": "eth0",
    "priority": "3",
    "role": "port",
    "link_layer": "Ethernet",
}


def labels_of(name: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """The values of the row's labels: those given, a default, or empty."""
    row = ROWS[name]
    assert not set(given) - set(row.labels), f"{name} has no label {set(given) - set(row.labels)}"
    return tuple(given.get(label, DEFAULTS.get(label, "")) for label in row.labels)


def history(
    series: Mapping[str, object], *, seconds: float = 60.0, moments: int = 2, up: bool = True
) -> History:
    """A history of one port.

    A key is a row's name, with labels in braces: `roce_x{priority=3}`. A value is one number for all moments, or one per moment;
    None: absent then.
    """
    given = {
        "roce_device_info": 1.0,
        "roce_port_info": 1.0,
        **({"roce_port_up": 1.0} if up else {}),
        **series,
    }
    found: list[dict[str, dict[tuple[str, ...], float]]] = [{} for _ in range(moments)]
    for key, values in given.items():
        name, _, rest = key.rstrip("}").partition("{")
        labels = labels_of(name, dict(part.split("=") for part in rest.split(",") if part))
        for place in range(moments):
            value = values[place] if isinstance(values, list | tuple) else values
            if value is not None:
                found[place].setdefault(name, {})[labels] = float(value)
    step = seconds / (moments - 1) if moments > 1 else 0.0
    return tuple(TimedSamples(1000.0 + step * place, values) for place, values in enumerate(found))


def causes(diagnosis: Report) -> list[str]:
    """The names of the causes found, the worst first."""
    return [fault.check for fault in diagnosis.findings]


def only(diagnosis: Report) -> Finding:
    """The one finding."""
    assert len(diagnosis.findings) == 1, causes(diagnosis)
    return diagnosis.findings[0]


def series_of(text: str) -> dict[str, object]:
    """The series of a history from `NAME VALUE...; NAME VALUE...`: names without `roce_`, one value or one per moment, `-` where it is absent."""
    found: dict[str, object] = {}
    for part in text.split(";"):
        name, *texts = part.split()
        values = [None if one == "-" else float(one) for one in texts]
        found[f"roce_{name}"] = values if len(values) > 1 else values[0]
    return found


def rows_of(table: str) -> list[ParameterSet]:
    """Parameters of a test from lines `TITLE = SERIES => FINDING | FINDING`: the series, and the findings as in `shown`."""
    rows = []
    for line in table.strip().splitlines():
        title, _, rest = line.partition(" = ")
        series, _, found = rest.partition(" =>")
        wanted = [one.strip() for one in found.split(" | ") if one]
        rows.append(pytest.param(series_of(series), wanted, id=title))
    return rows


def shown(diagnosis: Report, wanted: Sequence[str]) -> list[str]:
    """The findings as `CAUSE@SIDE: EVIDENCE: ...: but AGAINST`, each with as much of it as the one wanted has."""
    found = []
    for one, want in zip_longest(diagnosis.findings, wanted, fillvalue=""):
        if isinstance(one, Finding):
            name = f"{one.check}@{one.side}" if "@" in want.partition(":")[0] else one.check
            said = (*one.evidence, *(f"but {text}" for text in one.against)) if ": " in want else ()
            found.append(": ".join((name, *said)))
    return found
