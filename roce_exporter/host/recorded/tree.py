"""A tree of files and symbolic links in memory, with the limits of a recorded host; a tar archive is read here, the other forms in `load`."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import lzma
import os
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO

from roce_exporter.errors import UserError
from roce_exporter.host.kernel import Absent

Members = Iterable[tuple[str, bytes | str | int]]
Decompressed = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile

Content = bytes | str | int
"""Of one path: what a file holds, the target of a link, or the errno of a read that fails."""

# A recorded host of 16 ports is under 1 MiB; a larger file is not a recording, or a hostile one.
MAX_BYTES = 64 << 20

# All names together, including folders: 500 moments of such a host.
MAX_NAME_BYTES = 256 << 20

# Paths of all moments together, as many as an archive of MAX_ARCHIVE_BYTES can have; and lines of a text.
MAX_PATHS = 1 << 21

# Size of an unpacked archive: tar adds a kilobyte to each file, and the files of a recording are small.
MAX_ARCHIVE_BYTES = 1 << 30

# Maximum size of a header with its names, and of one read of a file. A tar header contains the length of a name, and `tarfile` would
# allocate any length.
READ_BYTES = 1 << 20
MAX_LINKS = 40  # maximum number of symbolic links in one path, as in the kernel

# PATH_MAX: the kernel rejects longer paths, so a host has none.
PATH_BYTES = 4096
MAGIC_BYTES = 6
DECOMPRESSORS: tuple[tuple[bytes, Callable[[BinaryIO], Decompressed]], ...] = (
    (b"\x1f\x8b", lambda archive: gzip.GzipFile(fileobj=archive)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\0", lzma.LZMAFile),
)
"""Magic bytes at the start of an archive, and its decompressor."""

# Exceptions of the standard library for a broken archive. Its tar reader checks few numbers, and recurses for
# each header that describes the next one.
BROKEN = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError, RecursionError)


class RecordingError(UserError):
    """A recording that cannot be read: what everything in this room raises that reads one.

    The text names the file or line and the remedy, in one line even if a file name has line ends.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(" ".join(problem.splitlines()))


