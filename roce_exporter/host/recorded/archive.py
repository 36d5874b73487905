r"""Read and write a recorded host: one text, which people read, compare and change in an editor, a folder or an archive.

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

The order of paths is free. A recorded host can also be a folder, or a tar archive of one (plain, .gz, .bz2 or .xz).
"""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import posixpath
import re
import shutil
import stat
import tarfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

import aiofiles
import aiofiles.os

from roce_exporter.host.recorded.tree import (
    MAX_BYTES,
    MAX_PATHS,
    READ_BYTES,
    Content,
    RecordingError,
    Tree,
    collect_tree,
    too_large,
    unpack_tree,
)

MAGIC = b"recording "
FIRST, LAST = "recording 1", "end"
BASE64, LINES = "= base64", "~"
SUFFIX = ".txt"  # of the file of a base; `capture` writes this form to a file with this suffix
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
    """The paths of a text, moment by moment; `read_base` returns the base of a name."""
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
            if kind != BASE64 and any(line.startswith("\\") for line in below[:-1]):
                raise RecordingError("a line with \\ is not the last; write | before it")
            text = "".join(f"{line[1:]}\n" for line in below)
            text = text[:-1] if below and below[-1].startswith("\\") else text
            self._now[path] = _decoded(below) if kind == BASE64 else text.encode()
        elif target := entry["target"]:
            self._now[path] = _unquoted(target)
        elif name := entry["error"]:
            number = int(name) if re.fullmatch("[1-9][0-9]{0,3}", name) else getattr(errno, name, 0)
            if not isinstance(number, int) or not number:
                raise RecordingError(
                    f"{name} is not an error of Linux; write its name, as EINVAL, or its number"
                )
            self._now[path] = number
        else:
            self._now[path] = f"{entry['line']}\n".encode()


def key(line: str) -> str:
    """What a line keeps when its value changes."""
    return line.partition(":")[0]


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


def load_tree(path: str) -> Tree:
    """Read a folder, a tar archive (plain, .gz, .bz2 or .xz) or a text into memory."""
    place = Path(path)
    try:
        return collect_tree(_folder_members(place)) if os.path.isdir(place) else _read_file(place)
    except RecordingError as error:
        raise RecordingError(f"recording {path}: {error}") from None
    except FileNotFoundError:
        raise RecordingError(
            f"recording {path}: no such file or folder; name a folder, a .tar.gz or a text of `roce-exporter capture`"
        ) from None
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename not in (None, path) else error.strerror
        raise RecordingError(f"recording {path}: {what}; check the path and its permissions") from None


def load_base(folder: Path, name: str) -> Tree:
    """The recording that another one in this folder has as its base."""
    place = folder / f"{name}{SUFFIX}"
    if os.path.islink(place) or not os.path.isfile(place):
        raise RecordingError(f"base {place.name}: no such file in the same folder; copy it there")

    def base_of_base(name: str) -> Tree:
        # Who changes a recording must find what depends on it.
        raise RecordingError(f"a base with a base; name {name} in its place, or write it without")

    try:
        return _read_file(place, base_of_base)
    except RecordingError as error:
        raise RecordingError(f"base {place.name}: {error}") from None


def _read_file(place: Path, read_base: Callable[[str], Tree] | None = None) -> Tree:
    if os.path.exists(place) and not os.path.isfile(place):
        raise RecordingError(
            "is neither a folder nor a regular file; name what `roce-exporter capture` wrote"
        )
    with place.open("rb") as file:
        start = file.read(len(MAGIC))
        file.seek(0)
        if start != MAGIC:
            return unpack_tree(file)
        return read_text(file, read_base or (lambda name: load_base(place.parent, name)))


def read_text(file: BinaryIO, read_base: Callable[[str], Tree]) -> Tree:
    """The tree of a text; `read_base` returns the tree of a base."""
    tree = collect_tree(text_members(file, read_base))
    tree.refuse_conflicts()
    return tree


def _folder_members(root: Path) -> Iterator[tuple[str, Content]]:
    def refuse(error: OSError) -> NoReturn:
        raise error

    for folder, folders, files in os.walk(root, onerror=refuse):
        for name in sorted((*folders, *files)):
            place = Path(folder, name)
            inside = place.relative_to(root).as_posix()
            mode = place.lstat().st_mode
            if stat.S_ISLNK(mode):
                yield inside, os.readlink(place)
            elif stat.S_ISREG(mode):
                with place.open("rb") as file:
                    yield inside, file.read(MAX_BYTES + 1)


# Characters of a line; the reader's limit is in bytes, of which a character has up to four.
MOST = READ_BYTES // 8
_PLAIN_PATH = re.compile(r"[\w.](\S{0,4000}[^\s:])?")
_PLAIN_TARGET = re.compile(r"[^\s\"]\S{0,4000}")


