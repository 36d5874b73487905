"""Read a recorded host into memory: a folder, a tar archive or a text."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from roce_exporter.host.recorded.text_archive import MAGIC, SUFFIX, text_members
from roce_exporter.host.recorded.tree import MAX_BYTES, RecordingError, collect_tree, unpack_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.host.recorded.tree import Content, Tree


def load_tree(path: str) -> Tree:
    """Read a folder, a tar archive (plain, .gz, .bz2 or .xz) or a text into memory.

    Raises:
        RecordingError: it does not exist, is truncated or corrupt, or is too large.
    """
    place = Path(path)
    try:
        return collect_tree(_folder_members(place)) if place.is_dir() else _read_file(place)
    except RecordingError as error:
        raise RecordingError(f"recording {path}: {error}") from None
    except FileNotFoundError:
        raise RecordingError(
            f"recording {path}: no such file or folder; name a folder, a .tar.gz or a text of `roce-exporter capture`"
        ) from None
    except OSError as error:
        raise RecordingError(
            f"recording {path}: {error.strerror or error}; check the path and its permissions"
        ) from None


def load_base(folder: Path, name: str) -> Tree:
    """The recording that another one in this folder has as its base.

    Raises:
        RecordingError: there is no such text, it is wrong, or has a base itself.
    """
    place = folder / f"{name}{SUFFIX}"
    if place.is_symlink() or not place.is_file():
        raise RecordingError(f"base {place.name}: no such file in the same folder; copy it there")
    try:
        return _read_file(place, _base_of_base)
    except RecordingError as error:
        raise RecordingError(f"base {place.name}: {error}") from None


def _base_of_base(name: str) -> Tree:
    # Who changes a recording must find what depends on it.
    raise RecordingError(f"a base with a base; name {name} in its place, or write it without")


def _read_file(place: Path, read_base: Callable[[str], Tree] | None = None) -> Tree:
    with place.open("rb") as file:
        start = file.read(len(MAGIC))
        file.seek(0)
        if start != MAGIC:
            return unpack_tree(file)
        return read_text(file, read_base or (lambda name: load_base(place.parent, name)))


def read_text(file: BinaryIO, read_base: Callable[[str], Tree]) -> Tree:
    """The tree of a text; `read_base` returns the tree of a base.

    Raises:
        RecordingError: a line is wrong, or it is too large.
    """
    tree = collect_tree(text_members(file, read_base))
    tree.refuse_conflicts()
    return tree


def _folder_members(root: Path) -> Iterator[tuple[str, Content]]:
    for folder, folders, files in os.walk(root):
        for name in sorted((*folders, *files)):
            place = Path(folder, name)
            inside = place.relative_to(root).as_posix()
            mode = place.lstat().st_mode
            if stat.S_ISLNK(mode):
                yield inside, os.readlink(place)
            elif stat.S_ISREG(mode):
                with place.open("rb") as file:
                    yield inside, file.read(MAX_BYTES + 1)
