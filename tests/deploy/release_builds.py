"""Releases that `make release` builds from a commit of this source."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deploy_tools import ROOT, SOURCES, ran
from release_keys import keys
from tools import lacking, need

import roce_exporter

VERSION = roce_exporter.__version__
PRODUCT = f"roce-exporter-{VERSION}"
EARLIER = "0.0.1"
GIT = ("git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
MOMENT = 1_790_000_000
"""The time of the commit."""


def commit(folder: Path, version: str = VERSION, *, image: bool = False) -> Path:
    """A repository with one commit of this source under a version, in which the image is a stub without `image`: its bases take minutes."""
    need("git")
    folder.mkdir()
    for name in (*SOURCES, ".gitignore"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "pictures")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    place = folder / "roce_exporter/__init__.py"
    place.write_text(place.read_text().replace(f'"{VERSION}"', f'"{version}"'))
    if not image:
        stub = folder / "deploy/container/build.sh"
        stub.write_text('#!/bin/sh\necho "$SOURCE_DATE_EPOCH" >"$1/image.tar" && echo "$1/image.tar"\n')
        stub.chmod(0o755)
    dates = {f"GIT_{who}_DATE": f"{MOMENT} +0000" for who in ("AUTHOR", "COMMITTER")}
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=release"]):
        subprocess.run([*GIT, *command], cwd=folder, env={**os.environ, **dates}, check=True)
    return folder


def build(source: Path, folder: Path, umask: int, *within: str, **environment: str) -> str:
    """Make a release from a new clone of the source, within another command; what it says about it."""
    clone = folder.with_name(f"{folder.name}-clone")
    subprocess.run(["git", "clone", "--quiet", source, clone], check=True, umask=umask)
    given = {**os.environ, "PYTHON": sys.executable, "PACKAGES": "deb rpm container", **environment}
    given.pop("SOURCE_DATE_EPOCH", None)
    command = (*within, need("make"), "--silent", "release", f"DIST={folder}", f"PYTHON={sys.executable}")
    done = ran(*command, cwd=clone, env=given, umask=umask)
    assert done.returncode == 0, done.stderr
    return done.stderr


def downloads(source: Path, folder: Path) -> dict[str, str]:
    """The variables with which pip finds what a release is built from in a folder, which is filled here."""
    done = ran(source / "deploy/release/download.sh", folder, env={**os.environ, "PYTHON": sys.executable})
    if done.returncode:
        lacking(f"the package index cannot be reached: {done.stderr.strip()[-200:]}")
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}


@dataclass(frozen=True)
class Releases:
    """Two releases of one commit, the second without a network, what was said about them, and the key that signed the first."""

    first: Path
    second: Path
    said: tuple[str, str]
    key: Path


@pytest.fixture(scope="session")
def earlier(tmp_path_factory) -> Path:
    """The release before. None is published yet: it is this source under a lower version."""
    folder = tmp_path_factory.mktemp("earlier")
    build(commit(folder / "source", EARLIER), folder / "release", 0o022, PACKAGES="", RELEASE_KEY="")
    return folder / "release"


@pytest.fixture(scope="session")
def releases(tmp_path_factory) -> Iterator[Releases]:
    folder = tmp_path_factory.mktemp("release")
    folder.parent.chmod(0o755)  # another user starts the zipapp
    folder.chmod(0o755)
    source = commit(folder / "source")
    first, second = folder / "first", folder / "elsewhere/second"
    second.parent.mkdir()
    offline = downloads(source, folder / "downloads")
    with keys() as owner:
        signed = build(
            source, first, 0o022, RELEASE_KEY="test@example.com", RELEASE_TRIAL="1", GNUPGHOME=str(owner.home)
        )
        alone = ("unshare", "--net", "--map-root-user")
        unsigned = build(
            source, second, 0o077, *alone, **offline, TZ="Pacific/Auckland", LC_ALL="C.UTF-8", RELEASE_KEY=""
        )
        yield Releases(first, second, (signed, unsigned), owner.public(folder / "key.asc"))
