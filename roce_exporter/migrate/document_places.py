"""The texts of a JSON document with their places in the file, so that one can be replaced and all else stays byte for byte.

JSON as in RFC 8259. The standard library reads the document; its strings are then found again in the file, in the same order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roce_exporter.migrate.promql_tokens import Edit, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Place = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""

MOST_NESTED = 100
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')


class NotJsonError(Exception):
    """A text that is not JSON, or too deep: one phrase that says where and why."""


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A JSON file."""

    text: str
    root: Any
    """The document as Python has it."""
    strings: Mapping[Place, tuple[int, int]]
    """Where each string is, with its quotes. Of keys that are given twice, the last."""

    def replaced(self, texts: Mapping[Place, str]) -> str:
        """The file with some of its strings replaced."""
        return replaced(
            self.text,
            [Edit(*self.strings[place], self._quoted(place, new)) for place, new in texts.items()],
        )

    def _quoted(self, place: Place, new: str) -> str:
        start, end = self.strings[place]
        return json.dumps(new, ensure_ascii=self.text[start:end].isascii())


class _Pairs(list[tuple[str, Any]]):
    """An object as it is in the file, also with a key given twice."""


def read_json(text: str) -> JsonDocument:
    """The document in a text.

    Raises:
        NotJsonError: it is not JSON, or nested deeper than `MOST_NESTED`.
    """
    _check_depth(text)
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from None
    places = {
        place: match.span() for place, match in zip(_in_order(pairs, ()), _STRING.finditer(text), strict=True)
    }
    return JsonDocument(
        text, _plain(pairs), {place[1:]: span for place, span in places.items() if place[0] == VALUE}
    )


VALUE, KEY = "value", "key"


def _in_order(value: Any, place: Place) -> Iterator[Place]:
    """The place of every string, keys too, in the order of the file."""
    if isinstance(value, str):
        yield (VALUE, *place)
    elif isinstance(value, _Pairs):
        for key, one in value:
            yield (KEY, *place, key)
            yield from _in_order(one, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _in_order(one, (*place, number))


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {key: _plain(one) for key, one in value}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _check_depth(text: str) -> None:
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth > MOST_NESTED:
            raise NotJsonError(f"it is nested more than {MOST_NESTED} levels deep")


def strings_of(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every string of a document that is a value, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from strings_of(one, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from strings_of(one, (*place, number))


def at(value: Any, *steps: str | int) -> Any:
    """The value that some keys and numbers lead to; None where one is missing."""
    for step in steps:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def items(value: Any, *steps: str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list that some keys lead to, with their numbers; empty where there is no such list."""
    found = at(value, *steps)
    return (
        [(number, one) for number, one in enumerate(found) if isinstance(one, dict)]
        if isinstance(found, list)
        else []
    )
