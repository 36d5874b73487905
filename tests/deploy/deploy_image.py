"""Root file systems of Debian packages by mmdebstrap, and buildah in chroot isolation: what the tests need of a container engine."""

import json
import os
import platform
from pathlib import Path

from deploy_tools import cache_lock, printed, ran
from tools import cache_folder, lacking, need

RUNTIME = (
    "python3-minimal,libpython3.11-stdlib,libc6,libssl3,zlib1g,libexpat1,libffi8,libbz2-1.0,liblzma5,"
    "libuuid1,base-files,netbase,tzdata"
)
"""About the content of distroless python3: no shell, no package manager."""

BUILD = "python3-venv,ca-certificates"
MACHINE = "systemd,systemd-sysv,python3,init-system-helpers,curl,procps,util-linux,python3-apt,python3-venv,nftables"
"""A machine that boots, with what the package and the Ansible role need of it, so that tests read no mirror."""
CERTIFICATES = "/etc/ssl/certs"
HERE, OTHER = ("arm64", "amd64") if platform.machine() == "aarch64" else ("amd64", "arm64")


def root_tar(
    name: str, variant: str, packages: str, suite: str = "bookworm", architecture: str = HERE
) -> Path:
    """A root file system of Debian, 12 unless another suite is given, made once and kept."""
    place = cache_folder() / f"{name}.tar"
    with cache_lock(name):
        if not place.exists():
            unfinished = place.with_suffix(".part.tar")
            flags = (f"--variant={variant}", f"--include={packages}", f"--architectures={architecture}")
            made = ran(need("mmdebstrap"), *flags, suite, unfinished)
            if made.returncode:
                lacking(f"mmdebstrap failed: {made.stderr.strip()[-300:]}")
            unfinished.rename(place)
    return place


def machine_tar(suite: str = "bookworm") -> Path:
    """The root file system of a machine that can boot, for all tests that need one."""
    return root_tar(f"machine-{suite}", "minbase", MACHINE, suite)


def settings(store: Path) -> dict[str, str]:
    """An environment in which buildah uses this store, as one without a container engine must."""
    places = {"driver": "vfs", "graphroot": f"{store}/root", "runroot": f"{store}/run"}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in places.items())
    (store / "storage.conf").write_text(f"[storage]\n{lines}\n")
    # a machine's own certificate authorities, in case a proxy is between it and the package index
    (store / "containers.conf").write_text(f'[containers]\nvolumes = ["{CERTIFICATES}:{CERTIFICATES}:ro"]\n')
    policy = store / ".config/containers/policy.json"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    return {
        **os.environ,
        "HOME": str(store),
        "BUILDAH_ISOLATION": "chroot",
        "CONTAINERS_CONF": f"{store}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{store}/storage.conf",
    }


def buildah(store: Path, *words: str | Path) -> str:
    """What a buildah command prints."""
    return printed(need("buildah"), *words, env=settings(store)).strip()


def add_base(store: Path, name: str, tar: Path, architecture: str = HERE) -> None:
    """The image localhost/NAME of a root file system."""
    container = buildah(store, "from", "scratch")
    buildah(store, "add", "--quiet", container, tar, "/")
    buildah(store, "config", f"--arch={architecture}", container)
    buildah(store, "commit", "--quiet", "--rm", container, f"localhost/{name}")


def add_bases(store: Path) -> None:
    """The images localhost/build and localhost/runtime-ARCHITECTURE.

    The default bases of the Containerfile, python:3.11-slim-bookworm and distroless python3-debian12, are Debian 12 with
    Python 3.11 too. Those images themselves are not fetched here.
    """
    add_base(store, "build", root_tar("build", "apt", BUILD))
    for architecture in (HERE, OTHER):
        tar = root_tar(f"runtime-{architecture}", "extract", RUNTIME, architecture=architecture)
        add_base(store, f"runtime-{architecture}", tar, architecture)
