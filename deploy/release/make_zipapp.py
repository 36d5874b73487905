"""Make the zipapp from wheels: make_zipapp.py OUTPUT VERSION FOLDER, with the wheels of each architecture in FOLDER/ARCHITECTURE.

Files that all architectures share are below lib/, the others below lib-ARCHITECTURE/; zipapp/unpack.py puts them together.
The loader is our own: shiv packs one architecture, accepts a cache folder of any owner, and prints a traceback where it
cannot write; pex starts the interpreter a second time to identify it, and this exporter starts no other program.
"""

# ruff: noqa: INP001 - a script of the release, not a package

from __future__ import annotations

import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

SHEBANG = b"#!/usr/bin/env python3\n"


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of all wheels of a folder, without extension modules for one version of Python, which are optional."""
    files = {}
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if ".data/" in name:
                    raise SystemExit(f"{wheel.name} has files outside its packages: {name}")
                if not name.endswith("/") and ".cpython-" not in name:
                    files[name] = archive.read(name)
    return files


def merged(trees: dict[str, dict[str, bytes]]) -> dict[str, bytes]:
    """The files of all architectures: below lib/ if they are equal in all, else below lib-ARCHITECTURE/."""
    files = {}
    for architecture, tree in trees.items():
        for name, content in tree.items():
            shared = all(other.get(name) == content for other in trees.values())
            files[f"lib/{name}" if shared else f"lib-{architecture}/{name}"] = content
    return files


def write_zipapp(output: Path, files: dict[str, bytes], seconds: int) -> None:
    """Write the files as a zip archive that Python runs, all with one date: `seconds` since 1970 in UTC."""
    with output.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in sorted(files.items()):
                entry = zipfile.ZipInfo(name, date_time=time.gmtime(seconds)[:6])
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    output.chmod(0o755)


def main(output: str, version: str, wheels: str) -> None:
    """Make the zipapp; SOURCE_DATE_EPOCH is the date of its files."""
    files = merged({folder.name: files_of(folder) for folder in sorted(Path(wheels).iterdir())})
    for module in Path(__file__).with_name("zipapp").glob("*.py"):
        files[module.name] = module.read_bytes()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    files["content"] = f"{version}-{digest.hexdigest()[:16]}".encode()
    write_zipapp(Path(output), files, int(os.environ["SOURCE_DATE_EPOCH"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
