"""Profiles: the settings that a fabric requires, from the package or from a site's own YAML file.

Omitted keys are not checked. A site's file may extend another profile (`extends: nvidia-lossless`) and change single
keys. An unknown key or an impossible value is an error that names file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from roce_exporter.checks.settings.arithmetic import MAX_DSCP, MAX_PRIORITY, RDMA_MTUS
from roce_exporter.errors import UserError
from roce_exporter.yaml_document import mapping_of, parse_document, plain_value, read_text

EXTENDS = "extends"
FLAG = "--audit.profile"
SUFFIXES = (".yml", ".yaml", ".toml")
"""A name that ends in one of these is a file. TOML is the format of earlier versions, accepted for one minor release."""

Keys = dict[str, tuple[object, int]]
"""By key, its value and its line."""

BUILT_IN = Path(__file__).with_name("profiles")

MAX_DEPTH = 8
"""The longest chain of profiles that extend one another."""


class ProfileError(UserError):
    """An unusable profile; one line that names the file, the line and the fault."""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_pattern(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value) and bool(re.compile(value))
    except (re.error, RecursionError, OverflowError):
        return False


def _one_of(*words: object) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, bool) and value in words


def _within(least: int, most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


_is_priority = _within(0, MAX_PRIORITY)


_DSCP = ("a whole number from 0 to 63", _within(0, MAX_DSCP))
_PRIORITY = ("a whole number from 0 to 7", _is_priority)
_FLAG = ("true or false", lambda value: isinstance(value, bool))
_TEXT = ("a non-empty string", _is_text)


def _key(meaning: str, is_right: Callable[[object], bool], default: object = None) -> Any:
    """A key of a profile, with its allowed values in words and as a predicate."""
    return field(default=default, metadata={"rule": (meaning, is_right)})


@dataclass(frozen=True, slots=True)
class Profile:
    """The required settings. None or an empty string: not checked."""

    name: str
    description: str = _key(*_TEXT, default="")
    trust: str | None = _key("dscp or pcp", _one_of("dscp", "pcp"))
    lossless_priorities: tuple[int, ...] | None = _key(
        "a list of different priorities from 0 to 7",
        lambda value: (
            isinstance(value, list) and all(map(_is_priority, value)) and len(set(value)) == len(value)
        ),
    )
    """The priorities that must have PFC; empty: no priority may have it; None: at most one may have it."""
    roce_dscp: int | None = _key(*_DSCP)
    roce_priority: int | None = _key(*_PRIORITY)
    """The priority of RoCE packets, lossless or not."""
    ecn: bool | None = _key(*_FLAG)
    """Whether ECN is used: packets carry ECT(0), notification and reaction point are on."""
    cnp_dscp: int | None = _key(*_DSCP)
    cnp_priority: int | None = _key(*_PRIORITY)
    cnp_strict: bool | None = _key(*_FLAG)
    """Whether CNPs have strict priority."""
    roce_version: int | None = _key("1 or 2", _one_of(1, 2))
    rdma_mtu: int | None = _key(f"one of {', '.join(map(str, RDMA_MTUS))}", _one_of(*RDMA_MTUS))
    """The minimum, in bytes."""
    global_pause: bool | None = _key(*_FLAG)
    lossless_bandwidth: int | None = _key("a whole number of percent from 0 to 100", _within(0, 100))
    """The minimum share of the lossless traffic class, in percent."""
    cable_metres: int | None = _key("a whole number of metres from 1 to 1000", _within(1, 1000))
    """The longest cable between a host and its switch."""
    pfc_prevention: int | None = _key("a whole number of milliseconds from 80 to 8000", _within(80, 8000))
    """The longest continuous pause in milliseconds before the NIC's own watchdog must stop it."""
    dcbx: str | None = _key("host or firmware", _one_of("host", "firmware"))
    """`host`: tools on the host manage DCB; `firmware`: the NIC negotiates it with the switch."""
    adaptive_retransmission: bool | None = _key(*_FLAG)
    full_pcie: bool | None = _key(*_FLAG)
    consistent: bool | None = _key(*_FLAG)
    """Whether ports with the same driver, model and function must have the same settings, and ports of a switch to hosts."""
    addresses: bool | None = _key(*_FLAG)
    """Whether ports need an address of their own, neighbours that resolve, and paths with room for the RDMA MTU."""
    multi_rail: bool | None = _key(*_FLAG)
    """Whether packets must leave by the port of their source address, on hosts with several."""
    switch_ports: str | None = _key("a regular expression", _is_pattern)
    """A regular expression for the switch ports that are audited; None: those with PFC or with a neighbour."""
    switch_watchdog: bool | None = _key(*_FLAG)
    """Whether switches must have a PFC watchdog on lossless queues that acts."""
    switch_watchdog_most: int | None = _key(
        "a whole number of milliseconds from 100 to 60000", _within(100, 60000)
    )
    """The longest time in milliseconds until the watchdog of a switch acts."""


