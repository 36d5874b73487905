"""Images without a container engine: buildah in chroot isolation, and bases that mmdebstrap makes from Debian packages.

The default bases of the Containerfile, python:3.11-slim-bookworm and distroless python3-debian12, are Debian 12 with
Python 3.11 too. Those images themselves are not fetched here.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deploy_tools import cache_folder, cache_lock, lacking, need

if TYPE_CHECKING:
    from pathlib import Path

RUNTIME = (
    "python3-minimal,libpython3.11-stdlib,libc6,libssl3,zlib1g,libexpat1,libffi8,libbz2-1.0,liblzma5,"
    "libuuid1,base-files,netbase,tzdata"
)
"""About the content of distroless python3: no shell, no package manager."""

BUILD = "python3-venv,ca-certificates"
MACHINE = "systemd,systemd-sysv,python3,init-system-helpers,curl,procps,util-linux,python3-apt,python3-venv,nftables"
"""A machine that boots, with what the package and the Ansible role need of it, so that tests read no mirror."""
CERTIFICATES = "/etc/ssl/certs"


@dataclass(frozen=True)
class Image:
    """A built image and the place where buildah keeps it."""

    name: str
    store: Path

    def buildah(self, *arguments: str) -> str:
        """The output of a buildah command.

        Raises:
            subprocess.CalledProcessError: it failed; pytest shows its output.
        """
        return buildah(self.store, *arguments)


def buildah(store: Path, *arguments: str) -> str:
    """The output of a buildah command that uses this store."""
    command = [
        need("buildah", "buildah"),
        f"--root={store}/root",
        f"--runroot={store}/run",
        "--storage-driver=vfs",
        *arguments,
    ]
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def base_tar(name: str, variant: str, packages: str, suite: str = "bookworm", architecture: str = "") -> Path:
    """A root file system of Debian, 12 unless another suite is given, made once and kept; without an architecture for this machine."""
    with cache_lock(name):
        return _base_tar(name, variant, packages, suite, architecture)


def _base_tar(name: str, variant: str, packages: str, suite: str, architecture: str) -> Path:
    place = cache_folder() / f"{name}.tar"
    if not place.exists():
        unfinished = place.with_suffix(".part.tar")
        command = [need("mmdebstrap", "mmdebstrap"), f"--variant={variant}", f"--include={packages}"]
        if architecture:
            command.append(f"--architectures={architecture}")
        made = subprocess.run([*command, suite, str(unfinished)], capture_output=True, text=True, check=False)
        if made.returncode:
            lacking(f"mmdebstrap failed: {made.stderr.strip()[-300:]}")
        unfinished.rename(place)
    return place


def machine_tar(suite: str = "bookworm") -> Path:
    """The root file system of a machine that can boot, for all tests that need one."""
    return base_tar(f"machine-{suite}", "minbase", MACHINE, suite)


def signatures(store: Path) -> str:
    """The flag that accepts images without a signature."""
    policy = store / "policy.json"
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    return f"--signature-policy={policy}"


def add_base(store: Path, name: str, tar: Path | None, architecture: str = "") -> None:
    """The image localhost/NAME, unless it is in the store: a root file system, or nothing, for an architecture or this machine's."""
    policy = signatures(store)
    if f"localhost/{name}:" in buildah(store, "images", "--format={{.Name}}:"):
        return
    container = buildah(store, "from", policy, "scratch").strip()
    if tar:
        buildah(store, "add", "--quiet", container, str(tar), "/")
    if architecture:
        buildah(store, "config", f"--arch={architecture}", container)
    buildah(store, "commit", "--quiet", "--rm", policy, container, f"localhost/{name}")
