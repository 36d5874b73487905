"""`make release`: the same commit gives the same bytes, with hashes of all files and a signature; the zipapp needs Python only."""

import hashlib
import json
import re
import shutil
import ssl
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from base64 import b64encode
from pathlib import Path

import bcrypt
import pytest
import trustme
import yaml
from deploy_servers import running
from deploy_tools import DEPLOY, ROOT, debians_python, module_of, need_root, printed, ran, tool_environment
from release_builds import MOMENT, PRODUCT, VERSION
from waiting import HUNG_SECONDS, wait_until

pytestmark = pytest.mark.nightly

MACHINES = {"x86_64": 62, "aarch64": 183}
"""Numbers of ELF for the architectures, in the field e_machine."""
NOBODY = 65534


@pytest.fixture
def zipapp(releases) -> Path:
    return releases.first / f"{PRODUCT}.pyz"


@pytest.mark.release("wheel", "bytes")
@pytest.mark.release("sdist", "bytes")
@pytest.mark.release("zipapp", "bytes")
@pytest.mark.release("chart", "bytes")
@pytest.mark.release("mixin", "bytes")
@pytest.mark.release("dashboards", "bytes")
@pytest.mark.release("rules", "bytes")
@pytest.mark.release("bill of materials", "bytes")
@pytest.mark.release("provenance", "bytes")
@pytest.mark.release("deb", "bytes")
@pytest.mark.release("rpm", "bytes")
@pytest.mark.release("checksums", "bytes")
def test_every_download_is_there_and_the_same_commit_gives_the_same_bytes(releases) -> None:
    chart = yaml.safe_load((DEPLOY / "helm/roce-exporter/Chart.yaml").read_text())["version"]
    names = {
        *(
            f"{PRODUCT}{end}"
            for end in (
                *(".pyz", ".cdx.json", ".pyz.cdx.json", ".provenance.json"),
                *("-dashboards.tar.gz", "-alerts.tar.gz", "-mixin.tar.gz"),
            )
        ),
        *(f"roce_exporter-{VERSION}{end}" for end in ("-py3-none-any.whl", ".tar.gz")),
        *(f"roce-exporter_{VERSION}_{name}.deb" for name in ("amd64", "arm64")),
        *(f"roce-exporter-{VERSION}-1.{name}.rpm" for name in ("x86_64", "aarch64")),
        *(f"roce-exporter-{chart}.tgz", "image.tar", "SHA256SUMS"),
    }
    assert {path.name for path in releases.second.iterdir()} == names
    assert {path.name for path in releases.first.iterdir()} == names | {"SHA256SUMS.asc"}
    first, second = releases.first, releases.second
    assert not [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()]


@pytest.mark.release("wheel", "signed")
@pytest.mark.release("sdist", "signed")
@pytest.mark.release("zipapp", "signed")
@pytest.mark.release("chart", "signed")
@pytest.mark.release("mixin", "signed")
@pytest.mark.release("dashboards", "signed")
@pytest.mark.release("rules", "signed")
@pytest.mark.release("bill of materials", "signed")
@pytest.mark.release("provenance", "signed")
@pytest.mark.release("deb", "signed")
@pytest.mark.release("rpm", "signed")
@pytest.mark.release("checksums", "signed")
def test_every_file_is_in_the_list_and_the_signature_is_the_owner_s(releases) -> None:
    files = [path for path in releases.first.iterdir() if not path.name.startswith("SHA256SUMS")]
    lines = (releases.first / "SHA256SUMS").read_text().splitlines()
    listed = dict(reversed(line.split("  ", 1)) for line in lines)
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    printed(DEPLOY / "release/verify.sh", f"--key={releases.key}", *files)
    assert ["this release is not signed" in text for text in releases.said] == [False, True]


@pytest.mark.release("wheel", "install")
@pytest.mark.release("sdist", "install")
def test_registries_take_the_metadata_and_render_the_readme(releases) -> None:
    """Its links lead to the repository, for a registry has this page alone."""
    files = sorted(releases.first.glob("roce_exporter-*"))
    assert [path.name.rpartition("-")[2] for path in files] == ["any.whl", f"{VERSION}.tar.gz"]
    done = ran(tool_environment("publish") / "twine", "check", "--strict", *files)
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout
    with zipfile.ZipFile(files[0]) as archive:
        metadata = archive.read(f"roce_exporter-{VERSION}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]*)\)", metadata)
    home = re.findall("^Project-URL: Homepage, (.+)$", metadata, re.MULTILINE)[0]
    assert len(links) > 20
    assert not [link for link in links if not link.startswith("https://")]
    assert f"{home}/raw/main/dashboards/pictures/fleet.png" in links
    assert f"{home}/blob/main/docs/operating.md" in links


@pytest.mark.release("provenance", "install")
def test_the_provenance_names_every_other_file_the_commit_and_the_locks(releases) -> None:
    said = json.loads((releases.first / f"{PRODUCT}.provenance.json").read_text())
    sums = (releases.first / "SHA256SUMS").read_text().split()
    listed = dict(zip(sums[1::2], sums[::2], strict=True))
    del listed[f"{PRODUCT}.provenance.json"]
    assert {one["name"]: one["digest"]["sha256"] for one in said["subject"]} == listed
    commit, *locks = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    head = printed("git", "-C", releases.first.with_name("first-clone"), "rev-parse", "HEAD").strip()
    assert commit["digest"] == {"gitCommit": head}
    assert {one["name"]: one["digest"]["sha256"] for one in locks} == {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (*ROOT.glob("requirements*.lock"), DEPLOY / "manual/requirements.lock")
    }


