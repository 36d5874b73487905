"""`make release`: the same commit gives the same bytes, with hashes of all files and a signature; the zipapp needs Python only."""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bcrypt
import pytest
import trustme
import yaml
from deploy_daemon import running
from deploy_tools import DEPLOY, ROOT, need_root, wait_until
from release_keys import Keys, keys
from release_source import build, source

import roce_exporter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.nightly

VERSION = roce_exporter.__version__
ZIPAPP = f"roce-exporter-{VERSION}.pyz"
MACHINES = {"x86_64": 62, "aarch64": 183}
"""Numbers of ELF for the architectures, in the field e_machine."""
NOBODY = 65534
DEBIANS_PYTHON = "/usr/bin/python3"
"""Other users may not be able to read the Python that runs the tests."""


@dataclass(frozen=True)
class Releases:
    """Two releases of one commit, and the key that signed the first."""

    first: Path
    second: Path
    key: Path


@pytest.fixture(scope="module")
def owner() -> Iterator[Keys]:
    with keys() as made:
        yield made


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory, owner: Keys) -> Releases:
    folder = tmp_path_factory.mktemp("release")
    folder.parent.chmod(0o755)  # another user starts the zipapp
    folder.chmod(0o755)
    commit = source(folder / "source")
    signed = {"RELEASE_KEY": "test@example.com", "GNUPGHOME": str(owner.home)}
    first = build(commit, folder / "first", 0o022, signed)
    (folder / "elsewhere").mkdir()
    others = {"TZ": "Pacific/Auckland", "LC_ALL": "C.UTF-8", "RELEASE_KEY": ""}
    second = build(commit, folder / "elsewhere/second", 0o077, others)
    return Releases(first, second, owner.public(folder / "key.asc"))


@pytest.fixture
def zipapp(releases: Releases) -> Path:
    return releases.first / ZIPAPP


def test_the_same_commit_gives_the_same_bytes(releases: Releases) -> None:
    names = {path.name for path in releases.second.iterdir()}
    assert {path.name for path in releases.first.iterdir()} == names | {"SHA256SUMS.asc"}
    assert not [
        name
        for name in names
        if (releases.first / name).read_bytes() != (releases.second / name).read_bytes()
    ]


def test_every_download_is_there(releases: Releases) -> None:
    chart = yaml.safe_load((DEPLOY / "helm/roce-exporter/Chart.yaml").read_text())["version"]
    product = f"roce-exporter-{VERSION}"
    assert {path.name for path in releases.second.iterdir()} == {
        ZIPAPP,
        f"roce_exporter-{VERSION}-py3-none-any.whl",
        f"roce_exporter-{VERSION}.tar.gz",
        f"{product}-dashboards.tar.gz",
        f"{product}-alerts.tar.gz",
        f"roce-exporter-{chart}.tgz",
        f"{product}.cdx.json",
        f"{product}.pyz.cdx.json",
        "image.tar",
        "SHA256SUMS",
    }


def test_every_file_is_in_the_list_and_the_signature_is_the_owner_s(releases: Releases) -> None:
    files = [path for path in releases.first.iterdir() if not path.name.startswith("SHA256SUMS")]
    listed = dict(
        reversed(line.split("  ", 1)) for line in (releases.first / "SHA256SUMS").read_text().splitlines()
    )
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    command = [DEPLOY / "release/verify.sh", f"--key={releases.key}", *files]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_a_release_without_a_key_says_so(releases: Releases) -> None:
    assert "this release is not signed" in (releases.second.with_name("second.log")).read_text()
    assert "not signed" not in (releases.first.with_name("first.log")).read_text()