_RULES = {
    EXTENDS: ("the name of a profile or a .yml file", _is_text),
    "name": _TEXT,
    **{one.name: one.metadata["rule"] for one in fields(Profile) if one.metadata},
}
"""The allowed values of each key, in words and as a predicate."""


def built_in() -> tuple[str, ...]:
    """The names of the profiles in the package."""
    return tuple(sorted(place.stem for place in BUILT_IN.glob("*.yml")))


def load_profile(name: str) -> Profile:
    """The profile with this name, or from this file if the name ends in `.yml` or contains a slash.

    Raises:
        ProfileError: there is no such profile, or it has an unknown key or an impossible value; names file and line.
        DocumentError: the file cannot be read, or is not YAML; names file and line.
    """
    values = _values(name, MAX_DEPTH)
    known = {field.name for field in fields(Profile)}
    return replace(Profile(values.pop("name", name)), **{key: values[key] for key in known & values.keys()})


def _values(name: str, left: int) -> dict[str, Any]:
    keys = _keys(name)
    for key, (value, line) in keys.items():
        if fault := _fault(key, value):
            raise ProfileError(f"profile {name} line {line}: {fault}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, (value, _) in keys.items()
    }
    parent = values.pop(EXTENDS, None)
    if parent is not None:
        if left == 0:
            raise ProfileError(
                f"profile {name}: over {MAX_DEPTH} profiles extend one another; remove the cycle"
            )
        values = _values(parent, left - 1) | {"name": name} | values
    if clash := _contradiction(values):
        contradicting, fault = clash
        line = min((keys[key][1] for key in contradicting if key in keys), default=1)
        raise ProfileError(f"profile {name} line {line}: {fault}")
    return values


def _keys(name: str) -> Keys:
    path = Path(name)
    if "/" not in name and not name.endswith(SUFFIXES):
        if name not in built_in():
            raise ProfileError(
                f"profile {name}: there is no such profile; give one of {', '.join(built_in())}, or a .yml file"
            )
        path = BUILT_IN / f"{name}.yml"
    text = read_text(path, FLAG)
    if name.endswith(".toml"):
        return _toml_keys(name, text)
    return {
        key: (plain_value(entry), entry.line) for key, entry in mapping_of(parse_document(path, text)).items()
    }


def _toml_keys(name: str, text: str) -> Keys:
    import tomllib  # noqa: PLC0415 - only for profiles of earlier versions

    try:
        return {key: (value, _line(text, key)) for key, value in tomllib.loads(text).items()}
    except (ValueError, RecursionError) as error:
        # TOMLDecodeError is a ValueError, and so is the error for a number of thousands of digits.
        raise ProfileError(f"profile {name}: not TOML: {error}") from None


def _line(text: str, key: str) -> int:
    """The line of a key; 0 if the file does not contain it. All keys are on the top level: none is a table."""
    key = re.escape(key)
    found = re.search(rf"""^[ \t]*(\[+[ \t]*)?["']?{key}["']?[ \t]*[=.\]]""", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def _fault(key: str, value: object) -> str:
    if key not in _RULES:
        return f"unknown key {key!r}; keys are {', '.join(sorted(_RULES))}"
    meaning, is_right = _RULES[key]
    return "" if is_right(value) else f"{key} is {value!r:.60}, not {meaning}"


def _contradiction(values: dict[str, Any]) -> tuple[tuple[str, str], str] | None:
    """Two keys that contradict each other, and the reason."""
    lossless, priority, cnp = (
        values.get(key) for key in ("lossless_priorities", "roce_priority", "cnp_priority")
    )
    if lossless and priority is not None and priority not in lossless:
        keys = ("roce_priority", "lossless_priorities")
        return keys, f"roce_priority {priority} is not one of lossless_priorities {list(lossless)}"
    if lossless and cnp in lossless:
        keys = ("cnp_priority", "lossless_priorities")
        return keys, f"cnp_priority {cnp} is lossless: CNPs would wait behind the traffic that they slow down"
    return None
