"""The Debian package: it holds the files that the unit names, and it runs with Debian's own Python.

test_boot.py covers its installation and its operation under systemd.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from deploy_tools import BUILD, DEPLOY, ROOT, lacking, shipped_data
from packaging.utils import canonicalize_name

import roce_exporter
from roce_exporter.cli.options import COMMANDS

pytestmark = pytest.mark.ci

SCRIPTS = ("build.sh", "postinst", "prerm", "postrm")
DEBIANS_PYTHON = Path("/usr/bin/python3")


@pytest.fixture(scope="module")
def root(package: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder], check=True)
    return folder


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_are_shell(script: str) -> None:
    subprocess.run(["sh", "-n", DEPLOY / "deb" / script], check=True)


def test_the_unit_finds_its_command_and_its_user(root: Path) -> None:
    unit = (root / "lib/systemd/system/roce-exporter.service").read_text()
    (command,) = (
        line.split("=", 1)[1].split()[0] for line in unit.splitlines() if line.startswith("ExecStart=")
    )
    assert os.access(root / command.lstrip("/"), os.X_OK)
    assert "roce-exporter" in (root / "usr/lib/sysusers.d/roce-exporter.conf").read_text()
    assert (root / "etc/default/roce-exporter").exists()
    conffiles = (root / "DEBIAN/conffiles").read_text().split()
    assert conffiles == [f"/etc/default/roce-exporter{name}" for name in ("", "-switches", "-wire")]
    assert all((root / file.lstrip("/")).exists() for file in conffiles)


def test_the_unit_for_switches_has_its_command_and_an_example(root: Path) -> None:
    unit = (root / "lib/systemd/system/roce-exporter-switches.service").read_text()
    assert "\nExecStart=/opt/roce-exporter/bin/roce-exporter switches " in unit
    assert (root / "usr/share/doc/roce-exporter/switches.yml").exists()


def test_counter_sets_come_with_a_unit_and_without_an_active_rule(root: Path) -> None:
    unit = (root / "lib/systemd/system/roce-exporter-counters@.service").read_text()
    assert "\nExecStart=/opt/roce-exporter/bin/roce-exporter counters enable " in unit
    rule = "90-roce-exporter-counters.rules"
    assert [path.relative_to(root).parts[:3] for path in root.rglob(rule)] == [("usr", "share", "doc")]


def test_the_unit_for_captures_has_its_command(root: Path) -> None:
    unit = (root / "lib/systemd/system/roce-exporter-wire.service").read_text()
    assert "\nExecStart=/opt/roce-exporter/bin/roce-exporter wire " in unit


def test_the_unit_for_namespaces_has_its_command_and_ends_with_the_package(root: Path) -> None:
    name = "roce-exporter-namespaces.service"
    unit = (root / "lib/systemd/system" / name).read_text()
    assert "\nExecStart=/opt/roce-exporter/bin/roce-exporter namespaces " in unit
    assert name in (root / "DEBIAN/prerm").read_text()


def test_no_unit_with_a_privilege_is_enabled_by_the_installation(root: Path) -> None:
    """An administrator enables them."""
    lines = (root / "DEBIAN/postinst").read_text().splitlines()
    enabled = [line.split() for line in lines if " enable " in line]
    assert [words[2] for words in enabled] == ["roce-exporter.service"]
    assert not [path for path in root.rglob("*.wants/*") if path.name.startswith("roce-exporter-")]


def test_everything_in_it_belongs_to_root(package: str) -> None:
    listing = subprocess.run(
        ["dpkg-deb", "--contents", package], stdout=subprocess.PIPE, text=True, check=True
    )
    owners = {line.split()[1] for line in listing.stdout.splitlines()}
    assert owners == {"root/root"}
    assert "__pycache__" not in listing.stdout


def test_its_libraries_load_in_every_python(root: Path) -> None:
    """From 3.11 on: an extension has the stable ABI, or there is none."""
    extensions = [path.name for path in root.rglob("*.so")]
    assert extensions
    assert [name for name in extensions if not name.endswith(".abi3.so")] == []


def test_the_same_commit_gives_the_same_bytes(package: str, tmp_path: Path) -> None:
    """With another umask, folder for temporary files, locale and time zone."""
    away = tmp_path / "away"
    away.mkdir()
    folder = tmp_path / "again"
    environment = {**os.environ, **BUILD, "TMPDIR": str(away), "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
    subprocess.run([DEPLOY / "deb/build.sh", folder], env=environment, umask=0o077, check=True)
    (again,) = folder.iterdir()
    assert again.name == Path(package).name
    assert again.read_bytes() == Path(package).read_bytes()
    assert not list(away.iterdir())


def test_it_has_the_package_metadata(package: str) -> None:
    told = subprocess.run(
        ["dpkg-deb", "--field", package], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    assert f"Version: {roce_exporter.__version__}\n" in told
    assert "Depends: python3 (>= 3.11), systemd" in told


def test_rules_and_dashboards_come_with_it(root: Path) -> None:
    share = root / "usr/share/roce-exporter"
    assert (share / "alerts/roce.rules.yml").read_bytes() == (ROOT / "alerts/roce.rules.yml").read_bytes()
    compat = {path.name for path in (ROOT / "alerts/compat").glob("*.yml")}
    assert {path.name for path in (share / "alerts/compat").glob("*.yml")} == compat
    wanted = {path.name for path in (ROOT / "dashboards").glob("*.json")}
    assert {path.name for path in (share / "dashboards").glob("*.json")} == wanted


def test_manual_pages_and_completion_come_with_it(root: Path) -> None:
    """test_manual.py covers what is in them."""
    share = root / "usr/share"
    pages = {path.name for path in (share / "man/man1").iterdir()}
    assert pages == {f"roce-exporter{name}.1.gz" for name in ("", *(f"-{command}" for command in COMMANDS))}
    for place in (
        "bash-completion/completions/roce-exporter",
        "zsh/vendor-completions/_roce-exporter",
        "fish/vendor_completions.d/roce-exporter.fish",
    ):
        assert "--metrics.set" in (share / place).read_text()


def test_it_holds_the_data_files_of_the_wheel(root: Path) -> None:
    place = root / "opt/roce-exporter/lib"
    assert not [name for name in shipped_data() if not (place / name).is_file()]


def test_every_library_in_it_has_the_text_of_its_licence(root: Path) -> None:
    library = root / "opt/roce-exporter/lib"
    names = re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    folders = {canonicalize_name(path.name.split("-")[0]): path for path in library.glob("*.dist-info")}
    assert folders.keys() == {*names, "roce-exporter"}
    assert not [name for name, path in folders.items() if not [*path.rglob("*LICENSE*")]]
    assert "Apache License" in (root / "usr/share/doc/roce-exporter/copyright").read_text()


def test_it_runs_with_debians_python(root: Path) -> None:
    if not DEBIANS_PYTHON.exists():
        lacking("/usr/bin/python3 is missing (apt-get install python3)")
    version = subprocess.run(
        [DEBIANS_PYTHON, "-c", "import sys; print(sys.version_info >= (3, 11))"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    if version.stdout != "True\n":
        lacking("/usr/bin/python3 is older than 3.11")
    command = root / "opt/roce-exporter/bin/roce-exporter"
    answer = subprocess.run(
        [command, "once", "--host.simulate=quiet"], stdout=subprocess.PIPE, text=True, check=True
    )
    assert "\nroce_ecn_marked_packets_total{" in answer.stdout
