"""Unpack the zipapp to a folder of its user, once, and run the exporter from there.

The dynamic loader reads the shared libraries of bcrypt and psutil from files only. The place follows the XDG Base
Directory Specification. The folder is named after the content, so two versions do not meet; it appears by one rename,
so it is complete or missing. Others cannot write to it, or it is refused.
"""

# ruff: noqa: INP001 - the top of the zipapp is not a package

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "roce-exporter"
REMEDY = "set XDG_CACHE_HOME to a folder that this user can write to and others cannot"


class UnfitError(Exception):
    """This machine cannot run the zipapp; the text names the reason and the remedy."""


def start() -> int:
    """Run the command line. Returns its exit code, or 2 after one line on standard error if the machine is unfit."""
    try:
        place = unpacked(Path(__file__).parent)
        sys.path[0] = str(place)
        load_libraries(place)
    except UnfitError as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return 2
    from roce_exporter.cli import main  # noqa: PLC0415 - it can be imported only now

    return main()


def unpacked(zipapp: Path) -> Path:
    """The folder with the content of the zipapp for this machine.

    Raises:
        UnfitError: no shared libraries for this machine, or no safe place for them.
    """
    with zipfile.ZipFile(zipapp) as archive:
        machine = fitting(archive)
        folder = cache_folder()
        try:
            make_private(folder)
            place = folder / f"{archive.read('content').decode()}-{machine}"
            if not place.is_dir():
                unpack(archive, machine, place)
        except OSError as error:
            raise UnfitError(f"cannot unpack to {folder}: {error.strerror or error}; {REMEDY}") from error
    return place


def fitting(archive: zipfile.ZipFile) -> str:
    """The machine's architecture, as the kernel names it.

    Raises:
        UnfitError: the zipapp has no libraries for this architecture or C library.
    """
    machine = os.uname().machine
    known = sorted({name.split("/")[0][4:] for name in archive.namelist() if name.startswith("lib-")})
    if machine not in known:
        raise UnfitError(f"has libraries for {' and '.join(known)}, not for {machine}; install it with pip")
    try:
        glibc = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        glibc = None
    if not glibc:
        raise UnfitError(
            "needs the GNU C library, which this Python does not use (musl?); install it with pip"
        )
    return machine


def cache_folder() -> Path:
    """Where to unpack: below XDG_CACHE_HOME, else the user's home, else the folder of temporary files."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / NAME
    for home in (os.environ.get("HOME", ""), home_of_user()):
        folder = Path(home) / ".cache" / NAME
        # a folder from the time when the home was writable serves as well
        if os.path.isabs(home) and (folder.is_dir() or os.access(home, os.W_OK | os.X_OK)):
            return folder
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"{NAME}-{os.geteuid()}"  # noqa: S108 - make_private checks its owner


def home_of_user() -> str:
    """The user's home in the user database, or nothing."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def make_private(folder: Path) -> None:
    """Make the folder if it is missing.

    Raises:
        UnfitError: another user could change what is in it.
        OSError: it cannot be made.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o755, exist_ok=True)
    trusted = (0, os.geteuid())
    found, parent = folder.lstat(), folder.parent.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise UnfitError(f"{folder} is a symbolic link; {REMEDY}")
    for path, owner in ((folder, found.st_uid), (folder.parent, parent.st_uid)):
        if owner not in trusted:
            raise UnfitError(f"{path} belongs to another user ({owner}); {REMEDY}")
    if found.st_mode & 0o022 or (parent.st_mode & 0o002 and not parent.st_mode & stat.S_ISVTX):
        raise UnfitError(f"other users can write to {folder}; {REMEDY}")


def unpack(archive: zipfile.ZipFile, machine: str, place: Path) -> None:
    """Make the folder `place` in one step; of several processes that do so, one succeeds for all of them."""
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    try:
        write(archive, ("lib", f"lib-{machine}"), new)
        new.chmod(0o755)
        new.rename(place)
    except OSError:
        if not place.is_dir():
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write(archive: zipfile.ZipFile, tops: tuple[str, ...], folder: Path) -> None:
    """Write the files below `tops` to the folder, and have them on the disk: a power failure must not leave empty files."""
    made = []
    for entry in archive.infolist():
        top, _, name = entry.filename.partition("/")
        if top in tops:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(entry))
            made.append(path)
    for path in made:
        with path.open("rb") as file:
            os.fsync(file.fileno())


def load_libraries(place: Path) -> None:
    """Load what is not Python.

    Raises:
        UnfitError: the dynamic loader refuses it, for example below a mount with `noexec`.
    """
    try:
        import bcrypt  # noqa: F401, PLC0415 - whether it loads is the question
        import psutil  # noqa: F401, PLC0415 - the same
    except ImportError as error:
        raise UnfitError(
            f"cannot load a library: {error}; if {place} is on a file system mounted with noexec, {REMEDY}"
        ) from error
