"""The image for two architectures: the archive of deploy/container/build.sh, built without a registry, and what is in it."""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deploy_image import BUILD, CERTIFICATES, RUNTIME, add_base, base_tar
from deploy_tools import ROOT, cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE, OTHER = ("arm64", "amd64") if platform.machine() == "aarch64" else ("amd64", "arm64")
MACHINES = {"amd64": 62, "arm64": 183}
"""The field e_machine of ELF files (System V ABI): EM_X86_64 and EM_AARCH64."""
CONTEXT = ("LICENSE", "README.md", "pyproject.toml", "alerts", "roce_exporter", "deploy/container")
RELEASE = {"SOURCE_DATE_EPOCH": "1700000000", "REVISION": "0" * 40}


@dataclass(frozen=True)
class Built:
    """The image for one architecture."""

    config: dict[str, Any]
    layers: tuple[str, ...]
    """Paths in the archive, the lowest layer first."""


def has_other_base() -> bool:
    """Whether the base for the other architecture is made: in CI, where its Debian packages cost too much time, only if it is there."""
    return os.environ.get("CI") != "true" or (cache_folder() / f"runtime-{OTHER}.tar").exists()


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


def run_script(
    top: Path, folder: Path, environment: dict[str, str], umask: int = 0o022
) -> subprocess.CompletedProcess[str]:
    """Run deploy/container/build.sh of a checkout; it has no BUILD and RUNTIME other than those of the environment."""
    return subprocess.run(
        ["sh", top / "deploy/container/build.sh", folder],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )


def archive(store: Path, top: Path, folder: Path, umask: int = 0o022) -> Path:
    """The archive that the script makes of a checkout, on the bases of `add_bases`."""
    names = {"BUILD": "localhost/build", "RUNTIME": "localhost/runtime-{arch}"}
    made = run_script(top, folder, {**settings(store), **RELEASE, **names}, umask)
    assert made.returncode == 0, made.stderr[-2000:]
    return folder / made.stdout.strip().rpartition("/")[2]


def add_bases(store: Path) -> None:
    """The images localhost/build and localhost/runtime-ARCHITECTURE."""
    add_base(store, "build", base_tar("build", "apt", BUILD))
    add_base(store, f"runtime-{HERE}", base_tar("runtime", "extract", RUNTIME))
    other = base_tar(f"runtime-{OTHER}", "extract", RUNTIME, architecture=OTHER) if has_other_base() else None
    add_base(store, f"runtime-{OTHER}", other, OTHER)


def copy_source(place: Path) -> None:
    """What the image is built from, in another folder, with other times and permissions and without a history."""
    for name in (*CONTEXT, *(lock.name for lock in ROOT.glob("requirements*.lock"))):
        source, copy = ROOT / name, place / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, copy)
            copy.chmod(0o640)


def _json(file: tarfile.TarFile, digest: str) -> dict[str, Any]:
    return dict(json.loads(_bytes(file, _blob(digest))))


def _bytes(file: tarfile.TarFile, name: str) -> bytes:
    member = file.extractfile(name)
    assert member is not None
    return member.read()


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def images(path: Path) -> dict[str, Built]:
    """The images of an archive by the architecture that its index names (OCI image layout 1.0)."""
    with tarfile.open(path) as file:
        [entry] = json.loads(_bytes(file, "index.json"))["manifests"]
        found = {}
        for listed in _json(file, entry["digest"])["manifests"]:
            manifest = _json(file, listed["digest"])
            config = _json(file, manifest["config"]["digest"])
            layers = tuple(_blob(layer["digest"]) for layer in manifest["layers"])
            found[listed["platform"]["architecture"]] = Built(config, layers)
        return found


def programs(path: Path, layers: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Name and machine of each ELF file in layers of an archive."""
    with tarfile.open(path) as file:
        for layer in layers:
            packed = file.extractfile(layer)
            with gzip.open(packed) as plain, tarfile.open(fileobj=plain, mode="r|") as members:  # type: ignore[arg-type]
                for member in members:
                    content = members.extractfile(member) if member.isreg() else None
                    start = content.read(20) if content else b""
                    if start.startswith(b"\x7fELF"):
                        yield member.name.removeprefix("./"), int.from_bytes(start[18:20], "little")
