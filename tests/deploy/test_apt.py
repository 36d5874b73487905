"""The apt repository: real apt in a clean Debian installs, upgrades, removes and purges from it, and refuses what was changed."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apt_repository import CleanDebian, keyring, publish, served, with_version
from deploy_tools import need_root, printed
from release_builds import MOMENT

import roce_exporter

pytestmark = pytest.mark.nightly

COMMAND = "roce-exporter"
VERSION = roce_exporter.__version__
HIGHER = f"{VERSION}+1"
INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "roce-exporter")
UPDATE = ("apt-get", "update", "--quiet")
OWNER, OTHER = "old@localhost", "new@localhost"


@pytest.fixture(scope="module")
def debian(tmp_path_factory) -> Iterator[CleanDebian]:
    need_root()
    folder = tmp_path_factory.mktemp("debian")
    folder.chmod(0o755)
    yield CleanDebian(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def keys() -> Iterator[dict[str, str]]:
    with keyring(OWNER, OTHER) as environment:
        yield environment


@pytest.fixture
def repository(package, keys, tmp_path) -> Path:
    """A repository that the owner's key signed."""
    folder = tmp_path / "repository"
    published(folder, keys, package)
    return folder


def published(
    folder: Path, keys: dict[str, str], *packages: Path, names: str = OWNER, umask: int = -1
) -> None:
    done = publish(folder, names, keys, *packages, umask=umask)
    assert (done.returncode, done.stdout.strip()) == (0, str(folder)), done.stderr


def exported(name: str, environment: dict[str, str]) -> bytes:
    return printed("gpg", "--batch", "--armor", "--export", name, env=environment).encode()


@pytest.mark.release("deb", "install", "metric", "upgrade", "rollback", "remove")
@pytest.mark.release("apt repository", "install", "metric", "upgrade", "rollback", "remove")
def test_install_upgrade_remove_and_purge(debian, repository, keys, package, tmp_path) -> None:
    root = debian.root
    default = root / "etc/default/roce-exporter"
    apt = ("apt-get", "--yes", "--quiet")
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        debian.must(*UPDATE)
        debian.must(*INSTALL)
        assert debian.state() == f"ii {VERSION}"
        assert "\nroce_ecn_marked_packets_total{" in debian.must(COMMAND, "once", "--host.simulate=quiet")
        default.write_text('ROCE_EXPORTER_FLAGS="--mine"\n')
        published(repository, keys, with_version(package, HIGHER, tmp_path))
        debian.must(*UPDATE)
        debian.must(*apt, "upgrade")
        assert debian.state() == f"ii {HIGHER}"
        debian.must(*apt, "install", "--allow-downgrades", f"roce-exporter={VERSION}")
        assert debian.state() == f"ii {VERSION}"
        assert default.read_text() == 'ROCE_EXPORTER_FLAGS="--mine"\n'
    debian.must(*apt, "remove", "roce-exporter")
    assert (debian.state(), default.exists()) == (f"rc {VERSION}", True)
    assert not (root / "opt/roce-exporter").exists()
    debian.must(*apt, "purge", "roce-exporter")
    assert (debian.state(), default.exists()) == ("", False)
    assert not list(root.glob("etc/systemd/system/*.wants/roce-exporter*"))


@pytest.mark.release("apt repository", "bytes")
def test_the_same_packages_key_and_time_give_the_same_repository(keys, package, tmp_path) -> None:
    """Signatures too. In another folder, with another umask and time zone."""
    moment = {**keys, "SOURCE_DATE_EPOCH": str(MOMENT)}
    published(tmp_path / "first", moment, package)
    elsewhere = tmp_path / "elsewhere/second"
    elsewhere.parent.mkdir()
    published(elsewhere, {**moment, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}, package, umask=0o077)
    first, second = (
        {
            str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in folder.rglob("*")
        }
        for folder in (tmp_path / "first", elsewhere)
    )
    assert {"dists/stable/InRelease", "dists/stable/Release.gpg", "roce-exporter.asc"} < first.keys()
    assert first == second


def change_last_byte(*paths: Path) -> None:
    for path in paths:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)


def change_release(repository: Path, name: str) -> None:
    """InRelease has its signature in it. Without it apt reads Release and Release.gpg."""
    suite = repository / "dists/stable"
    if name == "Release":
        (suite / "InRelease").unlink()
    text = (suite / name).read_text()
    (suite / name).write_text(text.replace("Origin: roce_exporter", "Origin: someone"))


def let_expire(repository: Path, keys: dict[str, str]) -> None:
    past = str(int(time.time()) - 3 * 86_400)
    published(repository, {**keys, "SOURCE_DATE_EPOCH": past, "VALID_DAYS": "2"})


CHANGED = "BADSIG|Message has been manipulated"
"""What gpgv says, or sqv."""
INDEXES = "dists/stable/main/**/*"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda place, _: change_release(place, "InRelease"), CHANGED),
        (lambda place, _: change_release(place, "Release"), CHANGED),
        (
            lambda place, _: change_last_byte(*filter(lambda path: path.is_file(), place.glob(INDEXES))),
            "Hash Sum mismatch",
        ),
        (let_expire, "is expired"),
    ],
    ids=["InRelease", "Release", "index", "expired"],
)
def test_a_changed_or_old_repository_is_refused(debian, repository, keys, change, said) -> None:
    change(repository, keys)
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        code, printed = debian.run(*UPDATE)
    assert code
    assert re.search(said, printed), printed


def test_a_changed_package_is_refused(debian, repository) -> None:
    change_last_byte(*repository.rglob("*.deb"))
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        debian.must(*UPDATE)
        code, said = debian.run(*INSTALL)
    assert code
    assert "Hash Sum mismatch" in said
    assert debian.state() == ""


@pytest.mark.release("apt repository", "signed")
def test_another_key_is_refused_and_while_keys_change_either_is_enough(debian, repository, keys) -> None:
    with served(repository) as url:
        debian.trust(url, exported(OTHER, keys))
        code, said = debian.run(*UPDATE)
        assert code
        assert re.search("NO_PUBKEY|needed to verify signature", said), said
        published(repository, keys, names=f"{OWNER},{OTHER}")
        for name in (OWNER, OTHER):
            debian.trust(url, exported(name, keys))
            debian.must(*UPDATE)
            assert VERSION in debian.must("apt-cache", "policy", "roce-exporter")


def test_an_index_stays_by_its_checksum_after_the_next_one(
    debian, repository, keys, package, tmp_path
) -> None:
    """A client that has the previous Release can complete its update."""
    suite = repository / "dists/stable"
    previous = {name: (suite / name).read_bytes() for name in ("InRelease", "Release", "Release.gpg")}
    published(repository, keys, with_version(package, HIGHER, tmp_path))
    for name, content in previous.items():
        (suite / name).write_bytes(content)
    with served(repository) as url:
        debian.trust(url, (repository / "roce-exporter.asc").read_bytes())
        debian.must(*UPDATE)
        versions = debian.must("apt-cache", "policy", "roce-exporter")
    assert VERSION in versions
    assert HIGHER not in versions


def test_a_published_package_does_not_change(repository, keys, tmp_path) -> None:
    (package,) = repository.rglob("*.deb")
    other = tmp_path / package.name
    other.write_bytes(package.read_bytes() + b"more")
    release = (repository / "dists/stable/Release").read_bytes()
    done = publish(repository, OWNER, keys, other)
    assert done.returncode == 1
    assert "exists and differs" in done.stderr
    assert (repository / "dists/stable/Release").read_bytes() == release
