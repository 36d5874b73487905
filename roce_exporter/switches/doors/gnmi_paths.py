"""Paths of gNMI (gNMI specification, section 2.2.2, and its rules for paths as text), and the leaves of replies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Keys = tuple[tuple[str, str], ...]

STEP = re.compile(r"(?P<name>[^/\[\]]+)(?P<keys>(\[[^=\]]+=[^\]]*\])*)(?:/|$)")
KEY = re.compile(r"\[([^=\]]+)=([^\]]*)\]")
MODULE = re.compile(r"[A-Za-z_][\w.-]*:(?=[A-Za-z_])", re.ASCII)
"""The name of a YANG module before a name (RFC 7951, section 4)."""


class Element(NamedTuple):
    """One element of a path: a name, and the keys of a list."""

    name: str
    keys: Keys = ()


Path = tuple[Element, ...]


class Leaf(NamedTuple):
    """A path of a reply and its value, as JSON has it: one leaf of a model, or a document."""

    path: Path
    value: Any


class Spot(NamedTuple):
    """Where a leaf of a model is: the names of its path, and the values of the keys in it, in their order."""

    names: tuple[str, ...]
    keys: Mapping[str, str]


def plain_name(name: str) -> str:
    """A name without the YANG module that defines it: `arista-intf-augments:pfc` is `pfc`."""
    if ":" not in name:
        return name
    return name[found.end() :] if (found := MODULE.match(name)) else name


def path_of(text: str) -> Path:
    """The path that a text such as `interfaces/interface[name=*]/state` writes.

    Raises:
        ValueError: the text is no path: a defect, for paths are constants.
    """
    found, end = [], 0
    while end < len(text):
        step = STEP.match(text, end)
        if step is None:
            raise ValueError(f"{text} is not a path of gNMI")
        found.append(Element(step["name"], tuple((key[1], key[2]) for key in KEY.finditer(step["keys"]))))
        end = step.end()
    return tuple(found)


def path_text(path: Path) -> str:
    """The path as text, for people."""
    return "/".join(name + "".join(f"[{key}={value}]" for key, value in keys) for name, keys in path)


def flat(leaf: Leaf, lists: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Spot, Any]]:
    """The leaves of a model that a reply holds, also where the switch sent a document for a whole subtree.

    `lists` has the keys of the model's lists by their paths, without keys. An entry of a list without its keys is left out.
    """
    names = tuple(plain_name(step.name) for step in leaf.path)
    keys = {plain_name(key): value for step in leaf.path for key, value in step.keys}
    yield from _descend(Spot(names, keys), leaf.value, lists)


def _descend(spot: Spot, value: Any, lists: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Spot, Any]]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _descend(Spot((*spot.names, plain_name(name)), spot.keys), child, lists)
    elif isinstance(value, list) and (keys := lists.get("/".join(spot.names))):
        for entry in value:
            yield from _descend_entry(spot, entry, keys, lists)
    else:
        yield spot, value


def _descend_entry(
    spot: Spot, entry: Any, keys: tuple[str, ...], lists: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Spot, Any]]:
    members = {plain_name(name): child for name, child in entry.items()} if isinstance(entry, dict) else {}
    own = {key: str(members[key]) for key in keys if key in members}
    if len(own) == len(keys):
        yield from _descend(Spot(spot.names, {**spot.keys, **own}), members, lists)
