"""The programs that tests run: their names, the Debian package of each, and what happens without them.

Without a program a test is skipped and names it. With `CI=true` it fails: `.ci/run` installs every program of its tiers.
"""

import os
import shutil
from pathlib import Path
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
    "systemd-analyze": "systemd",
    "systemd-sysusers": "systemd",
    "unshare": "util-linux",
    "ip": "iproute2",
    "kubectl": "kubernetes-client",
    "man": "man-db",
    "ps": "procps",
    "gpg": "gnupg",
    "gpgconf": "gnupg",
    "apt-ftparchive": "apt-utils",
    "dpkg-deb": "dpkg",
    "rpmbuild": "rpm",
    "vmagent": "victoria-metrics",
    "vmalert": "victoria-metrics",
}
"""Debian packages that are not named as their program."""

COMPILED = {
    *("fake_server", "helm", "kube-apiserver", "node_exporter_newest", "otelcol", "perses_import"),
    "prometheus-operator",
}
"""Programs without a package: tests/nightly_tools.sh compiles them from their Go modules."""


def lacking(message: str) -> NoReturn:
    """Skip the test, or fail it in CI."""
    if IN_CI:
        pytest.fail(message)
    pytest.skip(message)


def cache_folder() -> Path:
    """The folder for what is kept from one run to the next, outside the checkout."""
    place = Path(os.environ.get("ROCE_TEST_CACHE") or Path.home() / ".cache/roce-exporter-tests")
    place.mkdir(parents=True, exist_ok=True)
    return place


def found(program: str) -> str | None:
    """The path of a program under any of its names, or None."""
    places = f"{os.environ.get('PATH', os.defpath)}:{cache_folder()}/bin"
    names = NAMES.get(program, (program,))
    return next(filter(None, (shutil.which(name, path=places) for name in names)), None)


def need(program: str) -> str:
    """The path of a program; without it the test is skipped, and in CI it fails."""
    if path := found(program):
        return path
    way = (
        "tests/nightly_tools.sh"
        if program in COMPILED
        else f"apt-get install {PACKAGES.get(program, program)}"
    )
    lacking(f"{program} is not installed ({way})")
