"""The text of one set of series, kept from one scrape to the next: only values that are another object are written again.

Every scrape has values of its own. The text of a value is kept for as long as the value is the same object, which cannot have
changed; most counters of an idle port are. Names and labels are text already.
"""

from __future__ import annotations

from itertools import compress, count
from operator import is_not
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.normalise.series import Value

Part = tuple["Value", ...]
"""The values of one part of a collection: a device, say."""

_UNWRITTEN: Value = float("nan")
"""No value of a collection is this object."""


class FilledLines:
    """Lines whose values are filled in."""

    def __init__(self, starts: Sequence[str], places: Sequence[Sequence[int]], parts: Sequence[Part]) -> None:
        """`starts` are the lines up to their values. `places` has, per part, the line of each value.

        A value that is None in `parts` has no line, in this and all further fillings.
        """
        self._texts = [text for start in starts for text in (start, "")]
        self._places = places
        self._parts: list[Part] = [
            tuple([None if value is None else _UNWRITTEN for value in part]) for part in parts
        ]

    def fill(self, parts: Sequence[Part]) -> bytes:
        """The lines with these values."""
        for number, (part, last) in enumerate(zip(parts, self._parts, strict=True)):
            if part is not last:
                self._write(number, part, last)
        return "".join(self._texts).encode()

    def _write(self, number: int, part: Part, last: Part) -> None:
        texts, places = self._texts, self._places[number]
        if len(part) != len(last):
            raise ValueError(f"{len(part)} values for {len(last)} series")
        for position in compress(count(), map(is_not, part, last)):
            # The shortest text that reads back as the same float, and the exact integer.
            texts[2 * places[position] + 1] = f"{part[position]!a}\n"
        self._parts[number] = part
