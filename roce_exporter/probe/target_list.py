"""The list of ports that can be probed: documents of Prometheus' service discovery, or names of DNS.

A document is that of `file_sd` and `http_sd`: a list of `{"targets": ["ADDRESS[:PORT]"], "labels": {"rack": …, "rail": …, "host": …}}`.
Every host must read the same list, because each computes the plan of all from it.
"""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from roce_exporter.errors import UserError
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.probe.stamp import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_BYTES = 32 << 20
"""A list of 100,000 ports has 10 MB."""
MOST_TARGETS = 200_000
LONGEST_LABEL = 253
ROCE_PORT = 4791
LARGEST_PORT = 65535

ADDRESS = re.compile(
    r"\[(?P<six>[^\]]{1,64})\](?::(?P<six_port>[0-9]{1,5}))?|(?P<four>[0-9.]{7,15})(?::(?P<port>[0-9]{1,5}))?"
)


class TargetsError(UserError):
    """A list of targets cannot be used; one line that names the list and the place."""


def read_file(path: str) -> tuple[ProbeTarget, ...]:
    """The targets of a file, which is JSON, or YAML if its name ends in .yml or .yaml.

    Raises:
        TargetsError: the file cannot be read, or is no such list.
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TargetsError(f"{path}: {error.strerror or error}") from None
    return read_document(path, content, is_yaml=place.suffix in (".yml", ".yaml"))


def read_document(name: str, content: bytes, *, is_yaml: bool = False) -> tuple[ProbeTarget, ...]:
    """The targets of a document, in the order of the ring; `name` is for messages.

    Raises:
        TargetsError: it is too long, no JSON or YAML, or no such list.
    """
    if len(content) > MOST_BYTES:
        raise TargetsError(
            f"{name}: has more than {MOST_BYTES >> 20} MiB; split the fabric into several lists"
        )
    try:
        document: Any = yaml.safe_load(content) if is_yaml else json.loads(content)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise TargetsError(
            f"{name}: is no {'YAML' if is_yaml else 'JSON'}: {' '.join(str(error).split())[:200]}"
        ) from None
    if not isinstance(document, list):
        raise TargetsError(
            f"{name}: must be a list of groups with `targets` and `labels`, as for Prometheus' file_sd"
        )
    found = dict.fromkeys(
        one for number, group in enumerate(document) for one in _group(f"{name}: group {number}", group)
    )
    if len(found) > MOST_TARGETS:
        raise TargetsError(f"{name}: has more than {MOST_TARGETS} targets")
    return tuple(found)


def _group(place: str, group: object) -> Iterator[ProbeTarget]:
    if not isinstance(group, dict):
        raise TargetsError(f"{place}: must have `targets` and may have `labels`")
    targets, labels = group.get("targets", []), group.get("labels") or {}
    if not isinstance(targets, list) or not isinstance(labels, dict):
        raise TargetsError(f"{place}: `targets` must be a list and `labels` a mapping")
    rack, host, rail = (_label(place, labels, name) for name in ("rack", "host", "rail"))
    for text in targets:
        address, port = _address(place, text)
        yield ProbeTarget(rack, host, rail, address, port)


def _label(place: str, labels: dict[object, object], name: str) -> str:
    value = labels.get(name, "")
    if isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str) or len(value) > LONGEST_LABEL or not value.isprintable():
        raise TargetsError(
            f"{place}: label {name} must be a printable text of at most {LONGEST_LABEL} characters"
        )
    return value


def _address(place: str, text: object) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    match = ADDRESS.fullmatch(text) if isinstance(text, str) else None
    host = (match["six"] or match["four"]) if match else text if isinstance(text, str) else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise TargetsError(
            f"{place}: {str(text)[:80]!r} is no address of the form 10.0.0.1, 10.0.0.1:PORT or [2001:db8::1]:PORT"
        ) from None
    port = int((match["six_port"] or match["port"] or DEFAULT_PORT) if match else DEFAULT_PORT)
    if not 0 < port <= LARGEST_PORT or port == ROCE_PORT:
        raise TargetsError(f"{place}: {text}: port {port} cannot be used; {ROCE_PORT} is RoCE's own")
    if address.is_multicast or address.is_unspecified:
        raise TargetsError(f"{place}: {text}: is not the address of a port")
    return address, port


def without_own(targets: Iterable[ProbeTarget], own: Iterable[ProbeTarget]) -> tuple[ProbeTarget, ...]:
    """The targets of other hosts."""
    addresses = {one.address for one in own}
    return tuple(one for one in targets if one.address not in addresses)
