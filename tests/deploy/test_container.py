"""The image is built from the Containerfile for two architectures, without a registry, and runs as an engine would run it, without an engine.

Not tested because it needs an engine: the published base images, cgroups, the engine's own seccomp and AppArmor
profiles.
"""

import fnmatch
import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deploy_image import HERE, OTHER, add_bases, buildah, settings
from deploy_servers import running
from deploy_tools import DEPLOY, ROOT, SOURCES, fetch, need_root, printed, ran, shipped_data, tool_environment
from release_builds import EARLIER, build, commit, downloads
from release_keys import keys
from tools import lacking

import roce_exporter
from roce_exporter.cli.flags import DEFAULT_PORT

CONTAINERFILE = DEPLOY / "container/Containerfile"
CONTAINED = Path(__file__).with_name("contained.py")
LARGEST = 120 * 1000 * 1000
MACHINES = {"amd64": 62, "arm64": 183}
"""The field e_machine of ELF files (System V ABI): EM_X86_64 and EM_AARCH64."""
BASES = ("localhost/build", "localhost/runtime-{arch}")
RELEASE = {"SOURCE_DATE_EPOCH": "1700000000", "REVISION": "0" * 40}


def run_script(
    top: Path,
    folder: Path,
    store: Path,
    bases: tuple[str, str] = BASES,
    *within: str,
    umask: int = 0o022,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run deploy/container/build.sh of a checkout within another command, by default on the bases of `add_bases`."""
    environment = {**settings(store), **RELEASE, "BUILD": bases[0], "RUNTIME": bases[1], **more}
    script = top / "deploy/container/build.sh"
    return ran(*within, "sh", script, folder, env=environment, umask=umask)


def archive(made: subprocess.CompletedProcess[str], folder: Path) -> Path:
    """The archive that the script made."""
    assert made.returncode == 0, made.stderr[-2000:]
    return folder / made.stdout.strip().rpartition("/")[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where buildah keeps the bases and what is made of them."""
    need_root()
    store = tmp_path_factory.mktemp("images")
    add_bases(store)
    yield store
    shutil.rmtree(store)  # a gigabyte, which pytest would keep for three runs


@pytest.fixture(scope="module")
def oci(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a release."""
    folder = tmp_path_factory.mktemp("archive")
    return archive(run_script(ROOT, folder, store), folder)


@pytest.fixture(scope="module")
def image(store: Path, oci: Path) -> str:
    """The image for this machine, pulled from the archive."""
    return buildah(store, "pull", "--quiet", f"oci-archive:{oci}")


@pytest.fixture(scope="module")
def config(store: Path, image: str) -> dict[str, Any]:
    return dict(json.loads(buildah(store, "inspect", "--type=image", image))["OCIv1"]["config"])


@pytest.fixture(scope="module")
def container(store: Path, image: str) -> str:
    return buildah(store, "from", "--pull-never", image)


@pytest.fixture(scope="module")
def root(store: Path, container: str) -> Path:
    """The file system of a container of the image."""
    return Path(buildah(store, "mount", container))


@pytest.mark.ci
def test_hadolint_finds_nothing() -> None:
    done = ran(tool_environment("lint") / "hadolint", CONTAINERFILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_lock_file_that_the_containerfile_names_is_in_its_context() -> None:
    lines = Path(f"{CONTAINERFILE}.dockerignore").read_text().splitlines()
    kept = [line.removeprefix("!") for line in lines if line.startswith("!")]
    named = set(re.findall(r"requirements[\w-]*\.lock", CONTAINERFILE.read_text()))
    assert len(named) > 2
    assert not [name for name in named if not any(fnmatch.fnmatch(name, pattern) for pattern in kept)]


@pytest.mark.nightly
def test_it_holds_the_exporter_and_little_else(root: Path) -> None:
    """Unpacked, as a node keeps it; the download is about half of that."""
    files = [place for place in root.rglob("*") if place.is_file() and not place.is_symlink()]
    assert 20_000_000 < sum(place.stat().st_size for place in files) < LARGEST
    assert not [place for place in files if place.stat().st_mode & 0o6000], "raises privileges"
    tools = ("sh", "bash", "dash", "apt", "pip", "pip3")
    assert not [name for name in tools if (root / "usr/bin" / name).exists()]
    packages = {place.name for place in (root / "opt/roce-exporter").iterdir()}
    assert {"roce_exporter", "prometheus_client", "yaml", "h11", "bcrypt"} <= packages
    assert not packages & {"tests", "bin", "hatchling", "pip"}
    assert not [name for name in shipped_data() if not (root / "opt/roce-exporter" / name).is_file()]


@pytest.mark.nightly
def test_nothing_in_it_belongs_to_or_may_be_written_by_the_user_that_runs_it(root: Path) -> None:
    for place in (root / "opt").rglob("*"):
        status = place.lstat()
        assert status.st_uid == 0
        assert place.is_symlink() or not status.st_mode & 0o022, place


@pytest.mark.nightly
@pytest.mark.release("image", "install")
def test_buildah_runs_it_as_the_user_it_names(store: Path, container: str, config: dict[str, Any]) -> None:
    assert [port.removesuffix("/tcp") for port in config["ExposedPorts"]] == [str(DEFAULT_PORT)]
    python = ("run", "--isolation=chroot", container, "--", "/usr/bin/python3")
    said = buildah(store, *python, "-c", "import os; print(os.getuid(), os.getgid())")
    assert said == "65532 65532" == config["User"].replace(":", " ")
    version = buildah(store, *python, "-m", "roce_exporter", "--version")
    assert version == f"roce-exporter {roce_exporter.__version__}"


@pytest.mark.nightly
@pytest.mark.release("image", "metric")
def test_an_emulator_runs_the_image_of_the_other_architecture(store: Path, oci: Path) -> None:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[OTHER]
    if not Path(f"/proc/sys/fs/binfmt_misc/qemu-{machine}").exists():
        lacking(f"no emulator of {machine} is registered in binfmt_misc (tests/clean_roots.sh)")
    image = buildah(store, "pull", "--quiet", f"--arch={OTHER}", f"oci-archive:{oci}")
    container = buildah(store, "from", "--pull-never", image)
    python = ("run", "--isolation=chroot", container, "--", "/usr/bin/python3")
    assert buildah(store, *python, "-c", "import os; print(os.uname().machine)") == machine
    of_image = json.loads(buildah(store, "inspect", "--type=image", image))["OCIv1"]["config"]
    contained = (sys.executable, CONTAINED, buildah(store, "mount", container), json.dumps(of_image))
    said = printed(sys.executable, ROOT / "tests/storm_in_root.py", *contained)
    assert "a storm was counted" in said


@pytest.mark.nightly
@pytest.mark.parametrize("host", [[], ["--host.simulate=incast"]], ids=["this host", "simulated"])
@pytest.mark.release("image", "metric")
def test_it_serves_without_a_place_to_write(root: Path, config: dict[str, Any], host: list[str]) -> None:
    """Read-only root and /sys, the host's network, no capability. A simulated host has RDMA devices."""
    command = [sys.executable, str(CONTAINED), str(root), json.dumps(config)]
    with running(command, flags=host) as daemon:
        assert daemon.hear() == "READY=1"
        assert Path(f"/proc/{daemon.process.pid}/root").resolve() == root
        metrics = fetch(f"{daemon.url}/metrics")
        assert "roce_exporter_build_info{" in metrics
        assert ("\nroce_ecn_marked_packets_total{" in metrics) == bool(host)
        assert "healthy" in fetch(f"{daemon.url}/-/healthy")
        assert daemon.stop() == 0


@pytest.fixture(scope="module")
def earlier_oci(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image of a whole release under a lower version, for none is published yet; its list of hashes is signed by a throwaway key."""
    folder = tmp_path_factory.mktemp("earlier")
    source, release = commit(folder / "source", EARLIER, image=True), folder / "release"
    bases = {"PACKAGES": "container", "BUILD": BASES[0], "RUNTIME": BASES[1]}
    with keys() as owner:
        signed = {"RELEASE_KEY": "test@example.com", "RELEASE_TRIAL": "1", "GNUPGHOME": str(owner.home)}
        build(source, release, 0o022, **{**settings(store), **bases, **signed})
        owner.public(folder / "key.asc")
    return release / f"roce-exporter-{EARLIER}-oci.tar"


@pytest.mark.nightly
@pytest.mark.release("image", "signed")
def test_the_image_of_a_release_is_in_its_signed_list(earlier_oci: Path) -> None:
    verify = (DEPLOY / "release/verify.sh", f"--key={earlier_oci.parents[1] / 'key.asc'}", earlier_oci)
    assert printed(*verify) == f"{earlier_oci}: verified\n"
    with earlier_oci.open("ab") as file:
        file.write(b"x")
    changed = ran(*verify)
    earlier_oci.write_bytes(earlier_oci.read_bytes()[:-1])
    assert changed.returncode == 1


@pytest.mark.nightly
@pytest.mark.release("image", "metric", "upgrade", "rollback", "remove")
def test_an_upgrade_and_the_way_back_keep_the_settings_and_a_removal_leaves_nothing(
    oci: Path, earlier_oci: Path, tmp_path: Path
) -> None:
    """On a host that has no bases, only the archives."""
    host = tmp_path / "host"
    host.mkdir()
    place = tmp_path / "roce-exporter.yml"
    place.write_text("host.simulate: quiet\n")
    place.chmod(0o644)
    volume = f"--volume={place}:/etc/roce-exporter.yml:ro"
    for archived, version in (
        (earlier_oci, EARLIER),
        (oci, roce_exporter.__version__),
        (earlier_oci, EARLIER),
    ):
        pulled = buildah(host, "pull", "--quiet", f"oci-archive:{archived}")
        container = buildah(host, "from", "--pull-never", pulled)
        run = (
            "run",
            "--isolation=chroot",
            volume,
            container,
            "--",
            "/usr/bin/python3",
            "-m",
            "roce_exporter",
        )
        assert buildah(host, *run, "--version") == f"roce-exporter {version}"
        once = buildah(host, *run, "once", "--config.file=/etc/roce-exporter.yml")
        assert "\nroce_ecn_marked_packets_total{" in once
        buildah(host, "rm", container)
    buildah(host, "rmi", "--all")
    assert (buildah(host, "images", "--quiet", "--all"), buildah(host, "containers", "--quiet")) == ("", "")
    assert place.read_text() == "host.simulate: quiet\n"


@pytest.mark.nightly
@pytest.mark.release("image", "bytes")
def test_the_archive_of_a_release_is_the_same_in_another_folder(
    store: Path, oci: Path, tmp_path: Path
) -> None:
    """With other times and permissions, without a history and without a network."""
    source = tmp_path / "source"
    for name in SOURCES:
        place, copy = ROOT / name, source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.copytree(place, copy, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(place, copy)
            copy.chmod(0o640)
    offline = downloads(ROOT, tmp_path / "downloads")
    alone, folder = ("unshare", "--net"), tmp_path / "again"
    again = archive(run_script(source, folder, store, BASES, *alone, umask=0o077, **offline), folder)
    assert again.name == oci.name == f"roce-exporter-{roce_exporter.__version__}-oci.tar"
    assert again.read_bytes() == oci.read_bytes()


@pytest.mark.nightly
def test_the_archive_has_an_image_for_each_architecture_with_programs_for_it(oci: Path) -> None:
    """The libraries of the exporter, and the base (OCI image layout 1.0)."""
    with tarfile.open(oci) as file:

        def content(name: str) -> Any:
            member = file.extractfile(name)
            assert member is not None
            return member

        def blob(entry: dict[str, str]) -> Any:
            return content(f"blobs/{entry['digest'].replace(':', '/')}")

        [index] = json.load(content("index.json"))["manifests"]
        listed = {one["platform"]["architecture"]: one for one in json.load(blob(index))["manifests"]}
        assert set(listed) == set(MACHINES)
        for architecture, entry in listed.items():
            manifest = json.load(blob(entry))
            found = json.load(blob(manifest["config"]))
            assert found["architecture"] == architecture
            assert found["config"]["User"] == "65532:65532"
            assert found["config"]["Entrypoint"] == ["/usr/bin/python3", "-m", "roce_exporter"]
            labels = found["config"]["Labels"]
            expected = {"version": roce_exporter.__version__, "revision": "0" * 40, "licenses": "Apache-2.0"}
            expected["source"] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"][
                "Homepage"
            ]
            assert {name: labels[f"org.opencontainers.image.{name}"] for name in expected} == expected
            machines = {
                name: machine for layer in manifest["layers"] for name, machine in programs(blob(layer))
            }
            assert set(machines.values()) == {MACHINES[architecture]}
            assert any(name.startswith("opt/roce-exporter/") for name in machines)
            assert "usr/bin/python3.11" in machines


def programs(layer: Any) -> Iterator[tuple[str, int]]:
    """Name and machine of each ELF file in a layer."""
    with gzip.open(layer) as plain, tarfile.open(fileobj=plain, mode="r|") as members:
        for member in members:
            content = members.extractfile(member) if member.isreg() else None
            start = content.read(20) if content else b""
            if start.startswith(b"\x7fELF"):
                yield member.name.removeprefix("./"), int.from_bytes(start[18:20], "little")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("bases", "code", "said"),
    [
        (("", ""), 2, "BUILD and RUNTIME must name the base images"),
        (("localhost/build", "localhost/none-{arch}"), 1, "localhost/none-amd64 for amd64 cannot be had"),
        (("localhost/build", f"localhost/runtime-{HERE}"), 1, f"for {OTHER} cannot be had"),
        (("docker.io/library/python:3.11", "localhost/runtime-{arch}"), 2, "has no digest"),
    ],
    ids=["none", "absent", "another architecture", "tag"],
)
def test_without_its_bases_the_archive_is_not_built(
    store: Path, tmp_path: Path, bases: tuple[str, str], code: int, said: str
) -> None:
    done = run_script(ROOT, tmp_path, store, bases)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
