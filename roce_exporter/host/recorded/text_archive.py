r"""A recorded host as one text, which people read, compare and change in an editor.

    recording 1                                  the first line: the version of this form
    base NAME                                    optional: all that is not below is as in NAME.txt of the same folder
    # text                                       a comment, between any two paths
    sys/class/net/eth0/mtu: 9000                 a file of one line, which ends with a newline
    ethtool/eth0.stats =                         a file of any number of lines: those that follow, each after a |
    |NIC statistics:
    |     rx_bytes: 5
    sys/class/net/eth0/phys_port_name =          \ in place of | : no newline follows the last line
    \p0
    sys/x/eeprom = base64                        a file that is not text
    |/wAH
    sys/class/net/eth0/device -> ../../x         a symbolic link
    sys/class/net/eth0/speed ! EINVAL            a read that fails
    "sys/a b": 5                                 a path or target that is not one word is a string of JSON
    - sys/class/net/eth0/duplex                  not here, although in the base or in the moment before
    ethtool/eth0.stats ~                         the same file with other values: each line replaces the one line that has
    |     rx_bytes: 7                            the same text before its first colon
    @ 1                                          a moment: what is not named is as in the moment before
    end                                          the last line

The order of paths is free. `host/recorded/written.py` writes it.
"""

from __future__ import annotations

import base64
import errno
import json
import posixpath
import re
from typing import TYPE_CHECKING, BinaryIO

from roce_exporter.host.recorded.tree import MAX_BYTES, MAX_PATHS, READ_BYTES, RecordingError, too_large

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.host.recorded.tree import Content, Tree

MAGIC = b"recording "
FIRST, LAST = "recording 1", "end"
BASE64, LINES = "= base64", "~"
SUFFIX = ".txt"
"""Of the file of a base; `capture` writes this form to a file with this suffix."""

MOMENT = re.compile(r"0|[1-9][0-9]{0,8}")
# In the same folder, so without a slash.
_BASE = re.compile(r"base ([A-Za-z0-9][A-Za-z0-9._-]{0,199})")
# Limited, for a string of JSON has up to twelve characters for one of a path.
_QUOTED = r'"(?:[^"\\]|\\.){0,50000}"'
_ENTRY = re.compile(
    rf"(?P<path>{_QUOTED}|[\w.]\S{{0,4095}}?)"
    rf"(?:: (?P<line>.*)| -> (?P<target>{_QUOTED}|[^\s\"]\S{{0,4095}})| ! (?P<error>\w{{1,20}})| (?P<block>=|{BASE64}|{LINES}))"
)


def text_members(file: BinaryIO, read_base: Callable[[str], Tree]) -> Iterator[tuple[str, Content]]:
    """The paths of a text, moment by moment; `read_base` returns the base of a name.

    Raises:
        RecordingError: a line is wrong.
    """
    reader, head, number = _TextReader(read_base), "", 0
    for number, head, below in _heads(file):
        if head == LAST or head.startswith("@ "):
            yield from reader.members()
        try:
            reader.read(number, head, below)
        except RecordingError as error:
            raise RecordingError(f"line {number}: {error}") from None
    if head != LAST:
        raise RecordingError(
            f"line {number + 1}: the last line `{LAST}` is missing; copy the file again, or add it"
        )


def _heads(file: BinaryIO) -> Iterator[tuple[int, str, list[str]]]:
    """The lines that are no content, each with its number and the lines of content below it."""
    head, first, size = FIRST, 0, 0
    below: list[str] = []
    for number, raw in enumerate(iter(lambda: file.readline(READ_BYTES + 1), b""), 1):
        size += len(raw)
        if size > MAX_BYTES:
            raise too_large()
        if number > MAX_PATHS:
            raise RecordingError(f"over {MAX_PATHS} lines; a recorded host has far fewer")
        try:
            line = _line(raw)
        except RecordingError as error:
            raise RecordingError(f"line {number}: {error}") from None
        if line.startswith(("|", "\\")):
            below.append(line)
            continue
        if first:
            yield first, head, below
        head, first, below = line, number, []
    if first:
        yield first, head, below


def _line(raw: bytes) -> str:
    """A line without its end."""
    if len(raw) > READ_BYTES:
        raise RecordingError(f"over {READ_BYTES} bytes; write such content as `PATH {BASE64}`")
    try:
        line = raw.decode()
    except UnicodeDecodeError:
        raise RecordingError(f"not UTF-8; write such content as `PATH {BASE64}`") from None
    if not line.endswith("\n"):
        raise RecordingError("not a whole line; copy the file again, or add the line end")
    if not line[:-1].replace("\t", "").isprintable():
        raise RecordingError(
            f"not printable; end lines as on Unix, and write such content as `PATH {BASE64}`"
        )
    return line[:-1]


