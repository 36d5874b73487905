"""Write a recorded host: a folder, a .tar.gz or a text."""

from __future__ import annotations

import base64
import errno
import io
import json
import re
import tarfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import aiofiles
import aiofiles.os

from roce_exporter.host.recorded.load import load_base
from roce_exporter.host.recorded.text_archive import BASE64, FIRST, LINES, MOMENT, SUFFIX, key
from roce_exporter.host.recorded.tree import READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.host.recorded.tree import Content, Tree

# Characters of a line; the reader's limit is in bytes, of which a character has up to four.
MOST = READ_BYTES // 8

_PLAIN_PATH = re.compile(r"[\w.](\S{0,4000}[^\s:])?")
_PLAIN_TARGET = re.compile(r"[^\s\"]\S{0,4000}")


async def write_tree(tree: Tree, output: str, base: str = "") -> None:
    """Write a new recording in the form that the suffix of `output` names: a text, an archive, or else a folder.

    Reads that fail are in a text only. The base is for a text: only what differs from it is written.

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
    async with aiofiles.open(output, "xb") as file:
        await file.write(content)


async def _write_folder(tree: Tree, root: Path) -> None:
    for folder in sorted(tree.folders):
        await aiofiles.os.makedirs(root / folder, exist_ok=True)
    for path, target in tree.links.items():
        await aiofiles.os.symlink(target, root / path)
    for path, content in tree.files.items():
        await _write_file(str(root / path), content)


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
    """The recording as a text, see `text_archive`; with a base, what differs from it."""
    lines = [FIRST]
    root = tree.content()
    if before:
        lines += [f"base {base}", *_differences(before.content(), root)]
    else:
        moments = sorted(
            (name for name in tree.folders[""] & tree.folders.keys() if MOMENT.fullmatch(name)), key=int
        )
        played: list[Mapping[str, Content]] = [tree.below(name).content() for name in moments]
        lines += _differences({}, {path: root[path] for path in root if _top(path) not in moments})
        for moment, last, now in zip(moments, [{}, *played], played, strict=False):
            lines += [f"@ {moment}", *_differences(last, now)]
    return "\n".join([*lines, "end", ""])


def _top(path: str) -> str:
    return path.partition("/")[0]


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