@dataclass(slots=True)
class Tree:
    """`files` maps a path such as `sys/class/net/eth0/mtu` to its content, `links` to its target, `errors` to the errno of its read."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=lambda: {"": set()})
    errors: dict[str, int] = field(default_factory=dict)

    def content(self) -> dict[str, Content]:
        """Everything but the folders, by path."""
        return {**self.files, **self.links, **self.errors}

    def refuse_conflicts(self) -> None:
        """Raise RecordingError if a folder is a file or a link as well, or `..`: what is below would be elsewhere."""
        if both := self.content().keys() & self.folders.keys():
            raise RecordingError(f"{min(both)} is a folder and a file or link; remove one of them")
        if any(".." in names for names in self.folders.values()):
            raise RecordingError("the name of a device leads out of the recording; correct it")

    def add(self, path: str) -> int:
        """Add the folders of this path; returns the number of characters in their names."""
        added = 0
        while path:
            parent, name = posixpath.split(path)
            names = self.folders.get(parent)
            if names is None:
                names = self.folders[parent] = set()
                added += len(parent)
            if name in names:
                break  # and so are the folders above
            names.add(name)
            added += len(name)
            path = parent
        return added

    def resolve(self, path: str) -> str:
        """The path with every symbolic link followed. Absent: the path does not exist, or the links form a loop."""
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
        if done in self.files or done in self.folders or done in self.errors:
            return done
        raise Absent(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def parts(self) -> dict[str, Tree]:
        """What is below each folder at the top, by its name; the paths are without it."""
        found: dict[str, list[tuple[str, Content]]] = {name: [] for name in self.folders[""]}
        for path, content in self.content().items():
            name, slash, inside = path.partition("/")
            if slash:
                found[name].append((inside, content))
        return {name: collect_tree(members) for name, members in found.items()}


def unpack_tree(archive: BinaryIO) -> Tree:
    """The files and links of a tar archive, compressed or not."""
    try:
        with _decompressed(archive) as content:
            limited = _Limited(content)
            tree = collect_tree(_archive_members(limited))
            limited.finish()
            return tree
    except (*BROKEN, OSError) as error:
        raise RecordingError(
            f"not a whole tar archive ({error or type(error).__name__}) and no text of capture; copy it again or write a new one with "
            "`roce-exporter capture`"
        ) from None


def _decompressed(archive: BinaryIO) -> AbstractContextManager[BinaryIO | Decompressed]:
    magic = archive.read(MAGIC_BYTES)
    archive.seek(0)
    for start, decompress in DECOMPRESSORS:
        if magic.startswith(start):
            return decompress(archive)
    return contextlib.nullcontext(archive)


class _Limited:
    """The methods of a file that `tarfile` uses, with limits on size."""

    def __init__(self, file: BinaryIO | Decompressed) -> None:
        self._file = file
        self.tell = file.tell
        self.left = READ_BYTES
        """Bytes that may be read until this is set again. From Python 3.14.10 on a header is read in parts."""

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise RecordingError(f"a header of over {READ_BYTES} bytes; a recorded host has none")
        return self._file.read(size)

    def seek(self, position: int) -> int:
        if position > MAX_ARCHIVE_BYTES:
            raise RecordingError(
                f"over {MAX_ARCHIVE_BYTES >> 30} GiB unpacked; a recorded host is far smaller"
            )
        return self._file.seek(position)

    def finish(self) -> None:
        """Read to the end: gzip verifies its checksum only there, and tar may end before."""
        while self._file.read(READ_BYTES):
            self.seek(self.tell())  # checks the limit


def collect_tree(members: Members) -> Tree:
    """The tree of these paths and contents."""
    tree, size, names = Tree(), 0, 0
    for paths, (name, content) in enumerate(members, 1):
        target = content if isinstance(content, str) else ""
        if max(len(name), len(target)) > PATH_BYTES:
            raise RecordingError(f"a path of more than {PATH_BYTES} bytes; no host has one")
        size += 0 if isinstance(content, int) else len(content)
        names += len(name) + len(target) + tree.add(name)
        if size > MAX_BYTES:
            raise too_large()
        if names > MAX_NAME_BYTES or paths > MAX_PATHS:
            raise RecordingError(
                f"names of over {MAX_NAME_BYTES >> 20} MiB or over {MAX_PATHS} paths; a recorded host has far fewer files"
            )
        if isinstance(content, bytes):
            tree.files[name] = content
        elif isinstance(content, str):
            tree.links[name] = content
        else:
            tree.errors[name] = content
    return tree


def too_large() -> RecordingError:
    """What is raised for a recording above MAX_BYTES."""
    return RecordingError(f"over {MAX_BYTES >> 20} MiB; a recorded host is far smaller")


def _archive_members(content: _Limited) -> Iterator[tuple[str, Content]]:
    with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]  # it uses no more of a file
        while member := _next_member(archive, content):
            inside = posixpath.normpath(member.name).lstrip("/")
            if inside.startswith(".."):
                continue
            if member.issym():
                yield inside, member.linkname
            elif member.isreg():
                yield inside, _member_content(archive, member)


def _next_member(archive: tarfile.TarFile, content: _Limited) -> tarfile.TarInfo | None:
    content.left = READ_BYTES
    member = archive.next()
    archive.members.clear()  # type: ignore[attr-defined]  # otherwise it keeps them all; typeshed does not know the list
    content.left = READ_BYTES + (member.size if member else 0)
    return member


def _member_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    # A sparse file may have any size in its header.
    if member.size > MAX_BYTES:
        raise too_large()
    file = archive.extractfile(member)
    return b"".join(iter(lambda: file.read(READ_BYTES), b"")) if file else b""
