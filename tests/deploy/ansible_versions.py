"""Three versions of the exporter for the Ansible role: the one built, a next one, and one whose daemon does not start.

Each is a Debian package, a package in a signed apt repository, and a wheel with the wheels of its dependencies.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from apt_repository import keyring, publish
from deploy_tools import ROOT

import roce_exporter

OLD = roce_exporter.__version__
NEXT = "9.0.0"
BROKEN = "9.1.0"
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
"""For each suite of Debian: its Python, for which the wheels of the dependencies are."""
FAULT = """
_whole = main


def main():
    import sys

    return _whole() if "--version" in sys.argv else 3
"""
"""What the command of the broken version has in addition."""


def renamed(name: str, content: str, version: str) -> str:
    """The content of this file of the exporter in another version."""
    if name.endswith("roce_exporter/__init__.py"):
        return content.replace(f'"{OLD}"', f'"{version}"')
    if name.endswith("roce_exporter/cli/__init__.py") and version == BROKEN:
        return content + FAULT
    if name.endswith(("DEBIAN/control", ".dist-info/METADATA")):
        return content.replace(f"Version: {OLD}\n", f"Version: {version}\n")
    return (
        content.replace(f"-{OLD}.dist-info", f"-{version}.dist-info") if name.endswith("RECORD") else content
    )


def packages(package: str, folder: Path) -> list[Path]:
    """Debian packages of the three versions in this folder."""
    found = [Path(shutil.copy(package, folder))]
    for version in (NEXT, BROKEN):
        root = folder / f"package-{version}"
        subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
        library = root / "opt/roce-exporter/lib/roce_exporter"
        for file in (root / "DEBIAN/control", library / "__init__.py", library / "cli/__init__.py"):
            file.write_text(renamed(str(file), file.read_text(), version))
        found.append(folder / Path(package).name.replace(OLD, version))
        build = ["dpkg-deb", "-Znone", "--root-owner-group", "--build", root, found[-1]]
        subprocess.run(build, check=True, capture_output=True)
    return found


def repository(folder: Path, files: list[Path]) -> Path:
    """A signed apt repository of these packages."""
    # below /tmp itself: the sockets of gpg-agent have short names
    keys = Path(f"/tmp/roce-keys-{os.getpid()}-ansible")
    with keyring(keys, "test@localhost") as environment:
        made = publish(folder / "repository", "test@localhost", environment, *map(str, files))
    shutil.rmtree(keys)
    assert made.returncode == 0, made.stderr
    return folder / "repository"


def wheels(folder: Path) -> None:
    """Wheels of the three versions in this folder."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", ROOT]
    subprocess.run(pip, check=True)
    (wheel,) = folder.glob("*.whl")
    for version in (NEXT, BROKEN):
        place = folder / wheel.name.replace(OLD, version)
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(place, "w") as target:
            for name in source.namelist():
                content = renamed(name, source.read(name).decode(), version)
                target.writestr(name.replace(f"-{OLD}.dist-info", f"-{version}.dist-info"), content)


def dependencies(folder: Path, suite: str) -> None:
    """The wheels of requirements.lock for the Python of this suite."""
    machine = platform.machine()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps"]
    command += ["--only-binary=:all:", f"--python-version={PYTHONS[suite]}", f"--dest={folder}"]
    command += [f"--platform=manylinux_{glibc}_{machine}" for glibc in ("2_28", "2_17", "2_12")]
    command += [f"--platform=manylinux2014_{machine}", f"--requirement={ROOT / 'requirements.lock'}"]
    subprocess.run(command, check=True)
