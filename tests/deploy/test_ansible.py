"""The Ansible role on a machine that really boots: installed, converged again, misconfigured, upgraded, returned and removed.

The role is copied as a user copies it. The versions are the package with other numbers; one of them cannot start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from apt_repository import keyring, publish
from deploy_machine import ADDRESS, CLIENTS, Machine, booted
from deploy_tools import DEPLOY, need, tool_environment

import roce_exporter

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLE = DEPLOY / "ansible"
PASSWORD = "opensesame"  # noqa: S105 - of this test only
USER = ("--user", f"prometheus:{PASSWORD}")
HASH = "$2b$04$MlePiL00ynAWhBc07aMaEuDyeQi83eO2d9OgkWFT02vgs/SvBpu3G"
"""Of the password, with the least cost."""
NEXT = "9.0.0"
BROKEN = "9.1.0"
UNIT = "roce-exporter.service"


def versions(package: str, folder: Path) -> dict[str, Path]:
    """Packages of three versions: the one built, a next one, and one whose command fails."""
    old = roce_exporter.__version__
    files = {version: folder / Path(package).name.replace(old, version) for version in (old, NEXT, BROKEN)}
    shutil.copy(package, files[old])
    root = folder / "package"
    subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
    module = root / "opt/roce-exporter/lib/roce_exporter/__init__.py"
    control = root / "DEBIAN/control"
    for version in (NEXT, BROKEN):
        module.write_text(module.read_text().replace(f'"{old}"', f'"{version}"'))
        control.write_text(control.read_text().replace(f"Version: {old}\n", f"Version: {version}\n"))
        if version == BROKEN:
            command = root / "opt/roce-exporter/bin/roce-exporter"
            command.write_text(
                command.read_text().replace(
                    "    sys.exit(main())", '    sys.exit(main() if "--version" in sys.argv else 3)'
                )
            )
        subprocess.run(
            ["dpkg-deb", "-Znone", "--root-owner-group", "--build", root, files[version]],
            check=True,
            capture_output=True,
        )
        old = version
    return files


def repository(folder: Path, packages: dict[str, Path]) -> None:
    """A signed apt repository of these packages."""
    # below /tmp itself: the sockets of gpg-agent have short names
    keys = Path(f"/tmp/roce-keys-{os.getpid()}-ansible")
    with keyring(keys, "test@localhost") as environment:
        made = publish(folder / "repository", "test@localhost", environment, *map(str, packages.values()))
    shutil.rmtree(keys)
    assert made.returncode == 0, made.stderr


def role(folder: Path) -> Path:
    """The role as docs tell users to copy it: links become files."""
    return shutil.copytree(ROLE, folder / "roles/roce_exporter")


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


@dataclass(frozen=True)
class Control:
    """The machine that runs Ansible: a folder with the role, a playbook and an inventory."""

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
            tool_environment("ansible") / "ansible-playbook",
            "--inventory=hosts.yml",
            "--extra-vars=@variables.json",
            "--diff",
            *flags,
            "site.yml",
        ]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Play(done.stdout + done.stderr, done.returncode)


def control(folder: Path, machine: Machine) -> Control:
    """A playbook with the role for one machine."""
    role(folder)
    hosts = {
        "machine": {
            "ansible_ssh_executable": str(machine.ssh),
            "ansible_python_interpreter": "/usr/bin/python3",
        }
    }
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    plays = [{"hosts": "all", "gather_facts": False, "roles": ["roce_exporter"]}]
    (folder / "site.yml").write_text(json.dumps(plays))
    return Control(folder, machine)


def variables(folder: Path, version: str, **others: object) -> dict[str, Any]:
    """All that the role can configure on one host."""
    return {
        "roce_exporter_version": version,
        "roce_exporter_repository_url": f"http://{CLIENTS[0]}:8080",
        "roce_exporter_repository_key": (folder / "repository/roce-exporter.asc").read_text(),
        "roce_exporter_package": str(next(folder.glob(f"roce-exporter_{version}_*.deb"))),
        "roce_exporter_config": {"metrics.set": "lean", "web.listen-address": [":10200"]},
        "roce_exporter_tls_certificate": (folder / "certificate.pem").read_text(),
        "roce_exporter_tls_key": (folder / "key.pem").read_text(),
        "roce_exporter_users": {"prometheus": HASH},
        "roce_exporter_drop_ins": ["owners"],
        "roce_exporter_firewall": "nftables",
        "roce_exporter_firewall_sources": [f"{CLIENTS[0]}/32"],
        **others,
    }


def certificate(folder: Path) -> None:
    """A certificate for the machine's address, signed by itself, and its key."""
    command = [need("openssl", "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=machine"]
    command += ["-addext", f"subjectAltName=IP:{ADDRESS}", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@dataclass(frozen=True)
class Moment:
    """A run of the playbook, and what the machine and a client outside see afterwards."""

    play: Play
    invocation: str
    version: str
    reply: str


@dataclass
class Journey:
    """What the machine went through."""

    moments: dict[str, Moment]
    seen: dict[str, str]


def moment(control: Control, play: Play) -> Moment:
    """The state of the machine after a run."""
    machine = control.machine
    invocation = machine.run(f"systemctl show -P InvocationID {UNIT}")
    version = machine.run("/opt/roce-exporter/bin/roce-exporter --version").rpartition(" ")[2]
    return Moment(play, invocation, version, client(control, "/-/ready", *USER))


def client(control: Control, path: str, *flags: str) -> str:
    """The reply that a client outside gets, with the certificate checked."""
    authority = ["--cacert", str(control.folder / "certificate.pem")]
    return control.machine.curl(*authority, *flags, f"https://{ADDRESS}:10200{path}")


def looked_at(control: Control) -> dict[str, str]:
    """Files, capabilities and replies of the configured machine."""
    machine = control.machine
    code = ("--write-out", "%{http_code}")
    return {
        "files": machine.run("stat -c '%a %U:%G %n' /etc/roce-exporter /etc/roce-exporter/*"),
        "without user": client(control, "/-/ready", *code)[-3:],
        "metrics": client(control, "/metrics", *USER),
        "other source": client(
            control, "/-/ready", "--interface", CLIENTS[1], "--connect-timeout", "2", *code
        )[-3:],
        "drop-ins": machine.run(f"systemctl show -P DropInPaths {UNIT}"),
        "ProtectProc": machine.run(f"systemctl show -P ProtectProc {UNIT}"),
    }


@pytest.fixture(scope="module", params=os.environ.get("ROCE_ANSIBLE_SUITES", "bookworm").split())
def journey(
    request: pytest.FixtureRequest, package: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Journey]:
    """All runs of the playbook on one machine, in the order of an exporter's life."""
    need("curl", "curl")
    folder = tmp_path_factory.mktemp("ansible")
    old = roce_exporter.__version__
    repository(folder, versions(package, folder))
    certificate(folder)
    with booted(folder, request.param) as machine, machine.served(folder / "repository"):
        here = control(folder, machine)
        moments = {"installed": moment(here, here.play(variables(folder, old), "-vvv"))}
        seen = looked_at(here)
        # what a play leaves that is killed between a file and its handler
        machine.run("touch /etc/roce-exporter/config.yml")
        steps: dict[str, dict[str, Any]] = {
            "resumed": variables(folder, old),
            "again": variables(folder, old),
            "misconfigured": variables(folder, old, roce_exporter_config={"metrics.set": "most"}),
            "broken": variables(folder, BROKEN, roce_exporter_drop_ins=["optics"]),
            "upgraded": variables(folder, NEXT, roce_exporter_install_from="package"),
        }
        for name, chosen in steps.items():
            moments[name] = moment(here, here.play(chosen))
        seen["restored"] = machine.run("ls /etc/systemd/system/roce-exporter.service.d")
        gone = here.play(variables(folder, old, roce_exporter_state="absent"))
        seen["left"] = machine.run(
            "find / -xdev -path /proc -prune -o -name '*roce[-_]exporter*' -print;"
            " nft list tables | grep roce; systemctl list-units --all --plain --no-legend 'roce*'"
        )
        seen["user"] = machine.run("id -un roce-exporter")
        yield Journey({**moments, "removed": moment(here, gone)}, seen)
    shutil.rmtree(folder / "root")


def test_it_installs_and_a_second_run_changes_nothing(journey: Journey) -> None:
    first, second = journey.moments["resumed"], journey.moments["again"]
    assert journey.moments["installed"].play.code == 0, journey.moments["installed"].play.output[-3000:]
    assert (second.play.code, second.play.changed) == (0, 0), second.play.output[-3000:]
    assert first.invocation == second.invocation
    assert (second.version, second.reply) == (roce_exporter.__version__, "roce_exporter is ready.\n")


def test_a_run_after_one_that_was_killed_restarts_the_daemon(journey: Journey) -> None:
    first, resumed = journey.moments["installed"], journey.moments["resumed"]
    assert resumed.play.code == 0, resumed.play.output[-3000:]
    assert first.invocation != resumed.invocation
    assert resumed.reply == "roce_exporter is ready.\n"


def test_clients_need_the_certificate_a_user_and_an_admitted_source(journey: Journey) -> None:
    assert journey.seen["without user"] == "401"
    assert "roce_exporter_build_info" in journey.seen["metrics"]
    assert journey.seen["other source"] == "000"


def test_the_drop_in_is_in_effect(journey: Journey) -> None:
    assert journey.seen["drop-ins"].split("/")[-1] == "owners.conf"
    assert journey.seen["ProtectProc"] == "default"


def test_secrets_are_in_a_file_of_root_and_the_group_and_nowhere_in_the_output(journey: Journey) -> None:
    assert journey.seen["files"].splitlines() == [
        "750 root:roce-exporter /etc/roce-exporter",
        "640 root:roce-exporter /etc/roce-exporter/config.yml",
        "640 root:roce-exporter /etc/roce-exporter/web.yml",
    ]
    for one in journey.moments.values():
        assert HASH not in one.play.output
        assert "PRIVATE KEY" not in one.play.output


def test_a_bad_configuration_is_refused_and_the_daemon_runs_on(journey: Journey) -> None:
    refused = journey.moments["misconfigured"]
    assert refused.play.code == 2
    last = json.loads(refused.play.output.rpartition("FAILED! => ")[2].partition("\n")[0])["msg"]
    assert "metrics.set: argument --metrics.set: invalid choice: 'most'" in last
    assert "\n" not in last
    assert refused.invocation == journey.moments["again"].invocation
    assert refused.reply == "roce_exporter is ready.\n"


def test_a_version_that_does_not_start_returns_to_the_one_before(journey: Journey) -> None:
    back = journey.moments["broken"]
    assert back.play.code == 2
    assert f"the host has version {roce_exporter.__version__} and its configuration again" in back.play.output
    assert (back.version, back.reply) == (roce_exporter.__version__, "roce_exporter is ready.\n")


def test_an_upgrade_has_the_version_and_the_drop_ins(journey: Journey) -> None:
    new = journey.moments["upgraded"]
    assert new.play.code == 0, new.play.output[-3000:]
    assert (new.version, new.reply) == (NEXT, "roce_exporter is ready.\n")
    assert journey.seen["restored"] == "owners.conf"


def test_nothing_is_left_but_the_user(journey: Journey) -> None:
    removed = journey.moments["removed"]
    assert removed.play.code == 0, removed.play.output[-3000:]
    assert (journey.seen["left"], journey.seen["user"]) == ("", "roce-exporter")
    assert removed.reply == ""


BAD = {
    "roce_exporter_version": ({"install_from": "package"}, "required"),
    "roce_exporter_tls_key": ({"tls_key": "x"}, "both or neither are required"),
    "roce_exporter_users": ({"users": {"a": "plain-secret"}}, "must be a bcrypt hash"),
    "roce_exporter_drop_ins": ({"drop_ins": ["optic"]}, "must be one or more of"),
}
"""For each variable: what is given to a host, and what is wrong with it."""


def test_bad_variables_are_one_clear_line(tmp_path: Path) -> None:
    """Before anything is changed: the hosts here are all this one, and each run ends before its first task."""
    here = control(tmp_path, Machine(tmp_path, tmp_path, ""))
    hosts = {
        name: {f"roce_exporter_{key}": value for key, value in given.items()}
        for name, (given, _) in BAD.items()
    }
    local = {"ansible_connection": "local"}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts, "vars": local}}))
    play = here.play({}, "--check")
    for name, (_, message) in BAD.items():
        (line,) = re.findall(rf"^fatal: \[{name}\]: FAILED! => (.*)$", play.output, re.MULTILINE)
        assert name in json.loads(line)["msg"]
        assert message in json.loads(line)["msg"]
    assert re.findall(r" changed=(\d+)", play.output) == ["0"] * len(BAD)
    assert "plain-secret" not in play.output


def test_the_role_is_clean_for_ansible_lint(tmp_path: Path) -> None:
    """With the profile for production, without a look at Galaxy."""
    place = role(tmp_path)
    tools = tool_environment("ansible")
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"),
    }
    command = [
        tools / "ansible-lint",
        "--offline",
        "--nocolor",
        "--profile=production",
        place.relative_to(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
