"""The package for RHEL 9: what rpm says about it, and its life in an empty root.

No mirror of RPM packages is read, so its requirements are not installed: the root has no shell, no systemd and no Python. rpm
runs without the scriptlets there, Debian's Python runs the program, and the scriptlets run here with commands that only record.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deploy_tools import BUILD, DEPLOY, lacking, need, need_root

import roce_exporter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.nightly

PYTHON = Path("/usr/bin/python3")
COMMAND = "opt/roce-exporter/bin/roce-exporter"
CONFIGS = [f"/etc/default/roce-exporter{name}" for name in ("", "-switches", "-wire")]
SYSTEMCTL = """#!/bin/sh
echo "${0##*/} $*" >>"$LOG"
"""


@pytest.fixture(scope="module")
def rpm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package."""
    need("rpmbuild", "rpm")
    folder = tmp_path_factory.mktemp("rpm")
    command = [DEPLOY / "rpm/build.sh", folder]
    built = subprocess.run(
        command, env={**os.environ, **BUILD}, stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(built.stdout.strip())


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """An empty root file system."""
    need_root()
    folder = tmp_path / "root"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def asked(package: Path, *flags: str) -> list[str]:
    """The lines that `rpm --query` prints about the file."""
    command = ["rpm", "--query", *flags, "--package", str(package)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def change(root: Path, *arguments: str) -> None:
    """Install, upgrade or erase in the root, without the requirements and scriptlets that an empty root cannot meet."""
    command = ["rpm", "--root", str(root), "--nodeps", "--noscripts", *arguments]
    subprocess.run(command, check=True)


def test_it_requires_a_python_that_is_new_enough(rpm: Path) -> None:
    """And nothing that rpmbuild found in its libraries or on the machine that built it."""
    required = [line for line in asked(rpm, "--requires") if not line.startswith(("rpmlib(", "/bin/sh"))]
    assert sorted(set(required)) == ["glibc >= 2.28", "libgcc", "python3.12", "systemd", "systemd >= 252"]
    assert asked(rpm, "--list")
    (architecture,) = asked(rpm, "--queryformat=%{ARCH}\\n")
    own = f"roce-exporter = {roce_exporter.__version__}-1"
    assert [line for line in asked(rpm, "--provides") if "(" not in line] == [own]
    assert architecture == os.uname().machine


def test_settings_survive_and_nothing_else_is_a_setting(rpm: Path) -> None:
    assert asked(rpm, "--configfiles") == CONFIGS
    flags = asked(rpm, "--queryformat=[%{FILENAMES} %{FILEFLAGS:fflags}\\n]")
    assert {line.split()[0] for line in flags if line.endswith(" cn")} == set(CONFIGS)


def test_it_has_the_files_of_the_debian_package(rpm: Path, package: str) -> None:
    """Both are laid out by deploy/stage.sh; only the folders of the units and of zsh's functions differ."""
    listing = subprocess.run(
        ["dpkg-deb", "--contents", package], stdout=subprocess.PIPE, text=True, check=True
    )
    files = {line.split()[5].removeprefix(".") for line in listing.stdout.splitlines() if line[0] != "d"}
    folders = set(asked(rpm, "--queryformat=[%{FILENAMES} %{FILEMODES:perms}\\n]"))
    ours = {line.split()[0] for line in folders if line.split()[1][0] != "d"}
    places = (
        ("/lib/systemd/", "/usr/lib/systemd/"),
        ("/zsh/vendor-completions/", "/zsh/site-functions/"),
    )
    for debian, red_hat in places:
        files = {name.replace(debian, red_hat) for name in files}
    assert ours == files
    theirs = {line.split()[0] for line in folders} - ours
    assert all("roce-exporter" in name for name in theirs), "a folder of the system"


def test_the_same_commit_gives_the_same_bytes(rpm: Path, tmp_path: Path) -> None:
    """With another umask, folder for temporary files, locale and time zone."""
    away = tmp_path / "away"
    away.mkdir()
    folder = tmp_path / "again"
    environment = {**os.environ, **BUILD, "TMPDIR": str(away), "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
    subprocess.run([DEPLOY / "rpm/build.sh", folder], env=environment, umask=0o077, check=True)
    (again,) = folder.iterdir()
    assert again.name == rpm.name
    assert again.read_bytes() == rpm.read_bytes()
    assert not list(away.iterdir())


def test_nothing_in_it_is_of_the_machine_or_the_moment_that_built_it(rpm: Path) -> None:
    fields = "%{BUILDTIME} %{BUILDHOST}\\n[%{FILEMTIMES} %{FILEUSERNAME}:%{FILEGROUPNAME}\\n]"
    build, *files = asked(rpm, f"--queryformat={fields}")
    assert build == f"{BUILD['SOURCE_DATE_EPOCH']} localhost"
    assert set(files) == {f"{BUILD['SOURCE_DATE_EPOCH']} root:root"}


def test_install_upgrade_and_erase(rpm: Path, root: Path) -> None:
    change(root, "--install", str(rpm))
    command = root / COMMAND
    assert command.read_text().startswith("#!/usr/bin/python3.12 -IB\n")
    new_enough = [PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if not PYTHON.exists() or subprocess.run(new_enough, check=False).returncode:
        lacking("/usr/bin/python3 is missing or older than 3.11")
    once = [PYTHON, "-IB", command, "once", "--host.simulate=quiet"]
    answer = subprocess.run(once, stdout=subprocess.PIPE, text=True, check=True)
    assert "\nroce_ecn_marked_packets_total{" in answer.stdout

    default = root / CONFIGS[0].lstrip("/")
    default.write_text('ROCE_EXPORTER_FLAGS="--mine"\n')
    change(root, "--upgrade", "--force", str(rpm))
    assert default.read_text() == 'ROCE_EXPORTER_FLAGS="--mine"\n'
    change(root, "--erase", "roce-exporter")
    assert default.with_name("roce-exporter.rpmsave").exists()
    left = [path for path in root.rglob("*") if "roce" in path.name and path.suffix != ".rpmsave"]
    assert left == []


@pytest.mark.parametrize(
    ("scriptlet", "remaining", "calls"),
    [
        (
            "post",
            "1",
            ["systemd-sysusers roce-exporter.conf", "systemctl --no-reload preset roce-exporter.service"],
        ),
        ("post", "2", ["systemd-sysusers roce-exporter.conf"]),
        ("preun", "0", ["systemctl --no-reload disable"]),
        ("preun", "1", []),
        ("postun", "0", []),
    ],
)
def test_scriptlets(rpm: Path, tmp_path: Path, scriptlet: str, remaining: str, calls: list[str]) -> None:
    """As in a root without a running systemd. The count says whether it is an upgrade."""
    for name in ("systemctl", "systemd-sysusers"):
        (tmp_path / name).write_text(SYSTEMCTL)
        (tmp_path / name).chmod(0o755)
    log = tmp_path / "log"
    log.touch()
    tag = {"post": "POSTIN", "preun": "PREUN", "postun": "POSTUN"}[scriptlet]
    (tmp_path / "script").write_text("\n".join(asked(rpm, f"--queryformat=%{{{tag}}}")))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(log)}
    # this machine's own systemd must not decide
    script = (tmp_path / "script").read_text().replace("/run/systemd/system", str(tmp_path / "no-systemd"))
    subprocess.run(["sh", "-e", "-c", script, "scriptlet", remaining], env=environment, check=True)
    told = log.read_text().splitlines()
    assert len(told) == len(calls)
    assert all(line.startswith(call) for line, call in zip(told, calls, strict=True))
