"""The package for RHEL 9: what rpm says about it, and its life in an empty root.

No mirror of RPM packages is read, so its requirements are not installed: the root has no shell, no systemd and no Python. rpm
runs without the scriptlets there, Debian's Python runs the program, and the scriptlets run here with commands that only record.
"""

import os
import subprocess
from pathlib import Path

import pytest
from deploy_tools import BUILD, ROOT, built, debians_python, need_root, printed
from release_builds import EARLIER, commit
from tools import need

import roce_exporter

pytestmark = pytest.mark.nightly

COMMAND = "opt/roce-exporter/bin/roce-exporter"
CONFIGS = [f"/etc/default/roce-exporter{name}" for name in ("", "-probe", "-switches", "-wire")]
RECORDER = """#!/bin/sh
echo "${0##*/} $*" >>"$LOG"
"""


def build(folder: Path, umask: int = 0o022, source: Path = ROOT, **environment: str) -> Path:
    """The package in a folder."""
    need("rpmbuild")
    command = [source / "deploy/rpm/build.sh", folder]
    subprocess.run(command, env={**os.environ, **BUILD, **environment}, umask=umask, check=True)
    (package,) = folder.glob("*.rpm")
    return package


@pytest.fixture(scope="module")
def rpm() -> Path:
    (package,) = built("rpm", build).iterdir()
    return package


def answer(package: Path, *flags: str) -> list[str]:
    """The lines that `rpm --query` prints about the file."""
    return printed("rpm", "--query", *flags, "--package", package).splitlines()


def test_it_requires_a_python_that_is_new_enough(rpm) -> None:
    """And nothing that rpmbuild found in its libraries or on the machine that built it."""
    required = {line for line in answer(rpm, "--requires") if not line.startswith(("rpmlib(", "/bin/sh"))}
    assert sorted(required) == ["glibc >= 2.28", "libgcc", "python3.12", "systemd", "systemd >= 252"]
    own = f"roce-exporter = {roce_exporter.__version__}-1"
    assert [line for line in answer(rpm, "--provides") if "(" not in line] == [own]
    assert answer(rpm, "--queryformat=%{ARCH}\\n") == [os.uname().machine]


def test_it_is_built_for_another_machine(tmp_path) -> None:
    assert answer(build(tmp_path, MACHINE="aarch64"), "--queryformat=%{ARCH}\\n") == ["aarch64"]


def test_settings_survive_and_nothing_else_is_a_setting(rpm) -> None:
    assert answer(rpm, "--configfiles") == CONFIGS
    flags = answer(rpm, "--queryformat=[%{FILENAMES} %{FILEFLAGS:fflags}\\n]")
    assert {line.split()[0] for line in flags if line.endswith(" cn")} == set(CONFIGS)


def test_it_has_the_files_of_the_debian_package(rpm, package) -> None:
    """Both are laid out by deploy/stage.sh; only the folders of the units and of zsh's functions differ."""
    listing = printed("dpkg-deb", "--contents", package)
    debian = {line.split()[5].removeprefix(".") for line in listing.splitlines() if line[0] != "d"}
    listed = [line.split() for line in answer(rpm, "--queryformat=[%{FILENAMES} %{FILEMODES:perms}\\n]")]
    assert {name for name, mode in listed if mode[0] != "d"} == {
        name.replace("/lib/systemd/", "/usr/lib/systemd/").replace(
            "/zsh/vendor-completions/", "/zsh/site-functions/"
        )
        for name in debian
    }
    folders = [name for name, mode in listed if mode[0] == "d"]
    assert all("roce-exporter" in name for name in folders), "a folder of the system"


@pytest.mark.release("rpm", "bytes")
def test_the_same_commit_gives_the_same_bytes(rpm, tmp_path) -> None:
    """With another umask, folder for temporary files, locale and time zone; nothing in it is of this machine or moment."""
    away = tmp_path / "away"
    away.mkdir()
    again = build(tmp_path / "again", 0o077, TMPDIR=str(away), LC_ALL="C.UTF-8", TZ="Asia/Tokyo")
    assert (again.name, again.read_bytes()) == (rpm.name, rpm.read_bytes())
    assert not list(away.iterdir())
    fields = "%{BUILDTIME} %{BUILDHOST}\\n[%{FILEMTIMES} %{FILEUSERNAME}:%{FILEGROUPNAME}\\n]"
    made, *files = answer(rpm, f"--queryformat={fields}")
    assert made == f"{BUILD['SOURCE_DATE_EPOCH']} localhost"
    assert set(files) == {f"{BUILD['SOURCE_DATE_EPOCH']} root:root"}


@pytest.mark.release("rpm", "install", "metric", "upgrade", "rollback", "remove")
def test_install_upgrade_and_erase(rpm, tmp_path) -> None:
    """Without the requirements and scriptlets that an empty root cannot meet."""
    need_root()
    root = tmp_path / "root"
    root.mkdir()

    def change(*arguments: str | Path) -> None:
        subprocess.run(["rpm", "--root", root, "--nodeps", "--noscripts", *arguments], check=True)

    earlier = build(tmp_path, source=commit(tmp_path / "source", EARLIER))
    change("--install", earlier)
    command = root / COMMAND
    assert command.read_text().startswith("#!/usr/bin/python3.12 -IB\n")
    once = printed(debians_python(), "-IB", command, "once", "--host.simulate=quiet")
    assert "\nroce_ecn_marked_packets_total{" in once
    default = root / CONFIGS[0].lstrip("/")
    default.write_text('ROCE_EXPORTER_FLAGS="--mine"\n')
    for package, flags in ((rpm, ()), (earlier, ("--oldpackage",)), (rpm, ())):
        change("--upgrade", *flags, package)
        version = answer(package, "--queryformat=%{VERSION}")[0]
        assert version in printed(debians_python(), "-IB", command, "--version")
        assert default.read_text() == 'ROCE_EXPORTER_FLAGS="--mine"\n'
    change("--erase", "roce-exporter")
    assert [path.name for path in root.rglob("*roce*")] == [f"{default.name}.rpmsave"]


USER = "systemd-sysusers roce-exporter.conf"


@pytest.mark.parametrize(
    ("scriptlet", "remaining", "calls"),
    [
        ("POSTIN", "1", [USER, "systemctl --no-reload preset roce-exporter.service"]),
        ("POSTIN", "2", [USER]),
        ("PREUN", "0", ["systemctl --no-reload disable"]),
        ("PREUN", "1", []),
        ("POSTUN", "0", []),
    ],
)
def test_scriptlets(rpm, tmp_path, scriptlet, remaining, calls) -> None:
    """As in a root without a running systemd. The count says whether it is an upgrade."""
    for name in ("systemctl", "systemd-sysusers"):
        (tmp_path / name).write_text(RECORDER)
        (tmp_path / name).chmod(0o755)
    log = tmp_path / "log"
    log.touch()
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(log)}
    text = "\n".join(answer(rpm, f"--queryformat=%{{{scriptlet}}}"))
    # this machine's own systemd must not decide
    script = text.replace("/run/systemd/system", str(tmp_path / "no-systemd"))
    subprocess.run(["sh", "-e", "-c", script, "scriptlet", remaining], env=environment, check=True)
    called = log.read_text().splitlines()
    assert len(called) == len(calls)
    assert all(line.startswith(call) for line, call in zip(called, calls, strict=True))