class _TextReader:
    """What the lines so far say."""

    def __init__(self, read_base: Callable[[str], Tree]) -> None:
        self._read_base = read_base
        self._base, self._moment, self._ended = "", "", False
        self._now: dict[str, Content] = {}
        """Of this moment: as in the moment before, and what was named since."""
        self._named: set[str] = set()

    def members(self) -> Iterator[tuple[str, Content]]:
        """The paths of this moment."""
        prefix = self._moment and f"{self._moment}/"
        return ((prefix + path, content) for path, content in self._now.items())

    def read(self, number: int, head: str, below: list[str]) -> None:
        """Apply a line and the lines of content below it."""
        entry = _ENTRY.fullmatch(head)
        if self._ended:
            raise RecordingError(f"follows `{LAST}`; remove it, or move `{LAST}` to the last line")
        if below and not (entry and entry["block"]):
            raise RecordingError("lines of content follow; write `PATH =` before them")
        if entry:
            self._entry(entry, below)
        elif head.startswith("@ "):
            self._begin(head.removeprefix("@ "))
        elif head.startswith("- "):
            if self._now.pop(self._path(head.removeprefix("- ")), None) is None:
                raise RecordingError("not in the base or the moment before; remove the line")
        elif number == 1 and head != FIRST:
            raise RecordingError(f"not `{FIRST}`, the form that this version reads; update the exporter")
        elif number == 2 and (base := _BASE.fullmatch(head)):  # noqa: PLR2004 - after the first line
            self._base = base[1]
            self._now = self._read_base(base[1]).content()
        elif number > 1 and head != LAST and not head.startswith("#"):
            raise RecordingError("not `PATH: LINE` or another form; only the second line is `base NAME`")
        self._ended = head == LAST

    def _begin(self, moment: str) -> None:
        if not MOMENT.fullmatch(moment) or int(moment) <= int(self._moment or -1):
            raise RecordingError("not a number above the last; number the moments from 0")
        if self._base:
            raise RecordingError(f"a moment in a text with a base; write `{moment}/PATH`")
        if not self._moment:
            self._now = {}  # what is before the first moment is next to the moments, not in them
        self._moment, self._named = moment, set()

    def _path(self, word: str) -> str:
        path = _unquoted(word)
        top = path.partition("/")[0]
        if posixpath.normpath(path) != path or top in ("", ".", ".."):
            raise RecordingError("not a path below the host; write it as `sys/class/net/eth0/mtu`")
        if top != path and MOMENT.fullmatch(top) and not (self._moment or self._base):
            raise RecordingError(f"a path in a moment; write `@ {top}`, then the path without the number")
        if path in self._named:
            raise RecordingError("a path that is named above; remove one of them")
        self._named.add(path)
        return path

    def _entry(self, entry: re.Match[str], below: list[str]) -> None:
        path = self._path(entry["path"])
        if entry["block"] == LINES:
            self._now[path] = _replaced(self._now.get(path), below)
        elif kind := entry["block"]:
            self._now[path] = _decoded(below) if kind == BASE64 else _joined(below)
        elif target := entry["target"]:
            self._now[path] = _unquoted(target)
        elif name := entry["error"]:
            self._now[path] = _error(name)
        else:
            self._now[path] = f"{entry['line']}\n".encode()


def key(line: str) -> str:
    """What a line keeps when its value changes."""
    return line.partition(":")[0]


def _joined(lines: list[str]) -> bytes:
    if any(line.startswith("\\") for line in lines[:-1]):
        raise RecordingError("a line with \\ is not the last; write | before it")
    text = "".join(f"{line[1:]}\n" for line in lines)
    return (text[:-1] if lines and lines[-1].startswith("\\") else text).encode()


def _decoded(lines: list[str]) -> bytes:
    try:
        return base64.b64decode("".join(line[1:] for line in lines), validate=True)
    except ValueError:
        raise RecordingError(
            "not base64; write the lines that `base64 FILE` prints, each after a |"
        ) from None


def _replaced(before: Content | None, below: list[str]) -> bytes:
    """The file as before, with these lines in place of those with the same text before the first colon."""
    if not isinstance(before, bytes) or len(before) > READ_BYTES:
        raise RecordingError("not a file in the base or the moment before; write all of it with `PATH =`")
    lines = before.decode(errors="surrogateescape").split("\n")
    places: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        places.setdefault(key(line), []).append(place)
    for line in below:
        found = places.pop(key(line[1:]), [])
        if len(found) != 1 or line.startswith("\\"):
            raise RecordingError(
                f"{len(found)} lines of the file begin as `{line[:99]}`; write all of it with `PATH =`"
            )
        lines[found[0]] = line[1:]
    return "\n".join(lines).encode(errors="surrogateescape")


def _unquoted(word: str) -> str:
    """A path or target, which is a string of JSON or itself."""
    try:
        path = str(json.loads(word)) if word.startswith('"') else word
        if path and b"\0" not in path.encode(errors="surrogateescape"):
            return path
    except ValueError:
        pass
    raise RecordingError("not the name of a file, or not a string of JSON; correct it")


def _error(name: str) -> int:
    number = int(name) if re.fullmatch("[1-9][0-9]{0,3}", name) else getattr(errno, name, 0)
    if not isinstance(number, int) or not number:
        raise RecordingError(f"{name} is not an error of Linux; write its name, as EINVAL, or its number")
    return number
