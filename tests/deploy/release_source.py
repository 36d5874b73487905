"""A release of this source, built from a commit that has what the checkout has now."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from deploy_tools import ROOT, lacking, need

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PARTS = ("alerts", "dashboards", "deploy", "docs", "roce_exporter", "LICENSE", "Makefile", "README.md")
FILES = (*PARTS, "pyproject.toml", ".gitignore", *(path.name for path in ROOT.glob("requirements*.lock")))
STUB = "deploy/container/build.sh"
GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]


def source(folder: Path) -> Path:
    """A repository with one commit, in which the image is a stub: tests of the image build the real one."""
    need("git", "git")
    folder.mkdir()
    for name in FILES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "pictures")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / STUB).write_text(
        '#!/bin/sh\necho "$SOURCE_DATE_EPOCH" >"$1/image.tar" && echo "$1/image.tar"\n'
    )
    (folder / STUB).chmod(0o755)
    dates = {"GIT_AUTHOR_DATE": "1790000000 +0000", "GIT_COMMITTER_DATE": "1790000000 +0000"}
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=release"]):
        subprocess.run([*GIT, *command], cwd=folder, env={**os.environ, **dates}, check=True)
    return folder


def build(source: Path, folder: Path, umask: int, environment: Mapping[str, str]) -> Path:
    """The folder of a release from a new clone of the source.

    The environment is added to that of the tests.
    """
    clone = folder.with_name(f"{folder.name}-clone")
    subprocess.run(["git", "clone", "--quiet", source, clone], check=True, umask=umask)
    given = {**os.environ, "PYTHON": sys.executable, "PACKAGES": "container", **environment}
    given.pop("SOURCE_DATE_EPOCH", None)
    command = ["make", "--silent", "release", f"DIST={folder}", f"PYTHON={sys.executable}"]
    need("make", "make")
    built = subprocess.run(
        command, cwd=clone, env=given, umask=umask, capture_output=True, text=True, check=False
    )
    if "No matching distribution" in built.stderr or "Connection" in built.stderr:
        lacking(f"the package index cannot be reached: {built.stderr.strip()[-200:]}")
    assert built.returncode == 0, built.stderr
    (folder.with_name(f"{folder.name}.log")).write_text(built.stderr)
    return folder
