"""A signed apt repository with its keys, served over HTTP to a clean root of Debian that has no other source of packages.

The root is Debian 12, or the suite in ROCE_APT_SUITE.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from deploy_image import machine_tar
from deploy_tools import DEPLOY, ran
from http_answers import answering
from release_keys import keys
from tools import need

BIRTH = 1_700_000_000
"""When the keys are made: before any time at which a test signs."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a web server for this folder."""

    def reply(path: str) -> tuple[int, bytes]:
        place = folder / unquote(path).strip("/")  # apt writes a plus of a version as %2b
        return (200, place.read_bytes()) if place.is_file() else (404, b"")

    with answering(reply) as server:
        yield server.url


@contextmanager
def keyring(*names: str) -> Iterator[dict[str, str]]:
    """The environment in which gpg has a key of each name, made in the past."""
    need("apt-ftparchive")
    with keys(f"--faked-system-time={BIRTH}", names=names) as found:
        yield {**os.environ, "GNUPGHOME": str(found.home)}


def publish(
    folder: Path, key: str, environment: dict[str, str], *packages: Path, umask: int = -1
) -> subprocess.CompletedProcess[str]:
    """What deploy/apt/build.sh prints; it adds the packages to the repository in this folder."""
    return ran(DEPLOY / "apt/build.sh", folder, key, *packages, env=environment, umask=umask)


def with_version(package: Path, version: str, folder: Path) -> Path:
    """The same package with another version."""
    tree = folder / f"tree-{version}"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines()
    changed = [f"Version: {version}" if line.startswith("Version:") else line for line in lines]
    control.write_text("\n".join((*changed, "")))
    place = folder / f"roce-exporter_{version}_{package.stem.rpartition('_')[2]}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, place]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return place


class CleanDebian:
    """A root file system with apt; its only source is the one that `trust` adds."""

    def __init__(self, folder: Path) -> None:
        """Unpack it."""
        self.root = folder
        tar = machine_tar(os.environ.get("ROCE_APT_SUITE", "bookworm"))
        subprocess.run(["tar", "--extract", "-f", tar, "-C", folder], check=True)
        (folder / "etc/apt/sources.list").unlink(missing_ok=True)
        for sources in (folder / "etc/apt/sources.list.d").glob("*"):
            sources.unlink()
        # a chroot has no running systemd, and no network but this machine's
        (folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (folder / "usr/sbin/policy-rc.d").chmod(0o755)

    def run(self, *command: str) -> tuple[int, str]:
        """Exit code and messages of a command in the root, with a minimal environment and in English."""
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
        }
        done = ran("chroot", self.root, *command, env=environment, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def must(self, *command: str) -> str:
        """The output of a command that succeeds."""
        code, said = self.run(*command)
        assert code == 0, f"{command}: {said}"
        return said

    def trust(self, url: str, key: bytes) -> None:
        """Add the source as deploy/apt/README.md says, and forget lists and packages of another one."""
        shutil.rmtree(self.root / "var/lib/apt/lists")
        self.must("apt-get", "clean")
        ring = self.root / "etc/apt/keyrings"
        ring.mkdir(exist_ok=True)
        (ring / "roce-exporter.asc").write_bytes(key)
        text = (DEPLOY / "apt/roce-exporter.sources").read_text()
        assert "https://packages.example.com/roce-exporter" in text
        text = text.replace("https://packages.example.com/roce-exporter", url)
        (self.root / "etc/apt/sources.list.d/roce-exporter.sources").write_text(text)

    def state(self) -> str:
        """What dpkg has of the package: `ii 0.1.0`, `rc 0.1.0`, or nothing."""
        code, said = self.run(
            "dpkg-query", "--show", "--showformat=${db:Status-Abbrev}${Version}", "roce-exporter"
        )
        return said if code == 0 else ""
