"""A YAML file as entries with their file and line, for the configuration file and the web config file.

YAML 1.1 as PyYAML composes it (https://yaml.org/spec/1.1/), without expensive or ambiguous parts: no aliases, no duplicate
keys, a limited size and a limited depth. The two readers define the meaning of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml

from roce_exporter.errors import UserError

T = TypeVar("T")

_PLAIN = yaml.constructor.SafeConstructor()

# A web config file with a thousand users is a third of this, and PyYAML takes two seconds for all of it.
MAX_BYTES = 256 << 10

# The deepest key of either file is at depth 3.
MAX_DEPTH = 16
TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"


class DocumentError(UserError):
    """An invalid file: one line that names the file, the line, the key and the remedy."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the file with its value, still a YAML node. The whole file is the entry without a key."""

    file: Path
    key: str
    line: int
    node: yaml.Node

    def refuse(self, problem: str) -> NoReturn:
        """Raise `DocumentError` with this problem and its remedy."""
        raise _refusal(f"{self.file}:{self.line}: {self.key or 'the file'}: {problem}")


def _refusal(problem: str) -> DocumentError:
    return DocumentError(" ".join(problem.split()))  # a key may have line ends in it


class _Composer(yaml.SafeLoader):
    """PyYAML composes recursively, so that nested brackets could exhaust the stack."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            # With aliases a node can contain itself, and a short file can expand to a very long one.
            self._refuse("aliases are not supported, write the value out")
        if self._depth == MAX_DEPTH:
            self._refuse(TOO_DEEP)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 - PyYAML's name
        # The scanner is up to 1024 characters ahead, and checks all open brackets for each character.
        if self.flow_level == MAX_DEPTH:
            raise _error(TOO_DEEP, self.get_mark())
        super().fetch_flow_collection_start(TokenClass)

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        # Possible by escapes: half of a UTF-16 pair, or NUL. No file name and no header can contain them.
        if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in node.value):
            raise _error("an escape for NUL or for half of a character", node.start_mark)
        return node

    def _refuse(self, problem: str) -> NoReturn:
        raise _error(problem, self.peek_event().start_mark)  # type: ignore[no-untyped-call]  # the stubs leave it out


def _error(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def read_text(path: Path, flag: str) -> str:
    """The text of a file given by `flag`. Raises DocumentError: it cannot be read, is larger than `MAX_BYTES`, or is not UTF-8."""
    return decode_text(path, read_file(path, MAX_BYTES), flag)


def read_file(path: Path, limit: int) -> bytes | OSError | ValueError:
    """The first `limit` + 1 bytes of a file, so that a larger one is recognised, or the error of reading it."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        return error


def decode_text(path: Path, content: bytes | OSError | ValueError, flag: str) -> str:
    """The text of a file that `flag` names, from what `read_file` returned for it.

    Raises:
        DocumentError: it could not be read, is larger than `MAX_BYTES`, or is not UTF-8.
    """
    problem = f"it is larger than {MAX_BYTES >> 10} KiB"
    if isinstance(content, OSError):
        problem = str(content.strerror)
    elif isinstance(content, ValueError):
        problem = "it is not a valid path"
    elif len(content) <= MAX_BYTES:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            problem = "it is not UTF-8 text"
    raise _refusal(f"{path}: cannot be read: {problem}; check {flag}")


def parse_document(path: Path, text: str) -> Entry | None:
    """The whole document in `text`, which was read from `path`; None for an empty file.

    Raises:
        DocumentError: it is not YAML, has a second document or an alias, or is nested deeper than `MAX_DEPTH`.
    """
    root = _composed(path, lambda: yaml.compose(text, Loader=_Composer))
    return Entry(path, "", root.start_mark.line + 1, root) if root else None


def parse_documents(path: Path, text: str) -> list[Entry]:
    """All documents in `text`, which was read from `path`.

    Raises:
        DocumentError: it is not YAML, has an alias, or is nested deeper than `MAX_DEPTH`.
    """
    roots = _composed(path, lambda: list(yaml.compose_all(text, Loader=_Composer)))
    return [Entry(path, "", root.start_mark.line + 1, root) for root in roots]


def _composed(path: Path, compose: Callable[[], T]) -> T:
    try:
        return compose()
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML passes on errors of `chr` and `int` for too large numbers in an escape or a version.
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or getattr(error, "reason", "it cannot be parsed")
        raise _refusal(f"{where}: is not YAML: {problem}; correct it") from None


def mapping_of(entry: Entry | None, known: Collection[str] = ()) -> dict[str, Entry]:
    """The keys of a mapping; an empty dictionary for no entry or an empty value. An empty `known` accepts any key.

    Raises:
        DocumentError: it is not a mapping, or a key is unknown or given twice.
    """
    if entry is None or is_null(entry):
        return {}
    if not isinstance(entry.node, yaml.MappingNode):
        entry.refuse("is not a mapping; write one `key: value` per line")
    found: dict[str, Entry] = {}
    for key, node in entry.node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        value = Entry(entry.file, f"{entry.key}.{name}".removeprefix("."), key.start_mark.line + 1, node)
        if known and name not in known:
            value.refuse(f"is not a valid key; known here: {', '.join(known)}")
        if name in found:
            value.refuse("is given twice; keep one")
        found[name] = value
    return found


def is_null(entry: Entry) -> bool:
    """Whether the key has no value: nothing, `~` or `null`."""
    return isinstance(entry.node, yaml.ScalarNode) and entry.node.tag == "tag:yaml.org,2002:null"


def text_of(entry: Entry) -> str:
    """The single value of a key, as it is written in the file. Raises DocumentError: it has no value, or it is a list or a mapping."""
    if not isinstance(entry.node, yaml.ScalarNode) or is_null(entry):
        entry.refuse("has no single value; give it one, or remove the key")
    return str(entry.node.value)


def plain_value(entry: Entry) -> object:
    """The value of a key as numbers, texts, true or false, and lists and mappings of these.

    Raises:
        DocumentError: it is a date, a number of thousands of digits, or has a tag.
    """
    try:
        return _PLAIN.construct_object(entry.node, deep=True)
    except (yaml.YAMLError, ValueError, LookupError, RecursionError, OverflowError):
        entry.refuse("is not a plain value; write a number, a text, true or false, or a list")


def choice_of(entry: Entry, choices: Collection[str]) -> str:
    """The single value of a key that allows these only. Raises DocumentError: it is another value."""
    value = text_of(entry)
    if value not in choices:
        entry.refuse(f"{value!r} is not supported; choose from {', '.join(choices)}")
    return value


def path_of(entry: Entry) -> Path:
    """The path of a file, which is relative to the file with the key. Raises DocumentError: it cannot be read."""
    path = entry.file.parent / text_of(entry)
    try:
        with path.open("rb"):
            return path
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid path"
        entry.refuse(f"{path} cannot be read: {reason}; correct the path or its permissions")


def items_of(entry: Entry | None) -> list[Entry]:
    """The items of a list, each with its own line; an empty list for no entry. Raises DocumentError: it is not a list."""
    if entry is None:
        return []
    if not isinstance(entry.node, yaml.SequenceNode):
        entry.refuse("is not a list; write `- value` per line")
    return [replace(entry, line=node.start_mark.line + 1, node=node) for node in entry.node.value]


def is_mapping(entry: Entry) -> bool:
    """Whether the value has keys."""
    return isinstance(entry.node, yaml.MappingNode)


def values_of(entry: Entry) -> list[Entry]:
    """The items of a list, or the single value."""
    return items_of(entry) if isinstance(entry.node, yaml.SequenceNode) else [entry]
