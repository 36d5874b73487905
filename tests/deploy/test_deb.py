"""The Debian package: it holds the files that the units name, and it runs with Debian's own Python.

test_boot.py covers its installation and its operation under systemd.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from deploy_tools import BUILD, DEPLOY, ROOT, debians_python, printed, shipped_data
from packaging.utils import canonicalize_name

import roce_exporter
from roce_exporter.cli.commands import COMMANDS

pytestmark = pytest.mark.ci

UNITS = {
    "": "serve",
    "-switches": "serve --no-host --switches.config=/etc/roce-exporter-switches/switches.yml",
    "-wire": "serve --no-host",
    "-probe": "probe",
    "-namespaces": "tool namespaces",
}
"""Each unit with the command that it starts."""


@pytest.fixture(scope="module")
def root(package, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder], check=True)
    return folder


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_finds_its_command(root, name) -> None:
    unit = (root / f"lib/systemd/system/roce-exporter{name}.service").read_text()
    ((command, arguments),) = re.findall(r"^ExecStart=(\S+) (.*)", unit, re.MULTILINE)
    assert os.access(root / command.lstrip("/"), os.X_OK)
    assert f"{arguments} ".startswith(f"{UNITS[name]} ")


def test_settings_user_and_examples_come_with_it(root) -> None:
    settings = [f"/etc/default/roce-exporter{name}" for name in ("", "-probe", "-switches", "-wire")]
    assert (root / "DEBIAN/conffiles").read_text().split() == settings
    assert all((root / file.lstrip("/")).exists() for file in settings)
    assert "roce-exporter" in (root / "usr/lib/sysusers.d/roce-exporter.conf").read_text()
    assert (root / "usr/share/doc/roce-exporter/switches.yml").exists()
    rules = root.rglob("90-roce-exporter-counters.rules")
    assert [path.relative_to(root).parts[:3] for path in rules] == [("usr", "share", "doc")], "none is active"


def test_no_unit_with_a_privilege_is_enabled_by_the_installation(root) -> None:
    """An administrator enables them; the removal stops the one for namespaces too."""
    lines = (root / "DEBIAN/postinst").read_text().splitlines()
    assert [line.split()[2] for line in lines if " enable " in line] == ["roce-exporter.service"]
    assert not [path for path in root.rglob("*.wants/*") if path.name.startswith("roce-exporter-")]
    assert "roce-exporter-namespaces.service" in (root / "DEBIAN/prerm").read_text()


def test_everything_in_it_belongs_to_root(package) -> None:
    listing = printed("dpkg-deb", "--contents", package)
    assert {line.split()[1] for line in listing.splitlines()} == {"root/root"}
    assert "__pycache__" not in listing


def test_its_libraries_load_in_every_python(root) -> None:
    """From 3.11 on: each extension has the stable ABI."""
    extensions = [path.name for path in root.rglob("*.so")]
    assert extensions
    assert [name for name in extensions if not name.endswith(".abi3.so")] == []


@pytest.mark.nightly
@pytest.mark.release("deb", "bytes")
def test_the_same_commit_gives_the_same_bytes(package, tmp_path) -> None:
    """With another umask, folder for temporary files, locale and time zone."""
    away = tmp_path / "away"
    away.mkdir()
    folder = tmp_path / "again"
    environment = {**os.environ, **BUILD, "TMPDIR": str(away), "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
    subprocess.run([DEPLOY / "deb/build.sh", folder], env=environment, umask=0o077, check=True)
    (again,) = folder.iterdir()
    assert again.name == package.name
    assert again.read_bytes() == package.read_bytes()
    assert not list(away.iterdir())


@pytest.mark.nightly
def test_it_is_built_for_another_machine(tmp_path) -> None:
    """Grace, BlueField and Graviton hosts; `ARCH=arm64 tests/clean_roots.sh` runs it. In an ELF header 183 is AArch64."""
    environment = {**os.environ, **BUILD, "MACHINE": "aarch64"}
    subprocess.run([DEPLOY / "deb/build.sh", tmp_path / "built"], env=environment, check=True)
    (built,) = (tmp_path / "built").iterdir()
    assert built.name.endswith("_arm64.deb")
    assert printed("dpkg-deb", "--field", built, "Architecture") == "arm64\n"
    subprocess.run(["dpkg-deb", "--extract", built, tmp_path / "root"], check=True)
    libraries = [path.read_bytes()[18:20] for path in (tmp_path / "root").rglob("*.so")]
    assert libraries
    assert set(libraries) == {(183).to_bytes(2, "little")}


def test_it_has_the_package_metadata(package) -> None:
    fields = printed("dpkg-deb", "--field", package)
    assert f"Version: {roce_exporter.__version__}\n" in fields
    assert "Depends: python3 (>= 3.11), systemd" in fields


def test_rules_dashboards_manual_pages_and_completion_come_with_it(root) -> None:
    """test_manual.py covers what is in the pages."""
    share = root / "usr/share/roce-exporter"
    for folder, pattern in (("alerts", "*.yml"), ("alerts/compat", "*.yml"), ("dashboards", "*.json")):
        wanted = {path.name: path.read_bytes() for path in (ROOT / folder).glob(pattern)}
        assert wanted
        assert {path.name: path.read_bytes() for path in (share / folder).glob(pattern)} == wanted
    pages = {path.name for path in (root / "usr/share/man/man1").iterdir()}
    assert pages == {
        f"roce-exporter{name}.1.gz"
        for name in ("", *(f"-{command.replace(' ', '-')}" for command in COMMANDS))
    }
    for place in (
        "bash-completion/completions/roce-exporter",
        "zsh/vendor-completions/_roce-exporter",
        "fish/vendor_completions.d/roce-exporter.fish",
    ):
        assert "--metrics.set" in (root / "usr/share" / place).read_text()


def test_it_holds_the_data_files_of_the_wheel(root) -> None:
    place = root / "opt/roce-exporter/lib"
    assert not [name for name in shipped_data() if not (place / name).exists()]
    assert (place / "roce_exporter/alerts/runbooks/RocePfcStorm.md").is_file()


def test_every_library_in_it_has_the_text_of_its_licence(root) -> None:
    library = root / "opt/roce-exporter/lib"
    names = re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    folders = {canonicalize_name(path.name.split("-")[0]): path for path in library.glob("*.dist-info")}
    assert folders.keys() == {*names, "roce-exporter"}
    assert not [name for name, path in folders.items() if not [*path.rglob("*LICENSE*")]]
    assert "Apache License" in (root / "usr/share/doc/roce-exporter/copyright").read_text()


def test_it_runs_with_debians_python(root) -> None:
    """It is in the first line of the command, which is on the PATH."""
    assert debians_python()
    command = root / "opt/roce-exporter/bin/roce-exporter"
    assert (root / "usr/bin/roce-exporter").readlink() == Path("/opt/roce-exporter/bin/roce-exporter")
    assert "\nroce_ecn_marked_packets_total{" in printed(command, "once", "--host.simulate=quiet")
