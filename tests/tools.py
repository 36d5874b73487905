"""The programs that tests run: their names, the Debian package of each, and what happens without them.

Without a program a test is skipped and names it. With `CI=true` it fails: `.ci/run` installs every program of its tiers.
"""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

IN_CI = os.environ.get("CI") == "true"

NAMES = {
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "node_exporter": ("prometheus-node-exporter", "node_exporter"),
}
"""Programs that Debian and others name differently, Debian's name first."""

PACKAGES = {
    "amtool": "prometheus-alertmanager",
    "alertmanager": "prometheus-alertmanager",
    "node_exporter": "prometheus-node-exporter",
    "promtool": "prometheus",
    "systemd-nspawn": "systemd-container",
    "unshare": "util-linux",
    "mandoc": "mandoc",
    "ip": "iproute2",
}
"""Debian packages that are not named as their program."""


def lacking(message: str) -> NoReturn:
    """Skip the test, or fail it in CI."""
    if IN_CI:
        pytest.fail(message)
    pytest.skip(message)


def found(program: str) -> str | None:
    """The path of a program under any of its names, or None."""
    return next(filter(None, map(shutil.which, NAMES.get(program, (program,)))), None)


def need(program: str) -> str:
    """The path of a program; without it the test is skipped, and in CI it fails."""
    if path := found(program):
        return path
    lacking(f"{program} is not installed (apt-get install {PACKAGES.get(program, program)})")