async def write_tree(tree: Tree, output: str, base: str = "") -> None:
    """Write a new recording in the form that the suffix of `output` names: a text, an archive, or else a folder.

    Only the user can read it, and nothing is left of one that cannot be written. Reads that fail are in a text only. The base is for a text: only what differs from it is written.

    Raises:
        RecordingError: a path is below a link, or the base cannot be read.
        OSError: the file or a file in the folder cannot be written.
    """
    tree.refuse_conflicts()
    if output.endswith(SUFFIX):
        before = load_base(Path(output).parent, base) if base else None
        await _write_file(output, print_tree(tree, base, before).encode())
    elif output.endswith((".tar.gz", ".tgz")):
        await _write_file(output, _archive(tree))
    else:
        await _write_folder(tree, Path(output))


async def _write_file(output: str, content: bytes) -> None:
    async with aiofiles.open(output, "xb", opener=partial(os.open, mode=0o600), buffering=0) as file:
        try:
            while content := content[await file.write(content) :]:
                pass
        except OSError:
            os.unlink(output)
            raise


async def _write_folder(tree: Tree, root: Path) -> None:
    await aiofiles.os.makedirs(root, mode=0o700)  # never into one that another process has made
    try:
        for folder in sorted(tree.folders.keys() - {""}):
            await aiofiles.os.makedirs(root / folder, mode=0o700)
        for path, target in tree.links.items():
            await aiofiles.os.symlink(target, root / path)
        for path, content in tree.files.items():
            await _write_file(str(root / path), content)
    except OSError:
        shutil.rmtree(root, ignore_errors=True)
        raise


def _archive(tree: Tree) -> bytes:
    compressed = io.BytesIO()
    with tarfile.open(fileobj=compressed, mode="w:gz") as archive:
        for path, content in sorted((tree.files | tree.links).items()):
            member = tarfile.TarInfo(f"host/{path}")
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return compressed.getvalue()


def print_tree(tree: Tree, base: str = "", before: Tree | None = None) -> str:
    """The recording as a text, see the module; with a base, what differs from it."""
    lines = [FIRST]
    root = tree.content()
    if before:
        lines += [f"base {base}", *_differences(before.content(), root)]
    else:
        moments = sorted(
            (name for name in tree.folders[""] & tree.folders.keys() if MOMENT.fullmatch(name)), key=int
        )
        parts = tree.parts()
        played: list[Mapping[str, Content]] = [parts[name].content() for name in moments]
        lines += _differences(
            {}, {path: root[path] for path in root if path.partition("/")[0] not in moments}
        )
        for moment, last, now in zip(moments, [{}, *played], played, strict=False):
            lines += [f"@ {moment}", *_differences(last, now)]
    return "\n".join([*lines, "end", ""])


def _differences(before: Mapping[str, Content], now: Mapping[str, Content]) -> Iterator[str]:
    for path in sorted(before.keys() | now.keys()):
        if path not in now:
            yield f"- {_word(path, _PLAIN_PATH)}"
        elif path not in before or before[path] != now[path]:
            yield from _entry(_word(path, _PLAIN_PATH), now[path], before.get(path))


def _word(path: str, plain: re.Pattern[str]) -> str:
    return path if plain.fullmatch(path) and path.isprintable() else json.dumps(path)


def _entry(path: str, content: Content, before: Content | None) -> Iterator[str]:
    if isinstance(content, str):
        yield f"{path} -> {_word(content, _PLAIN_TARGET)}"
    elif isinstance(content, int):
        yield f"{path} ! {errno.errorcode.get(content, content)}"
    elif (lines := _text_lines(content)) is None:
        yield f"{path} {BASE64}"
        yield from (f"|{part}" for part in textwrap.wrap(base64.b64encode(content).decode(), 76))
    elif changed := _changed(lines, before):
        yield f"{path} {LINES}"
        yield from (f"|{line}" for line in changed)
    elif len(lines) == 2 and lines[0] and not lines[1]:  # noqa: PLR2004 - one line, and what follows its end
        yield f"{path}: {lines[0]}"
    else:
        yield f"{path} ="
        yield from (f"|{line}" for line in lines[:-1])
        if lines[-1]:
            yield f"\\{lines[-1]}"


def _text_lines(content: bytes) -> list[str] | None:
    """The lines of a file, and what follows the last line end; None if it is not text."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        return None
    plain = all(len(line) <= MOST and line.replace("\t", "").isprintable() for line in lines)
    return lines if plain else None


def _changed(lines: list[str], before: Content | None) -> list[str]:
    """The lines that are not as before, if the text before their colons finds them; else none."""
    old = _text_lines(before) if isinstance(before, bytes) and len(before) <= READ_BYTES else None
    keys = [key(line) for line in lines]
    if old is None or keys != [key(line) for line in old]:
        return []
    changed = [line for line, last in zip(lines, old, strict=True) if line != last]
    often = Counter(keys)
    return changed if all(often[key(line)] == 1 for line in changed) and len(changed) < len(lines) - 1 else []