def test_a_folder_with_files_gets_no_release(tmp_path) -> None:
    (tmp_path / "old.pyz").touch()
    done = ran(DEPLOY / "release/build.sh", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path} is not empty" in done.stderr


def test_archives_have_the_files_of_the_source_as_roots_with_the_time_of_the_commit(releases) -> None:
    for archive, origins in {
        "roce-exporter-*.tgz": {
            "roce-exporter/files/rules/roce.rules.yml": "alerts/roce.rules.yml",
            "roce-exporter/Chart.yaml": "deploy/helm/roce-exporter/Chart.yaml",
        },
        "*-alerts.tar.gz": {f"{PRODUCT}-alerts/roce.rules.yml": "alerts/roce.rules.yml"},
        "*-dashboards.tar.gz": {"roce-host.json": "dashboards/roce-host.json"},
        "*-mixin.tar.gz": {f"{PRODUCT}-mixin/mixin.libsonnet": "deploy/mixin/mixin.libsonnet"},
    }.items():
        (path,) = releases.first.glob(archive)
        with tarfile.open(path) as opened:
            members = opened.getmembers()
            for end, origin in origins.items():
                (member,) = (one for one in members if one.name.endswith(end))
                file = opened.extractfile(member)
                assert file
                assert file.read() == (ROOT / origin).read_bytes()
        assert {(one.uid, one.gid, one.mtime) for one in members} == {(0, 0, MOMENT)}
        assert all(one.isfile() or one.isdir() for one in members), "helm and old tars follow no links"
        assert {one.mode for one in members} <= {0o644, 0o755}


@pytest.mark.release("bill of materials", "install")
def test_the_zipapp_has_libraries_of_both_architectures_and_what_its_bill_lists(releases, zipapp) -> None:
    with zipfile.ZipFile(zipapp) as archive:
        names = archive.namelist()
        libraries = {name: archive.read(name)[18:20] for name in names if name.endswith(".so")}
    for machine, number in MACHINES.items():
        of_machine = {n: kind for n, kind in libraries.items() if n.startswith(f"lib-{machine}/")}
        assert {name.split("/")[1] for name in of_machine} == {"bcrypt", "psutil"}
        assert {int.from_bytes(kind, "little") for kind in of_machine.values()} == {number}
    assert {name.split("/")[0] for name in libraries} == {f"lib-{machine}" for machine in MACHINES}
    bill = json.loads((releases.first / f"{PRODUCT}.pyz.cdx.json").read_text())
    listed = {(one["name"].lower().replace("-", "_"), one["version"]) for one in bill["components"]}
    versions = module_of(DEPLOY / "licences.py").locked("requirements-demo.lock")
    assert {one["name"]: one["version"] for one in bill["components"]} == versions
    inside = {
        tuple(name.split("/")[1].removesuffix(".dist-info").lower().split("-"))
        for name in names
        if name.endswith(".dist-info/METADATA")
    }
    assert inside == listed | {("roce_exporter", VERSION)}


def test_the_zipapp_serves_a_simulated_host_with_tls_and_a_user(zipapp, tmp_path) -> None:
    """With nothing of the environment, and no other package than those inside."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    web = {
        "tls_server_config": {"cert_file": "cert.pem", "key_file": "key.pem"},
        "basic_auth_users": {"prometheus": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()},
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
            with urllib.request.urlopen(request, context=context, timeout=HUNG_SECONDS) as answer:
                return str(answer.read().decode())

        page = wait_until(scraped)
        assert "\nroce_ecn_marked_packets_total{" in page
        assert "\nroce_exporter_tls 1.0\n" in page
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, context=context, timeout=HUNG_SECONDS)
        assert daemon.stop() == 0


def test_every_library_comes_from_the_zipapp(zipapp, tmp_path) -> None:
    """The libraries that an import finds are those that it unpacked; PyYAML is the one in Python."""
    names = ["bcrypt", "psutil", "yaml", "rich", "h11", "aiofiles", "prometheus_client", "roce_exporter"]
    code = (
        "import runpy, sys; sys.argv = ['x', '--version']\n"
        f"try: runpy.run_path({str(zipapp)!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        f"import {', '.join(names)}\n"
        f"print(*(sys.modules[name].__file__ for name in {names}), yaml.__with_libyaml__, sep='\\n')"
    )
    done = printed(sys.executable, "-I", "-c", code, env={"XDG_CACHE_HOME": str(tmp_path)})
    _, *places, compiled = done.splitlines()
    assert len(places) == len(names)
    assert all(place.startswith(f"{tmp_path}/roce-exporter/{VERSION}-") for place in places)
    assert compiled == "False"


def test_a_system_user_without_a_home_starts_the_zipapp(zipapp) -> None:
    need_root()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        copy = shutil.copy(zipapp, folder)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
        # other users may not be able to read the Python that runs the tests
        command = [*user, "env", "-i", f"TMPDIR={folder}", debians_python(), "-I", copy]
        done = ran(*command, "once", "--host.simulate=quiet", cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
        assert "\nroce_ecn_marked_packets_total{" in done.stdout
        assert (Path(folder) / f"roce-exporter-{NOBODY}").stat().st_uid == NOBODY
