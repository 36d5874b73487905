"""The exporters to compare with: where they are installed or how they are fetched, and which version each reports.

Debian's node_exporter comes from apt and is unpacked, not installed; the newest one comes from the Go module proxy.
Both are kept in `~/.cache/roce-exporter-bench`. The proxy does not serve yuuki's rdma_exporter: build it from its source
(https://github.com/yuuki/rdma_exporter, `CGO_ENABLED=0 go build -o rdma_exporter .`) and put it on the PATH; else it is left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "roce-exporter-bench"
NEWEST = "github.com/prometheus/node_exporter@latest"
HERE = Path(__file__).parent

PORT = "{port}"
TREE = "{tree}"
"""Placeholders in a command for the listening port and the sysfs to read."""


class Rival(NamedTuple):
    """One exporter in one configuration."""

    name: str
    command: tuple[str, ...]
    headers: dict[str, str] = {}  # noqa: RUF012 - read only


def command_of(rival: Rival, tree: Path, port: int) -> list[str]:
    """The command to run, for this tree and this port."""
    return [part.replace(PORT, str(port)).replace(TREE, str(tree)) for part in rival.command]


PROMETHEUS = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.2",
    "Accept-Encoding": "gzip",
}
"""What Prometheus sends."""


def roce_exporter(name: str, *flags: str, headers: dict[str, str] | None = None) -> Rival:
    """This exporter, with these flags."""
    command = (sys.executable, "-m", "roce_exporter", "serve", "--log.level=error")
    where = (f"--path.sysfs={TREE}", f"--web.listen-address=127.0.0.1:{PORT}", "--collect.min-interval=0.001")
    return Rival(f"roce_exporter, {name}", (*command, *where, *flags), headers or {})


def node_exporters(*collectors: str) -> list[Rival]:
    """The available node_exporters, with only these collectors."""
    flags = (
        "--collector.disable-defaults",
        "--log.level=error",
        f"--path.sysfs={TREE}",
        f"--web.listen-address=127.0.0.1:{PORT}",
        *(f"--collector.{collector}" for collector in collectors),
    )
    found = [path for path in (_debian(), _newest()) if path is not None]
    return [
        Rival(f"node_exporter {_version(path)} {'+'.join(collectors)}", (str(path), *flags)) for path in found
    ]


@cache
def rdma_exporters() -> tuple[Rival, ...]:
    """Yuuki's rdma_exporter with its defaults, if it is on the PATH."""
    place = shutil.which("rdma_exporter")
    if place is None:
        print("rdma_exporter is not on the PATH and is left out", file=sys.stderr)
        return ()
    command = (place, "--log-level=error", f"--sysfs-root={TREE}", f"--listen-address=127.0.0.1:{PORT}")
    return (Rival(f"rdma_exporter {_version(Path(place))}", command),)


def prescribed(way: str) -> Rival:
    """The usual Python packages, used in one of the ways of `obvious.py`."""
    packages = ["prometheus_client", *(["aiofiles"] if way == "aiofiles" else [])]
    name = ", ".join(f"{package} {version(package)}" for package in packages)
    return Rival(f"{name}: {way}", (sys.executable, str(HERE / "obvious.py"), way, TREE, PORT))


def _version(program: Path) -> str:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    match = re.search(r"(?:version|_exporter) v?(\d\S*)", told.stdout + told.stderr)
    if match and match[1]:
        return match[1]
    # A program built by `go install` does not report its own version, but the toolchain recorded it.
    told = subprocess.run(["go", "version", "-m", program], capture_output=True, text=True, check=True)  # noqa: S603, S607 - our own command
    match = re.search(r"^\s*mod\s+\S+\s+v?(\S+)", told.stdout, re.MULTILINE)
    return match[1] if match else "of unknown version"


def _debian() -> Path | None:
    place = CACHE / "node_exporter_debian"
    if not place.exists() and shutil.which("apt-get"):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            script = "apt-get -qq download prometheus-node-exporter && dpkg-deb -x *.deb ."
            subprocess.run(["sh", "-c", script], cwd=folder, check=False)  # noqa: S603, S607 - no input
            unpacked = Path(folder) / "usr/bin/prometheus-node-exporter"
            if unpacked.exists():
                shutil.copy2(unpacked, place)
    return place if place.exists() else None


def _newest() -> Path | None:
    place = CACHE / "node_exporter"
    if not place.exists() and shutil.which("go"):
        environment = os.environ | {"GOBIN": str(CACHE), "CGO_ENABLED": "0"}
        subprocess.run(["go", "install", NEWEST], env=environment, check=False)  # noqa: S603, S607 - no input
    return place if place.exists() else None
