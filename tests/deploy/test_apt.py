"""The apt repository: real apt in a clean Debian installs, upgrades, removes and purges from it, and refuses what was changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from apt_repository import COMMAND, CleanDebian, keyring, publish, served, with_version
from deploy_tools import need_root

import roce_exporter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.nightly

VERSION = roce_exporter.__version__
HIGHER = f"{VERSION}+1"
INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "roce-exporter")
UPDATE = ("apt-get", "update", "--quiet")


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CleanDebian]:
    need_root()
    folder = tmp_path_factory.mktemp("debian")
    folder.chmod(0o755)
    yield CleanDebian(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def keys() -> Iterator[dict[str, str]]:
    # below /tmp itself: the sockets of gpg-agent have short names
    folder = Path(f"/tmp/roce-keys-{os.getpid()}")
    with keyring(folder, "old@localhost", "new@localhost") as environment:
        yield environment
    shutil.rmtree(folder, ignore_errors=True)  # the agent removes its sockets meanwhile


@pytest.fixture
def repository(package: str, keys: dict[str, str], tmp_path: Path) -> Path:
    """A repository that the old key signed."""
    folder = tmp_path / "repository"
    told = publish(folder, "old@localhost", keys, package)
    assert told.stdout.strip() == str(folder), told.stderr
    return folder


def exported(name: str, environment: dict[str, str]) -> bytes:
    command = ["gpg", "--batch", "--armor", "--export", name]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_install_upgrade_remove_and_purge(
    debian: CleanDebian, repository: Path, keys: dict[str, str], package: str, tmp_path: Path
) -> None:
    root = debian.root
    default = root / "etc/default/roce-exporter"
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        debian.must(*UPDATE)
        debian.must(*INSTALL)
        assert debian.state() == f"ii {VERSION}"
        assert "\nroce_ecn_marked_packets_total{" in debian.must(COMMAND, "once", "--host.simulate=quiet")
        default.write_text('ROCE_EXPORTER_FLAGS="--mine"\n')

        told = publish(repository, "old@localhost", keys, with_version(package, HIGHER, tmp_path))
        assert told.returncode == 0, told.stderr
        debian.must(*UPDATE)
        debian.must("apt-get", "upgrade", "--yes", "--quiet")
        assert debian.state() == f"ii {HIGHER}"
        debian.must(
            "apt-get", "install", "--yes", "--quiet", "--allow-downgrades", f"roce-exporter={VERSION}"
        )
        assert debian.state() == f"ii {VERSION}"
        assert default.read_text() == 'ROCE_EXPORTER_FLAGS="--mine"\n'
    debian.must("apt-get", "remove", "--yes", "--quiet", "roce-exporter")
    assert (debian.state(), default.exists()) == (f"rc {VERSION}", True)
    assert not (root / "opt/roce-exporter").exists()
    debian.must("apt-get", "purge", "--yes", "--quiet", "roce-exporter")
    assert (debian.state(), default.exists()) == ("", False)
    assert not list(root.glob("etc/systemd/system/*.wants/roce-exporter*"))


def test_a_changed_package_is_refused(debian: CleanDebian, repository: Path) -> None:
    (package,) = repository.rglob("*.deb")
    content = bytearray(package.read_bytes())
    content[-1] ^= 1
    package.write_bytes(content)
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        debian.must(*UPDATE)
        told = debian.run(*INSTALL)
    assert told.returncode
    assert "Hash Sum mismatch" in told.stdout
    assert debian.state() == ""


@pytest.mark.parametrize("name", ["InRelease", "Release"])
def test_a_changed_release_is_refused(debian: CleanDebian, repository: Path, name: str) -> None:
    """InRelease has its signature in it. Without it apt reads Release and Release.gpg."""
    suite = repository / "dists/stable"
    if name == "Release":
        (suite / "InRelease").unlink()
    release = suite / name
    release.write_text(release.read_text().replace("Origin: roce_exporter", "Origin: someone"))
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        told = debian.run(*UPDATE)
    assert told.returncode
    # what gpgv says, or sqv
    assert re.search("BADSIG|Message has been manipulated", told.stdout), told.stdout


def test_a_changed_index_is_refused(debian: CleanDebian, repository: Path) -> None:
    for index in (path for path in repository.glob("dists/stable/main/**/*") if path.is_file()):
        content = bytearray(index.read_bytes())
        content[-1] ^= 1
        index.write_bytes(content)
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        told = debian.run(*UPDATE)
    assert told.returncode
    assert "Hash Sum mismatch" in told.stdout


def test_another_key_is_refused(debian: CleanDebian, repository: Path, keys: dict[str, str]) -> None:
    with served(repository) as url:
        debian.trust(url, exported("new@localhost", keys))
        told = debian.run(*UPDATE)
    assert told.returncode
    # what gpgv says, or sqv
    assert re.search("NO_PUBKEY|needed to verify signature", told.stdout), told.stdout


def test_while_keys_change_either_is_enough(
    debian: CleanDebian, repository: Path, keys: dict[str, str]
) -> None:
    told = publish(repository, "old@localhost,new@localhost", keys)
    assert told.returncode == 0, told.stderr
    with served(repository) as url:
        for name in ("old@localhost", "new@localhost"):
            debian.trust(url, exported(name, keys))
            debian.must(*UPDATE)
            assert VERSION in debian.must("apt-cache", "policy", "roce-exporter")


def test_an_expired_index_is_refused(debian: CleanDebian, repository: Path, keys: dict[str, str]) -> None:
    past = str(int(time.time()) - 3 * 86_400)
    told = publish(repository, "old@localhost", {**keys, "SOURCE_DATE_EPOCH": past, "VALID_DAYS": "2"})
    assert told.returncode == 0, told.stderr
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        told = debian.run(*UPDATE)
    assert told.returncode
    assert "is expired" in told.stdout


def test_an_index_stays_by_its_checksum_after_the_next_one(
    debian: CleanDebian, repository: Path, keys: dict[str, str], package: str, tmp_path: Path
) -> None:
    """A client that has the previous Release can complete its update."""
    suite = repository / "dists/stable"
    previous = {name: (suite / name).read_bytes() for name in ("InRelease", "Release", "Release.gpg")}
    told = publish(repository, "old@localhost", keys, with_version(package, HIGHER, tmp_path))
    assert told.returncode == 0, told.stderr
    for name, content in previous.items():
        (suite / name).write_bytes(content)
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        debian.must(*UPDATE)
        versions = debian.must("apt-cache", "policy", "roce-exporter")
    assert VERSION in versions
    assert HIGHER not in versions


def test_a_published_package_does_not_change(repository: Path, keys: dict[str, str], tmp_path: Path) -> None:
    (published,) = repository.rglob("*.deb")
    other = tmp_path / published.name
    other.write_bytes(published.read_bytes() + b"more")
    release = (repository / "dists/stable/Release").read_bytes()
    told = publish(repository, "old@localhost", keys, str(other))
    assert told.returncode == 1
    assert "exists and differs" in told.stderr
    assert (repository / "dists/stable/Release").read_bytes() == release