def test_a_folder_with_files_gets_no_release(tmp_path: Path) -> None:
    (tmp_path / "old.pyz").touch()
    done = subprocess.run(
        [DEPLOY / "release/build.sh", tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path} is not empty" in done.stderr


def test_archives_have_files_of_root_with_the_time_of_the_commit(releases: Releases) -> None:
    for path in (*releases.first.glob("*-dashboards.tar.gz"), *releases.first.glob("*.tgz")):
        with tarfile.open(path) as archive:
            members = archive.getmembers()
        assert {(one.uid, one.gid, one.mtime) for one in members} == {(0, 0, 1790000000)}
        assert all(one.isfile() or one.isdir() for one in members), "helm and old tars follow no links"
        assert {one.mode for one in members} <= {0o644, 0o755}


@pytest.mark.parametrize(
    ("archive", "member", "origin"),
    [
        ("roce-exporter-*.tgz", "roce-exporter/files/rules/roce.rules.yml", "alerts/roce.rules.yml"),
        ("roce-exporter-*.tgz", "roce-exporter/Chart.yaml", "deploy/helm/roce-exporter/Chart.yaml"),
        ("*-alerts.tar.gz", f"roce-exporter-{VERSION}-alerts/roce.rules.yml", "alerts/roce.rules.yml"),
        ("*-dashboards.tar.gz", "roce-host.json", "dashboards/roce-host.json"),
    ],
)
def test_archives_have_the_files_of_the_source(
    releases: Releases, archive: str, member: str, origin: str
) -> None:
    (path,) = releases.first.glob(archive)
    with tarfile.open(path) as opened:
        (name,) = (one for one in opened.getnames() if one.endswith(member))
        file = opened.extractfile(name)
        assert file
        assert file.read() == (ROOT / origin).read_bytes()


def test_libraries_of_both_architectures_are_inside(zipapp: Path) -> None:
    with zipfile.ZipFile(zipapp) as archive:
        libraries = {name: archive.read(name) for name in archive.namelist() if name.endswith(".so")}
    for machine, number in MACHINES.items():
        of_machine = {n: c for n, c in libraries.items() if n.startswith(f"lib-{machine}/")}
        assert {name.split("/")[1] for name in of_machine} == {"bcrypt", "psutil"}
        assert {int.from_bytes(content[18:20], "little") for content in of_machine.values()} == {number}
    assert {name.split("/")[0] for name in libraries} == {f"lib-{machine}" for machine in MACHINES}


def test_the_bill_of_materials_is_what_the_zipapp_has(releases: Releases, zipapp: Path) -> None:
    bill = json.loads((releases.first / f"roce-exporter-{VERSION}.pyz.cdx.json").read_text())
    listed = {(one["name"].lower().replace("-", "_"), one["version"]) for one in bill["components"]}
    with zipfile.ZipFile(zipapp) as archive:
        inside = {
            tuple(name.split("/")[1].removesuffix(".dist-info").lower().split("-"))
            for name in archive.namelist()
            if name.endswith(".dist-info/METADATA")
        }
    assert inside == listed | {("roce_exporter", VERSION)}


def test_it_serves_a_simulated_host_with_tls_and_a_user(zipapp: Path, tmp_path: Path) -> None:
    """With nothing of the environment, and no other package than those inside."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    web = {
        "tls_server_config": {"cert_file": "cert.pem", "key_file": "key.pem"},
        "basic_auth_users": {"prometheus": hashed},
    }
    (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    user = {"Authorization": f"Basic {b64encode(b'prometheus:secret').decode()}"}
    command = ["env", "-i", f"XDG_CACHE_HOME={tmp_path}/cache", sys.executable, "-I", str(zipapp)]
    flags = ["--host.simulate=quiet", f"--web.config.file={tmp_path}/web.yml"]
    with running(command, flags=flags) as daemon:
        url = f"https://localhost:{daemon.port}/metrics"

        def scraped() -> str:
            request = urllib.request.Request(url, headers=user)
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:
                return str(answer.read().decode())

        wait_until(scraped, "a scrape")
        assert "\nroce_ecn_marked_packets_total{" in scraped()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, context=context, timeout=60)
        assert daemon.stop() == 0


def test_every_library_comes_from_the_zipapp(zipapp: Path, tmp_path: Path) -> None:
    """The libraries that an import finds are those that it unpacked; PyYAML is the one in Python."""
    code = (
        "import runpy, sys; sys.argv = ['x', '--version']\n"
        f"try: runpy.run_path({str(zipapp)!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "import bcrypt, psutil, yaml, rich, pyroute2, h11, aiofiles, prometheus_client\n"
        "places = {sys.modules[n].__file__ for n in "
        "('bcrypt', 'psutil', 'yaml', 'rich', 'pyroute2', 'h11', 'aiofiles', 'prometheus_client', 'roce_exporter')}\n"
        "print(*places, yaml.__with_libyaml__, sep='\\n')"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    _, *places, compiled = done.stdout.splitlines()
    assert len(places) == 9
    assert {str(place).startswith(f"{tmp_path}/roce-exporter/{VERSION}-") for place in places} == {True}
    assert compiled == "False"


def test_a_system_user_without_a_home_starts_it(zipapp: Path) -> None:
    need_root()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        copy = shutil.copy(zipapp, folder)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
        command = [*user, "env", "-i", f"TMPDIR={folder}", DEBIANS_PYTHON, "-I", copy]
        done = subprocess.run(
            [*command, "once", "--host.simulate=quiet"], cwd="/", capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "\nroce_ecn_marked_packets_total{" in done.stdout
        assert (Path(folder) / f"roce-exporter-{NOBODY}").stat().st_uid == NOBODY
