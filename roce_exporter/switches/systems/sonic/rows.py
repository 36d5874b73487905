"""Rows of SONiC's CONFIG_DB by the object that they configure (sonic-buildimage `src/sonic-yang-models`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.switches.systems.sonic.tables import Fields

RANGE = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", re.ASCII)
UNSET = frozenset({"", "NULL", "null", "None"})
"""How a reference says that it refers to nothing; `NULL` in a dynamic buffer model, which then chooses the profile."""

NOTHING: Fields = {}


@dataclass(frozen=True, slots=True)
class SonicRows:
    """The rows of one namespace. Tables with names of their own (profiles, pools, maps) stay in `named`, by whole key."""

    ports: dict[str, Fields] = field(default_factory=dict)
    qos: dict[str, Fields] = field(default_factory=dict)
    """PORT_QOS_MAP by port."""
    watchdogs: dict[str, Fields] = field(default_factory=dict)
    """PFC_WD by port; `GLOBAL` is in `named`."""
    queues: dict[tuple[str, int], Fields] = field(default_factory=dict)
    """QUEUE by port and queue."""
    groups: dict[tuple[str, int], Fields] = field(default_factory=dict)
    """BUFFER_PG by port and priority group."""
    chosen_groups: dict[tuple[str, int], Fields] = field(default_factory=dict)
    """BUFFER_PG_TABLE of APPL_DB: the profile that a dynamic buffer model has chosen."""
    named: dict[str, Fields] = field(default_factory=dict)

    def get(self, key: str) -> Fields:
        """The row of a table with names of its own; empty if there is no such row."""
        return self.named.get(key, NOTHING)


def rows_of(configuration: Mapping[str, Fields]) -> SonicRows:
    """The rows by object. A key can list ports and have a range: `QUEUE|Ethernet0,Ethernet4|3-4`."""
    rows = SonicRows()
    of_port = {"PORT": rows.ports, "PORT_QOS_MAP": rows.qos, "PFC_WD": rows.watchdogs}
    of_number = {"QUEUE": rows.queues, "BUFFER_PG": rows.groups, "BUFFER_PG_TABLE": rows.chosen_groups}
    for key, fields in configuration.items():
        table, separator, rest = key.partition(":" if key.startswith("BUFFER_PG_TABLE:") else "|")
        if table in of_port and rest != "GLOBAL":
            of_port[table].update(dict.fromkeys(rest.split(","), fields))
        elif table in of_number:
            ports, _, numbers = rest.rpartition(separator)
            for number in numbers_of(numbers):
                of_number[table].update({(port, number): fields for port in ports.split(",")})
        else:
            rows.named[key] = fields
    return rows


def numbers_of(text: str) -> range:
    """The queues or priority groups of a key: `3` or `3-4`; empty if it is neither."""
    found = RANGE.fullmatch(text)
    if found is None:
        return range(0)
    first = int(found[1])
    return range(first, int(found[2] or first) + 1)


def ranges_with(numbers: frozenset[int]) -> Iterator[str]:
    """Every way in which a key can include one of the numbers: `3`, `4`, `0-3`, ..., `3-4`, ..., `4-7`."""
    last = max((7, *numbers))
    for first in range(last + 1):
        for end in range(first, last + 1):
            if not numbers.isdisjoint(range(first, end + 1)):
                yield str(first) if first == end else f"{first}-{end}"


def reference(text: str | None) -> str:
    """The name in a reference to a row: `[WRED_PROFILE|name]` until SONiC 202012, `name` since; empty if unset."""
    name = (text or "").strip()
    if name.startswith("[") and name.endswith("]"):
        name = re.split(r"[|:]", name[1:-1], maxsplit=1)[-1]
    return "" if name in UNSET else name
