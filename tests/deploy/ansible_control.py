"""The machine that runs Ansible: a folder with the role as users copy it, a playbook, an inventory, and three versions of the exporter.

The versions are the one built, a next one, and one whose daemon does not start: each as a Debian package, in a signed apt repository, and
as a wheel with the wheels of its dependencies.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apt_repository import keyring, publish
from deploy_machine import ADDRESS, Machine
from deploy_tools import DEPLOY, ROOT, tool_environment

import roce_exporter

OLD = roce_exporter.__version__
NEXT = "9.0.0"
BROKEN = "9.1.0"
FAULT = """
_whole = main


def main():
    import sys

    return _whole() if "--version" in sys.argv else 3
"""
"""What the command of the broken version has in addition."""
KILLER = """if [ -s '{mark}' ] && grep -q "$(cat '{mark}')" '{root}/etc/roce-exporter/config.yml'; then
  : >'{mark}'
  kill -9 "$(cat '{pid}')"
  exit 255
fi
"""
"""In the program in place of ssh: after config.yml has the text of the mark, the next task kills the run."""


def renamed(name: str, content: str, version: str) -> str:
    """The content of this file of the exporter in another version."""
    if name.endswith("roce_exporter/__init__.py"):
        return content.replace(f'"{OLD}"', f'"{version}"')
    if name.endswith("roce_exporter/cli/__init__.py") and version == BROKEN:
        return content + FAULT
    if name.endswith(("DEBIAN/control", ".dist-info/METADATA")):
        return content.replace(f"Version: {OLD}\n", f"Version: {version}\n")
    return (
        content.replace(f"-{OLD}.dist-info", f"-{version}.dist-info") if name.endswith("RECORD") else content
    )


def make_packages(package: Path, folder: Path) -> None:
    """Debian packages of the three versions in this folder, and a signed apt repository of them below it."""
    found = [Path(shutil.copy(package, folder))]
    for version in (NEXT, BROKEN):
        root = folder / f"package-{version}"
        subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
        library = root / "opt/roce-exporter/lib/roce_exporter"
        for file in (root / "DEBIAN/control", library / "__init__.py", library / "cli/__init__.py"):
            file.write_text(renamed(str(file), file.read_text(), version))
        found.append(folder / package.name.replace(OLD, version))
        build = ["dpkg-deb", "-Znone", "--root-owner-group", "--build", root, found[-1]]
        subprocess.run(build, check=True, capture_output=True)
    with keyring("test@localhost") as environment:
        made = publish(folder / "repository", "test@localhost", environment, *found)
    assert made.returncode == 0, made.stderr


def make_wheels(folder: Path, python: str = "3.11") -> None:
    """Wheels of the three versions in this folder, and below it those of requirements.lock for this Python."""
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    for version in (NEXT, BROKEN):
        place = folder / wheel.name.replace(OLD, version)
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(place, "w") as target:
            for name in source.namelist():
                content = renamed(name, source.read(name).decode(), version)
                target.writestr(name.replace(f"-{OLD}.dist-info", f"-{version}.dist-info"), content)
    platforms = [f"manylinux_{glibc}" for glibc in ("2_28", "2_17", "2_12")] + ["manylinux2014"]
    command = [*pip, "download", "--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:"]
    command += [f"--platform={one}_{platform.machine()}" for one in platforms]
    command += [f"--python-version={python}", f"--dest={folder / 'wheels'}"]
    subprocess.run([*command, f"--requirement={ROOT / 'requirements.lock'}"], check=True)


@dataclass(frozen=True)
class Play:
    """What a run of the playbook printed."""

    output: str
    code: int

    @property
    def changed(self) -> int:
        """The number of tasks that changed something."""
        (found,) = re.findall(r"^machine .* changed=(\d+) ", self.output, re.MULTILINE)
        return int(found)

    @property
    def message(self) -> str:
        """The error message at the end."""
        return str(json.loads(self.output.rpartition("FAILED! => ")[2].partition("\n")[0])["msg"])


@dataclass(frozen=True)
class Control:
    """A folder with the role, a playbook and an inventory of one machine."""

    folder: Path
    machine: Machine

    def play(self, variables: dict[str, Any], *flags: str, kill_at: str = "") -> Play:
        """Run the playbook with these variables; kill it at the first task after config.yml on the machine has this text."""
        (self.folder / "mark").write_text(kill_at)
        (self.folder / "variables.json").write_text(json.dumps(variables))
        environment = {
            **os.environ,
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_ARGS": "",
            "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
            "LC_ALL": "C.UTF-8",
        }
        own = ("--inventory=hosts.yml", "--extra-vars=@variables.json", "--diff")
        command = [tool_environment("ansible") / "ansible-playbook", *own, *flags, "site.yml"]
        with (self.folder / "output").open("w+") as output:
            run = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            (self.folder / "pid").write_text(str(run.pid))
            code = run.wait()
            output.seek(0)
            return Play(output.read(), code)

    def client(self, path: str, *flags: str) -> str:
        """The reply that a client outside gets, with the certificate checked."""
        authority = ["--cacert", str(self.folder / "certificate.pem")]
        return self.machine.curl(*authority, *flags, f"https://{ADDRESS}:10200{path}")


def role(folder: Path) -> Path:
    """The role as docs tell users to copy it: links become files."""
    return shutil.copytree(DEPLOY / "ansible", folder / "roles/roce_exporter")


def control(folder: Path, machine: Machine) -> Control:
    """A playbook with the role for one machine."""
    role(folder)
    ssh = folder / "ssh-of-ansible"
    killer = KILLER.format(mark=folder / "mark", root=machine.root, pid=folder / "pid")
    ssh.write_text(f'#!/bin/sh\n{killer}exec {machine.ssh} "$@"\n')
    ssh.chmod(0o755)
    host = {"ansible_ssh_executable": str(ssh), "ansible_python_interpreter": "/usr/bin/python3"}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"machine": host}}}))
    plays = [{"hosts": "all", "gather_facts": False, "roles": ["roce_exporter"]}]
    (folder / "site.yml").write_text(json.dumps(plays))
    return Control(folder, machine)
