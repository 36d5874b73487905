"""Recorded switches: one file per source in `tests/recordings/switch-*.txt`, their readings as text, and replies gone wrong."""

import functools
import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from recorded import files

from roce_exporter.catalog import INDEX
from roce_exporter.net.gnmi_messages import Leaf, path_of
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.readings import LABEL_CHARACTERS, ProbeReply, SwitchReadings, Unreadable
from roce_exporter.switches.targets import SwitchTarget

Path_ = tuple[str | int, ...]

ODD: tuple[Any, ...] = (
    None,
    "",
    "-",
    "null",
    [],
    {},
    [[]],
    [None, 1, {"a": {}}],
    "text",
    -1,
    2**63,
    2**64,
    1.5,
    float("nan"),
    True,
    "NaN",
    "18446744073709551616",
    "1e3",
    "gpu\x00\x1b[31m\n001",
    "x" * 5000,
)
"""What a reply can have in place of anything."""


def recorded(switch: str) -> dict[str, Any]:
    """The replies of a recorded switch by source."""
    return {
        path.removesuffix(".json"): json.loads(text)
        for path, text in files(switch).items()
        if path.endswith(".json")
    }


kept = functools.cache(recorded)
"""The same, parsed once: for those who only read them."""
known_path = functools.cache(path_of)


def target(module: str, priorities: str = "pfc") -> SwitchTarget:
    return SwitchTarget(
        "spine1", module, "https", "spine1.example.com", {"https": 443}, priorities=priorities
    )


def read_recorded(module: Any, folder: str, priorities: str = "pfc", **replaced: Any) -> SwitchReadings:
    """The readings of a recorded switch; a replaced reply of `...` is left out, an exception is a fault."""
    replies = kept(folder) | replaced
    if hasattr(module, "PORT_PATHS"):  # it speaks gNMI
        replies |= {
            source: tuple(Leaf(known_path(path), value) for path, value in replies[source].items())
            for source in module.PATHS
            if isinstance(replies[source], dict)
        }
    faults = {source: str(reply) for source, reply in replies.items() if isinstance(reply, Exception)}
    given = {source: reply for source, reply in replies.items() if reply is not ... and source not in faults}
    return module.read(ProbeReply(given, faults), target(module.MODULE.name, priorities))


def values(found: SwitchReadings, source: str, **labels: str) -> dict[str, Any]:
    """The values of one object of a source."""
    for reading in found.readings:
        if reading.source == source and dict(reading.labels) == labels:
            return {raw: shown(value) for raw, value in reading.values.items()}
    return {}


def differences(plain: set[str], found: set[str], end: str = " ") -> list[str]:
    """The lines that `found` alone has, and the names that `plain` alone has; a name ends at the first colon, or at the last blank."""
    name = (lambda line: line.partition(end)[0]) if end == ":" else (lambda line: line.rpartition(end)[0])
    gone = {name(line) for line in plain} - {name(line) for line in found}
    new, old = sorted(f"+ {line}" for line in found - plain), sorted(f"- {one}" for one in gone)
    return [*new, *old] if end == ":" else [*folded(new, 2), *folded(old, 1)]


def folded(lines: list[str], behind: int) -> Iterator[str]:
    """The lines; series of one port that differ in the last label alone as one. It is the last word but `behind` - 1."""

    def alike(line: str) -> tuple[list[str], list[str]]:
        words = line.split(" ")
        at = len(words) - behind if len(words) > behind + 2 and words[1] != "source" else len(words)
        return words[:at], words[at + 1 :]

    for (head, tail), group in groupby(lines, alike):
        labels = [line.split(" ")[len(head) : len(head) + 1] for line in group]
        yield " ".join((*head, *(one for label in labels for one in label), *tail))


def shown(value: Any) -> Any:
    """A value, or None if it is not readable."""
    return None if isinstance(value, Unreadable) else value


def series(
    found: SwitchReadings, dialect: str, interpreter: Interpreter | None = None
) -> dict[str, float | None]:
    """The series by name and labels, without the prefix of their names and without `device`."""
    samples = (interpreter or Interpreter(dialect)).samples("leaf2", found)
    return {
        " ".join((one.row.name.removeprefix("roce_switch_"), *filter(None, one.labels[1:]))): value
        for one, value in zip(samples.series, samples.values, strict=True)
    }


def as_text(found: SwitchReadings) -> str:
    """One line per value, then one per fact, then the sources."""
    lines = [
        f"{reading.source} {labelled(dict(reading.labels))} {raw} {shown(value)}"
        for reading in found.readings
        for raw, value in reading.values.items()
    ]
    facts = [f"{fact.row.name} {labelled(fact.labels)}" for fact in found.facts]
    sources = [f"{source}: {found.faults.get(source, 'up')}" for source in found.sources]
    return "\n".join((f"name {found.name}", *sorted(lines), *sorted(facts), *sources, ""))


def labelled(labels: Any) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"


def paths(node: Any, above: Path_ = ()) -> Iterator[Path_]:
    """The path of every value in a document."""
    for key, child in (
        node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    ):
        yield (*above, key)
        yield from paths(child, (*above, key))


def changed(document: Any, path: Path_, value: Any) -> Any:
    """A copy in which the value at this path is another one, or with `...` is missing; it shares the rest with the document."""
    key, *below = path
    whole = document.copy()
    if below:
        whole[key] = changed(document[key], tuple(below), value)
    elif value is ...:
        del whole[key]
    else:
        whole[key] = value
    return whole


def damaged(document: Any) -> Iterator[Any]:
    """The document with every value missing once, and replaced by four odd values."""
    for number, path in enumerate(paths(document)):
        for value in (..., *(ODD[(4 * number + step) % len(ODD)] for step in range(4))):
            yield changed(document, path, value)


def assert_sound(found: SwitchReadings, dialect: str) -> None:
    """Values are counters or missing, names have rows, labels are printable and short, faults are one line."""
    for reading in found.readings:
        for raw, value in reading.values.items():
            assert INDEX.claimed(dialect, reading.source, raw), raw
            least = -1000 if raw == "temperature" else 0
            assert isinstance(value, Unreadable) or (
                isinstance(value, int | float) and least <= value < 2**64 - 1
            )
        assert_labels(dict(reading.labels))
    for fact in found.facts:
        assert set(fact.labels) <= set(fact.row.labels)
        assert_labels(fact.labels)
    assert_labels({"name": found.name})
    assert set(found.faults) <= set(found.sources)
    assert not any("\n" in fault or len(fault) > 300 for fault in found.faults.values())


def assert_labels(labels: Any) -> None:
    for value in labels.values():
        assert isinstance(value, str)
        assert value.isprintable()
        assert len(value) <= LABEL_CHARACTERS
