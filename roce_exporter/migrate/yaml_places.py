"""The texts of a YAML file with their places, so that one can be replaced and comments, quotes and line breaks stay.

A new text is written in the style of the old one where YAML allows that, and in double quotes otherwise. The result is read again:
what is not exactly as intended is never written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from roce_exporter.migrate.promql_tokens import Edit, replaced
from roce_exporter.yaml_document import DocumentError, parse_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from roce_exporter.migrate.document_places import Place

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
    """The documents of a text that was read from `path`.

    Raises:
        DocumentError: it is not YAML, has an alias, or is too deep.
    """
    roots = [entry.node for entry in parse_documents(path, text)]
    scalars = dict(pair for number, root in enumerate(roots) for pair in _scalars(root, (number,)))
    return YamlDocument(path, text, tuple(map(_plain, roots)), scalars)


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


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value) for value in node.value]
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
    for kind, first, last, new_first, new_last in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
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
