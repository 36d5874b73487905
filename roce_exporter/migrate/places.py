"""The texts of a JSON or YAML file with their places, so that one can be replaced and all else stays byte for byte.

JSON as in RFC 8259: the standard library reads the document; its strings are then found again in the file, in the same order. In YAML
a new text is written in the style of the old one where YAML allows that, and in double quotes otherwise. The result is read again:
what is not exactly as intended is never written.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from roce_exporter.migrate.promql import Edit, replaced
from roce_exporter.yaml_document import DocumentError, parse_documents

Place = tuple[str | int, ...]  # the keys and numbers that lead to a value

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
        edits = []
        for place, new in texts.items():
            start, end = self.strings[place]
            edits.append(Edit(start, end, json.dumps(new, ensure_ascii=self.text[start:end].isascii())))
        return replaced(self.text, edits)


class _Pairs(list[tuple[str, Any]]):
    """An object as it is in the file, also with a key given twice."""


def read_json(text: str) -> JsonDocument:
    """The document in a text. Raises NotJsonError: it is not JSON, or nested deeper than `MOST_NESTED`."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth > MOST_NESTED:
            raise NotJsonError(f"it is nested more than {MOST_NESTED} levels deep")
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from None
    found = zip(_in_order(pairs, ()), _STRING.finditer(text), strict=True)
    places = {place: match.span() for place, match in found if place is not None}
    return JsonDocument(text, _plain_json(pairs), places)


def _in_order(value: Any, place: Place) -> Iterator[Place | None]:
    """The place of every string in the order of the file; None for a key."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, _Pairs):
        for key, one in value:
            yield None
            yield from _in_order(one, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _in_order(one, (*place, number))


def _plain_json(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {key: _plain_json(one) for key, one in value}
    return [_plain_json(one) for one in value] if isinstance(value, list) else value


def strings_of(value: Any, place: Place = (), *, keys: bool = False) -> Iterator[tuple[Place, str]]:
    """Every string of a document that is a value, with its place; with `keys` every key, too."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, one in value.items():
            if keys:
                yield (*place, key), key
            yield from strings_of(one, (*place, key), keys=keys)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from strings_of(one, (*place, number), keys=keys)


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
    listed = found if isinstance(found, list) else []
    return [(number, one) for number, one in enumerate(listed) if isinstance(one, dict)]


NULL = "tag:yaml.org,2002:null"
_WORD = re.compile(r"\S+")


class Scalar(NamedTuple):
    """A single value of the file."""

    node: yaml.ScalarNode
    inline: bool
    """Whether it is between brackets, `{expr: up}`, where brackets and commas need quotes."""

    @property
    def value(self) -> str:
        """The text, as YAML means it."""
        return str(self.node.value)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A YAML file, which may have several documents."""

    path: Path
    text: str
    roots: tuple[Any, ...]
    """The documents; every single value is a text."""
    scalars: Mapping[Place, Scalar]
    """Where each text is. A place begins with the number of the document."""

    def replaced(self, texts: Mapping[Place, str]) -> str | None:
        """The file with some of its texts replaced; None if that cannot be written."""
        wanted = {place: one.value for place, one in self.scalars.items()} | dict(texts)
        quoted: set[Place] = set()
        while wrong := self._wrong(new := self._written(texts, quoted), wanted):
            if texts.keys() <= quoted:
                return None
            quoted |= (wrong & texts.keys()) - quoted or texts.keys()
        return new

    def _wrong(self, text: str, wanted: Mapping[Place, str]) -> set[Place]:
        """The places where a text is not as it should be; all if it is not YAML."""
        try:
            again = read_yaml(self.path, text).scalars
        except DocumentError:
            return set(wanted)
        return {
            place
            for place in {*wanted, *again}
            if place not in again or again[place].value != wanted.get(place)
        }

    def _written(self, texts: Mapping[Place, str], quoted: set[Place]) -> str:
        edits = []
        for place, new in texts.items():
            one = self.scalars[place]
            start, end = one.node.start_mark.index, one.node.end_mark.index
            write = _in_quotes if place in quoted else _in_style
            edits.append(Edit(start, end, write(self.text[start:end], one, new)))
        return replaced(self.text, edits)


def read_yaml(path: Path, text: str) -> YamlDocument:
    """The documents of a text that was read from `path`. Raises DocumentError: it is not YAML, has an alias, or is too deep."""
    roots = [entry.node for entry in parse_documents(path, text)]
    scalars = dict(pair for number, root in enumerate(roots) for pair in _scalars(root, (number,)))
    return YamlDocument(path, text, tuple(map(_plain_yaml, roots)), scalars)


def _scalars(node: yaml.Node, place: Place, *, inline: bool = False) -> Iterator[tuple[Place, Scalar]]:
    if isinstance(node, yaml.ScalarNode):
        yield place, Scalar(node, inline)
        return
    inline = inline or bool(getattr(node, "flow_style", False))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(value, (*place, str(key.value)), inline=inline)
    else:
        for number, value in enumerate(node.value):
            yield from _scalars(value, (*place, number), inline=inline)


def _plain_yaml(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain_yaml(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain_yaml(value) for value in node.value]
    return None if node.tag == NULL else node.value


def _in_style(raw: str, old: Scalar, new: str) -> str:
    """The new text as the old one is written: word by word, so that line breaks and indentation stay."""
    style = old.node.style
    if style == "'" and "\n" not in raw:
        return "'" + new.replace("'", "''") + "'"
    if (style == '"' and "\n" not in raw) or (style is None and old.inline):
        return _in_quotes(raw, old, new)
    begin = raw.index("\n") if style in {"|", ">"} else 0
    words = list(_WORD.finditer(raw, begin))
    before = _WORD.findall(old.value)
    if [word[0] for word in words] != before:
        return _in_quotes(raw, old, new)
    return replaced(raw, list(_word_edits(words, before, _WORD.findall(new))))


def _word_edits(words: list[re.Match[str]], old: list[str], new: list[str]) -> Iterator[Edit]:
    if len(old) == len(new):  # names alone: no search in what may be long
        yield from (Edit(*words[n].span(), new[n]) for n, word in enumerate(old) if word != new[n])
        return
    for kind, first, last, new_first, new_last in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "insert":
            place = words[first - 1].end() if first else words[0].start()
            text = " ".join(new[new_first:new_last])
            yield Edit(place, place, f" {text}" if first else f"{text} ")
        elif kind == "delete":
            yield Edit(words[first - 1].end() if first else words[0].start(), words[last - 1].end(), "")
        elif kind == "replace":
            # One by one, so that line breaks between them stay; the last one takes the rest.
            shared = min(last - first, new_last - new_first)
            for number in range(shared - 1):
                yield Edit(*words[first + number].span(), new[new_first + number])
            start = words[first + shared - 1].start()
            yield Edit(start, words[last - 1].end(), " ".join(new[new_first + shared - 1 : new_last]))


def _in_quotes(raw: str, _: Scalar, new: str) -> str:
    return json.dumps(new, ensure_ascii=False) + raw[len(raw.rstrip()) :]
