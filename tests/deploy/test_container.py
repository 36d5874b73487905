"""The image is built from the Containerfile and runs as an engine would run it, without an engine.

Not tested because it needs an engine: the published base images, cgroups, the engine's own seccomp and AppArmor
profiles.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deploy_archive import (
    HERE,
    MACHINES,
    OTHER,
    add_bases,
    archive,
    copy_source,
    has_other_base,
    images,
    programs,
    run_script,
    settings,
)
from deploy_daemon import running
from deploy_image import Image, buildah, signatures
from deploy_tools import DEPLOY, ROOT, fetch, need_root, shipped_data, tool_environment

import roce_exporter
from roce_exporter.cli.shared_flags import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.nightly

CONTAINERFILE = DEPLOY / "container/Containerfile"
CONTAINED = Path(__file__).with_name("contained.py")
LARGEST = 120 * 1000 * 1000


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where buildah keeps the bases and what is made of them."""
    need_root()
    store = tmp_path_factory.mktemp("images")
    add_bases(store)
    yield store
    shutil.rmtree(store)  # a gigabyte, which pytest would keep for three runs


@pytest.fixture(scope="session")
def oci(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a release."""
    return archive(store, ROOT, tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="session")
def image(store: Path, oci: Path) -> Image:
    """The image for this machine, pulled from the archive."""
    name = buildah(store, "pull", "--quiet", signatures(store), f"oci-archive:{oci}").strip()
    return Image(name, store)


@pytest.fixture(scope="session")
def config(image: Image) -> dict[str, Any]:
    told = json.loads(image.buildah("inspect", "--type=image", image.name))
    return dict(told["OCIv1"]["config"])


@pytest.fixture(scope="session")
def root(image: Image) -> Iterator[str]:
    """The file system of a container of the image."""
    policy = f"--signature-policy={image.store}/policy.json"
    container = image.buildah("from", "--pull-never", policy, image.name).strip()
    yield image.buildah("mount", container).strip()
    image.buildah("rm", container)


def test_hadolint_finds_nothing() -> None:
    hadolint = tool_environment("lint") / "hadolint"
    verdict = subprocess.run([hadolint, CONTAINERFILE], capture_output=True, text=True, check=False)
    assert (verdict.returncode, verdict.stdout) == (0, "")


def test_the_image_is_small(root: str) -> None:
    """Unpacked, as a node keeps it; the download is about half of that."""
    places = Path(root).rglob("*")
    size = sum(place.lstat().st_size for place in places if place.is_file() and not place.is_symlink())
    assert 20_000_000 < size < LARGEST


def test_it_holds_no_shell_no_package_manager_and_no_tests(root: str) -> None:
    assert not [
        name
        for name in ("sh", "bash", "dash", "apt", "pip", "pip3")
        if (Path(root) / "usr/bin" / name).exists()
    ]
    packages = {place.name for place in (Path(root) / "opt/roce-exporter").iterdir()}
    assert {"roce_exporter", "prometheus_client", "yaml", "h11", "bcrypt"} <= packages
    assert not packages & {"tests", "bin", "hatchling", "pip"}


def test_it_holds_the_data_files_of_the_wheel(root: str) -> None:
    place = Path(root) / "opt/roce-exporter"
    assert not [name for name in shipped_data() if not (place / name).is_file()]


def test_nothing_in_it_belongs_to_or_may_be_written_by_the_user_that_runs_it(root: str) -> None:
    for place in (Path(root) / "opt").rglob("*"):
        status = place.lstat()
        assert status.st_uid == 0
        assert place.is_symlink() or not status.st_mode & 0o022, place


def test_nothing_in_it_raises_privileges(root: str) -> None:
    raising = [
        place
        for place in Path(root).rglob("*")
        if place.is_file() and not place.is_symlink() and place.stat().st_mode & 0o6000
    ]
    assert not raising


def test_it_has_the_user_the_port_and_the_licence(config: dict[str, Any]) -> None:
    assert config["User"] == "65532:65532"
    assert [port.removesuffix("/tcp") for port in config["ExposedPorts"]] == [str(DEFAULT_PORT)]
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_buildah_runs_it_as_the_user_it_names(image: Image) -> None:
    policy = f"--signature-policy={image.store}/policy.json"
    container = image.buildah("from", "--pull-never", policy, image.name).strip()
    code = "import os; print(os.getuid(), os.getgid())"
    told = image.buildah("run", "--isolation=chroot", container, "--", "/usr/bin/python3", "-c", code)
    version = image.buildah(
        "run", "--isolation=chroot", container, "--", "/usr/bin/python3", "-m", "roce_exporter", "--version"
    )
    image.buildah("rm", container)
    assert told == "65532 65532\n"
    assert version == f"roce-exporter {roce_exporter.__version__}\n"


@pytest.mark.parametrize("host", [[], ["--host.simulate=incast"]], ids=["this host", "simulated"])
def test_it_serves_without_a_place_to_write(root: str, config: dict[str, Any], host: list[str]) -> None:
    """Read-only root and /sys, the host's network, no capability."""
    serves(root, config, host)


def serves(root: str, config: dict[str, Any], host: list[str]) -> None:
    """The image runs and stops; a simulated host has RDMA devices."""
    with running([sys.executable, str(CONTAINED), root, json.dumps(config)], flags=host) as daemon:
        assert daemon.hear() == "READY=1"
        assert Path(f"/proc/{daemon.process.pid}/root").resolve() == Path(root)
        metrics = fetch(f"{daemon.url}/metrics")
        assert "roce_exporter_build_info{" in metrics
        assert ("\nroce_ecn_marked_packets_total{" in metrics) == bool(host)
        assert "healthy" in fetch(f"{daemon.url}/-/healthy")
        assert daemon.stop() == 0


def test_the_archive_of_a_release_is_the_same_in_another_folder(
    store: Path, oci: Path, tmp_path: Path
) -> None:
    copy_source(tmp_path / "source")
    again = archive(store, tmp_path / "source", tmp_path / "again", umask=0o077)
    assert again.name == oci.name == f"roce-exporter-{roce_exporter.__version__}-oci.tar"
    assert again.read_bytes() == oci.read_bytes()


def test_the_archive_has_an_image_for_each_architecture(oci: Path) -> None:
    found = images(oci)
    assert set(found) == set(MACHINES)
    for architecture, built in found.items():
        assert built.config["architecture"] == architecture
        config = built.config["config"]
        assert config["User"] == "65532:65532"
        assert config["Entrypoint"] == ["/usr/bin/python3", "-m", "roce_exporter"]
        labels = {
            name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()
        }
        assert labels["version"] == roce_exporter.__version__
        assert labels["revision"] == "0" * 40
        assert labels["licenses"] == "Apache-2.0"


def test_every_program_in_it_is_for_its_architecture(oci: Path) -> None:
    """The libraries of the exporter, and the base; for the other architecture CI may have no base."""
    for architecture, built in images(oci).items():
        machines = dict(programs(oci, built.layers))
        assert set(machines.values()) == {MACHINES[architecture]}
        assert any(name.startswith("opt/roce-exporter/") for name in machines)
        assert ("usr/bin/python3.11" in machines) == (architecture == HERE or has_other_base())


@pytest.mark.parametrize(
    ("bases", "code", "told"),
    [
        (("", ""), 2, "BUILD and RUNTIME must name the base images"),
        (("localhost/build", "localhost/none-{arch}"), 1, "localhost/none-amd64 for amd64 cannot be had"),
        (("localhost/build", f"localhost/runtime-{HERE}"), 1, f"for {OTHER} cannot be had"),
        (("docker.io/library/python:3.11", "localhost/runtime-{arch}"), 2, "has no digest"),
    ],
    ids=["none", "absent", "another architecture", "tag"],
)
def test_without_its_bases_the_archive_is_not_built(
    store: Path, tmp_path: Path, bases: tuple[str, str], code: int, told: str
) -> None:
    names = dict(zip(("BUILD", "RUNTIME"), bases, strict=True))
    verdict = run_script(ROOT, tmp_path, {**settings(store), **names})
    assert verdict.returncode == code
    assert told in verdict.stderr
    assert verdict.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_every_lock_file_that_the_containerfile_names_is_in_its_context() -> None:
    kept = [
        line.removeprefix("!")
        for line in Path(f"{CONTAINERFILE}.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    named = set(re.findall(r"requirements[\w-]*\.lock", CONTAINERFILE.read_text()))
    assert len(named) > 2
    assert not [name for name in named if not any(fnmatch.fnmatch(name, pattern) for pattern in kept)]
