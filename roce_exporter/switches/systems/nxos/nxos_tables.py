"""The shapes of NX-OS replies: NX-API's envelope, tables, port names, qos-groups and bitmaps.

Source: the `__readonly__` schemas in Cisco's "Nexus 9000 NX-OS Show Command Reference", release 9.3(x), and public programs
that parse these replies. No device was queried. Known habits of NX-OS, all of them at every level of a reply: a table of one row
is an object and of several rows a list; numbers are text, with commas between thousands where they come from CLI output; `-` means
that there is no value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roce_exporter.net import NetError
from roce_exporter.switches.numbers import is_absent, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.switches.readings import RawNumber

MOST = 1 << 63
"""Larger counters are not plausible: NX-OS sometimes reports such numbers instead of small negative ones."""

PORT = re.compile(
    r"(?<![a-z0-9])eth(?:ernet)?\s?(\d{1,4}(?:/\d{1,4}){1,3})(?![\d/.])", re.IGNORECASE | re.ASCII
)
GROUP = re.compile(r"(?<![\w.])([0-7])(?![\w.])", re.ASCII)
SYSTEM_GROUP = re.compile(r"control|cpu|span", re.IGNORECASE)
BITMAP = re.compile(r"\(\s*(?:0x)?([0-9a-f]{1,2})\s*\)", re.IGNORECASE | re.ASCII)
ON = frozenset({"enabled", "enable", "on", "yes", "true"})
OFF = frozenset({"disabled", "disable", "off", "no", "false", "not enabled"})
UNKNOWN_COMMAND = "400"
DENIED = re.compile(r"permission|denied|not authori", re.IGNORECASE)


def command_body(reply: Any) -> Any:
    """The body of the only command in an NX-API reply; None if the switch does not know the command, as when its feature is off.

    Raises:
        NetError: the reply has another form, or says that the command failed.
    """
    output = descend(reply, "ins_api", "outputs", "output")
    if isinstance(output, list):
        output = output[0] if output else None
    if not isinstance(output, dict) or "code" not in output:
        raise NetError("the reply has no output of a command: is this NX-API?")
    code = str(output["code"]).strip()
    if code == "200":
        return output.get("body")
    said = f"{output.get('msg', '')} {output.get('clierror', '')}"
    if DENIED.search(said):
        raise NetError("the role of the user does not permit the command: network-operator does")
    if code == UNKNOWN_COMMAND:
        return None
    raise NetError(f"the command failed with code {code[:3] if code.isdecimal() else 'unknown'}")


def descend(node: Any, *keys: str) -> Any:
    """The value below these keys; None where a level is missing or is no object."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def rows(node: Any, name: str) -> Iterator[dict[str, Any]]:
    """The rows of `TABLE_name` in an object, whether tables and rows are objects or lists."""
    for table in objects(descend(node, f"TABLE_{name}")):
        yield from objects(table.get(f"ROW_{name}"))


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """An object, or the objects in a list."""
    for item in node if isinstance(node, list) else (node,):
        if isinstance(item, dict):
            yield item


def modules(body: Any) -> list[dict[str, Any]]:
    """The line cards of a reply.

    Raises:
        NetError: it has none.
    """
    found = list(rows(body, "module"))
    if not found:
        raise NetError("the reply has no TABLE_module: the version of NX-OS prints another form")
    return found


def port_name(text: Any) -> str:
    """The port in a text as `Ethernet1/1` or, of a breakout, `Ethernet1/1/1`; empty for internal links, SPAN and port-channels.

    The text can be a name in three spellings, or a sentence: "Ethernet1/1 Interface PFC watchdog: [Enabled]".
    """
    found = PORT.search(text) if isinstance(text, str) else None
    return f"Ethernet{found[1]}" if found else ""


def qos_group(text: Any) -> str:
    """The number of the qos-group in a text, 0 to 7; empty for the groups of control traffic and SPAN."""
    words = str(text) if isinstance(text, int | str) else ""
    found = GROUP.findall(words)
    return found[0] if len(found) == 1 and not SYSTEM_GROUP.search(words) else ""


def cos_value(text: Any) -> int | None:
    """A priority (CoS), 0 to 7."""
    group = qos_group(text)
    return int(group) if group else None


def bitmap(text: Any) -> frozenset[int] | None:
    """The priorities in `On (8)`: a hexadecimal bitmap, 8 is priority 3. Empty for `Off`; None if the text does not say."""
    words = text.strip() if isinstance(text, str) else ""
    if re.search(r"\boff\b", words, re.IGNORECASE):
        return frozenset()
    found = BITMAP.search(words)
    if not (found and re.search(r"\bon\b", words, re.IGNORECASE)):
        return None
    bits = int(found[1], 16)
    return frozenset(priority for priority in range(8) if bits >> priority & 1)


def counter(value: Any) -> RawNumber:
    """A number below 2^63; None if it is not one."""
    found = number(value)
    return found if isinstance(found, int) and found < MOST else None


def switched(value: Any) -> int | None:
    """1 for on, 0 for off, in the words of NX-OS; None for other words."""
    word = value.strip(" []").lower() if isinstance(value, str) else ""
    return 1 if word in ON else 0 if word in OFF else None


def present(row: Mapping[str, Any], *names: str) -> dict[str, RawNumber]:
    """The counters of a row under their own names, without those that the switch does not have."""
    return {name: counter(row[name]) for name in names if name in row and not is_absent(row[name])}
