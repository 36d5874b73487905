"""The machine that runs Ansible: a folder with the role as users copy it, a playbook and an inventory."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deploy_machine import ADDRESS, Machine
from deploy_tools import DEPLOY, tool_environment

if TYPE_CHECKING:
    from pathlib import Path

KILLER = """if [ -s '{mark}' ] && grep -q "$(cat '{mark}')" '{root}/etc/roce-exporter/config.yml'; then
  : >'{mark}'
  kill -9 "$(cat '{pid}')"
  exit 255
fi
"""
"""In the program in place of ssh: after config.yml has the text of the mark, the next task kills the run."""


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

    def play(self, variables: dict[str, Any], *flags: str) -> Play:
        """Run the playbook with these variables."""
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
        command = [
            str(tool_environment("ansible") / "ansible-playbook"),
            "--inventory=hosts.yml",
            "--extra-vars=@variables.json",
            "--diff",
            *flags,
            "site.yml",
        ]
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

    def killed(self, variables: dict[str, Any], text: str) -> Play:
        """Run the playbook, and kill it at the first task after config.yml on the machine has this text."""
        (self.folder / "mark").write_text(text)
        return self.play(variables)

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
    hosts = {
        "machine": {"ansible_ssh_executable": str(ssh), "ansible_python_interpreter": "/usr/bin/python3"}
    }
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    plays = [{"hosts": "all", "gather_facts": False, "roles": ["roce_exporter"]}]
    (folder / "site.yml").write_text(json.dumps(plays))
    return Control(folder, machine)
