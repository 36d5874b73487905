"""A tree of files and symbolic links held in memory: a recorded host, from a folder or a tar archive."""

from __future__ import annotations

import errno
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
    from collections.abc import Iterator

MAX_BYTES = 64 << 20
"""A recorded host of 16 ports is under 1 MiB; more than this is no recording, or a hostile one."""

MAX_LINKS = 40
"""As many symbolic links as the kernel follows in one path."""


class RecordingError(Exception):
    """A recording that cannot be read; the text names it and says what to do."""


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
    """Read a folder or a .tar.gz into memory.

    Raises:
        RecordingError: there is no such thing, it is truncated, or it is too large.
    """
    place = Path(path)
    try:
        members = _folder_members(place) if place.is_dir() else _archive_members(place)
        return _collect(members, path)
    except FileNotFoundError:
        raise RecordingError(
            f"recording {path}: no such file or folder; name a folder or a .tar.gz"
        ) from None
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise RecordingError(
            f"recording {path}: not a whole tar archive ({error}); copy it again or make it anew with "
            "`roce-exporter capture`"
        ) from None
    except OSError as error:
        raise RecordingError(
            f"recording {path}: {error.strerror or error}; check the path and its rights"
        ) from None


def _collect(members: Iterator[tuple[str, bytes | str]], path: str) -> Tree:
    tree, size = Tree(), 0
    for name, content in members:
        size += len(content)
        if size > MAX_BYTES:
            raise RecordingError(
                f"recording {path}: over {MAX_BYTES >> 20} MiB; a recorded host is far smaller"
            )
        if isinstance(content, bytes):
            tree.files[name] = content
        else:
            tree.links[name] = content
        tree.add(name)
    return tree


def _folder_members(root: Path) -> Iterator[tuple[str, bytes | str]]:
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


def _archive_members(place: Path) -> Iterator[tuple[str, bytes | str]]:
    with tarfile.open(place, "r:*") as archive:
        for member in archive:
            inside = posixpath.normpath(member.name).lstrip("/")
            if inside.startswith(".."):
                continue
            if member.issym():
                yield inside, member.linkname
            elif member.isreg():
                if member.size > MAX_BYTES:
                    raise RecordingError(f"recording {place}: {member.name} is over {MAX_BYTES >> 20} MiB")
                file = archive.extractfile(member)
                yield inside, file.read() if file else b""
