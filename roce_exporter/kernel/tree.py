"""A tree of files and symbolic links held in memory: a recorded host, from a folder or a tar archive."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import posixpath
import stat
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.kernel import Absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Members = Iterator[tuple[str, bytes | str]]

MAX_BYTES = 64 << 20
"""A recorded host of 16 ports is under 1 MiB; more than this is no recording, or a hostile one."""

MAX_LINKS = 40
"""As many symbolic links as the kernel follows in one path."""

PATH_BYTES = 4096
"""PATH_MAX: the kernel follows no longer path, so a host has none."""

DECOMPRESSORS: tuple[tuple[bytes, Callable[[io.BytesIO], io.BufferedIOBase]], ...] = (
    (b"\x1f\x8b", lambda archive: gzip.GzipFile(fileobj=archive)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\0", lzma.LZMAFile),
)
"""What reads an archive that begins with these bytes."""

BROKEN = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError, RecursionError)
"""What the standard library raises for an archive that is not whole. Its tar reader checks few numbers, and follows a row of
headers that each describe the next by calling itself."""


class RecordingError(Exception):
    """A recording that cannot be read; the text names it and says what to do, in one line whatever a file is called."""

    def __init__(self, problem: str) -> None:
        super().__init__(" ".join(problem.splitlines()))


@dataclass(slots=True)
class Tree:
    """`files` maps a path such as `sys/class/net/eth0/mtu` to its content, `links` to where it leads."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=lambda: {"": set()})

    def add(self, path: str) -> None:
        """Make this path's folders known."""
        while path:
            parent, name = posixpath.split(path)
            self.folders.setdefault(parent, set()).add(name)
            path = parent

    def resolve(self, path: str) -> str:
        """The path with every symbolic link followed.

        Raises:
            Absent: nothing is there, or the links go round in a circle.
        """
        done, todo, followed = "", path.split("/")[::-1], 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = posixpath.dirname(done)
                continue
            here = f"{done}/{part}" if done else part
            target = self.links.get(here)
            if target is None:
                done = here
                continue
            followed += 1
            if followed > MAX_LINKS:
                raise Absent(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done, target = "", target.lstrip("/")
            todo.extend(target.split("/")[::-1])
        if done in self.files or done in self.folders:
            return done
        raise Absent(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def below(self, folder: str) -> Tree:
        """The part of the tree below one folder, its paths without the folder's name."""
        prefix = f"{folder}/"
        part = Tree()
        for path, content in self.files.items():
            if path.startswith(prefix):
                part.files[path.removeprefix(prefix)] = content
        for path, target in self.links.items():
            if path.startswith(prefix):
                part.links[path.removeprefix(prefix)] = target
        for path in (*part.files, *part.links):
            part.add(path)
        return part


def load_tree(path: str) -> Tree:
    """Read a folder or a tar archive (plain, .gz, .bz2 or .xz) into memory.

    Raises:
        RecordingError: there is no such thing, it is truncated or corrupt, or it is too large.
    """
    place = Path(path)
    try:
        return _collect(_folder_members(place)) if place.is_dir() else unpack_tree(_content(place))
    except RecordingError as error:
        raise RecordingError(f"recording {path}: {error}") from None
    except FileNotFoundError:
        raise RecordingError(
            f"recording {path}: no such file or folder; name a folder or a .tar.gz"
        ) from None
    except OSError as error:
        raise RecordingError(
            f"recording {path}: {error.strerror or error}; check the path and its rights"
        ) from None


def _content(place: Path) -> bytes:
    with place.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def unpack_tree(archive: bytes) -> Tree:
    """The files and links of a tar archive, compressed or not.

    Raises:
        RecordingError: it is not a whole archive, or it is too large.
    """
    try:
        return _collect(_archive_members(_decompress(archive)))
    except (*BROKEN, OSError) as error:
        raise RecordingError(
            f"not a whole tar archive ({error or type(error).__name__}); copy it again or write a new one with "
            "`roce-exporter capture`"
        ) from None


def _decompress(archive: bytes) -> bytes:
    # In one piece and before it is read as tar: a header of tar may announce any size, and the reader would reserve it.
    for magic, decompress in DECOMPRESSORS:
        if archive.startswith(magic):
            with decompress(io.BytesIO(archive)) as file:
                return _limited(file.read(MAX_BYTES + 1))
    return _limited(archive)


def _limited(content: bytes) -> bytes:
    if len(content) > MAX_BYTES:
        raise RecordingError(f"over {MAX_BYTES >> 20} MiB; a recorded host is far smaller")
    return content


def _collect(members: Members) -> Tree:
    tree, size = Tree(), 0
    for name, content in members:
        if max(len(name), len(content) if isinstance(content, str) else 0) > PATH_BYTES:
            raise RecordingError(f"a path of more than {PATH_BYTES} bytes; no host has one")
        # Each folder on the way is kept under its whole path.
        size += len(content) + len(name) * (name.count("/") + 1)
        if size > MAX_BYTES:
            raise RecordingError(f"over {MAX_BYTES >> 20} MiB; a recorded host is far smaller")
        if isinstance(content, bytes):
            tree.files[name] = content
        else:
            tree.links[name] = content
        tree.add(name)
    return tree


def _folder_members(root: Path) -> Members:
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


def _archive_members(content: bytes) -> Members:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            inside = posixpath.normpath(member.name).lstrip("/")
            if inside.startswith(".."):
                continue
            if member.issym():
                yield inside, member.linkname
            elif member.isreg():
                # A sparse file may announce any size.
                if member.size > MAX_BYTES:
                    raise RecordingError(f"{inside} is over {MAX_BYTES >> 20} MiB")
                file = archive.extractfile(member)
                yield inside, file.read() if file else b""
