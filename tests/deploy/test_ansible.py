"""The Ansible role on machines that really boot: installed, converged again, killed, misconfigured, upgraded, returned and removed.

The role is copied as a user copies it. `ROCE_ANSIBLE_SUITES` and `ROCE_ANSIBLE_WAYS` select suites of Debian and ways of installation (docs/testing.md).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from ansible_control import Control, Play, control, role
from ansible_versions import BROKEN, NEXT, OLD, dependencies, packages, repository, wheels
from deploy_machine import ADDRESS, CLIENTS, Machine, booted
from deploy_tools import ROOT, need, tool_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.nightly

SUITES = os.environ.get("ROCE_ANSIBLE_SUITES", "bookworm").split()
WAYS = os.environ.get("ROCE_ANSIBLE_WAYS", "package").split()
PASSWORD = "opensesame"  # noqa: S105 - of this test only
USER = ("--user", f"prometheus:{PASSWORD}")
HASH = "$2b$04$MlePiL00ynAWhBc07aMaEuDyeQi83eO2d9OgkWFT02vgs/SvBpu3G"
"""Of the password, with the least cost."""
UNIT = "roce-exporter.service"
READY = "roce_exporter is ready.\n"


def chosen(folder: Path, version: str) -> dict[str, Any]:
    """A version, and its files on this machine."""
    return {
        "roce_exporter_version": version,
        "roce_exporter_package": str(next(folder.glob(f"roce-exporter_{version}_*.deb"))),
        "roce_exporter_wheel": f"{folder}/roce_exporter-{version}-py3-none-any.whl",
    }


def variables(folder: Path, way: str, version: str, **others: object) -> dict[str, Any]:
    """All that the role can configure on one host, installed in this way."""
    return {
        "roce_exporter_install_from": way,
        **chosen(folder, version),
        "roce_exporter_repository_url": f"http://{CLIENTS[0]}:8080",
        "roce_exporter_repository_key": (folder / "repository/roce-exporter.asc").read_text(),
        "roce_exporter_requirements": str(ROOT / "requirements.lock"),
        "roce_exporter_wheels": str(folder / "wheels"),
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
class Life:
    """What the machine went through from an installation to the removal."""

    moments: dict[str, Moment]
    seen: dict[str, str]


def moment(control: Control, play: Play) -> Moment:
    """The state of the machine after a run."""
    machine = control.machine
    invocation = machine.run(f"systemctl show -P InvocationID {UNIT}")
    version = machine.run("/opt/roce-exporter/bin/roce-exporter --version").rpartition(" ")[2]
    return Moment(play, invocation, version, control.client("/-/ready", *USER))


def looked_at(control: Control) -> dict[str, str]:
    """Files, capabilities and replies of the configured machine."""
    machine = control.machine
    code = ("--write-out", "%{http_code}")
    return {
        "files": machine.run("stat -c '%a %U:%G %n' /etc/roce-exporter /etc/roce-exporter/*"),
        "without user": control.client("/-/ready", *code)[-3:],
        "metrics": control.client("/metrics", *USER),
        "other source": control.client(
            "/-/ready", "--interface", CLIENTS[1], "--connect-timeout", "2", *code
        )[-3:],
        "drop-ins": machine.run(f"systemctl show -P DropInPaths {UNIT}"),
        "ProtectProc": machine.run(f"systemctl show -P ProtectProc {UNIT}"),
    }


def steps(folder: Path, way: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The runs after the installation, each with its variables; a host with a package goes on with the repository."""
    if way == "wheel":
        now = variables(folder, way, OLD)
        wrong = {"basic_auth_user": {"prometheus": HASH}}
        yield "secretly wrong", {**now, "roce_exporter_web_config": wrong}
    else:
        changed = {"metrics.set": "standard", "web.listen-address": [":10200"]}
        now = variables(folder, "repository", OLD, roce_exporter_config=changed)
        yield "killed", now
        yield "resumed", now
        yield "misconfigured", {**now, "roce_exporter_config": {"metrics.set": "most"}}
    yield "again", now
    yield "broken", {**now, **chosen(folder, BROKEN), "roce_exporter_drop_ins": ["optics"]}
    yield "upgraded", {**now, **chosen(folder, NEXT)}


def lived(control: Control, way: str) -> Life:
    """All runs of the playbook on the machine, in the order of an exporter's life."""
    folder, machine = control.folder, control.machine
    installed = moment(control, control.play(variables(folder, way, OLD), "-vvv"))
    life = Life({"installed": installed}, looked_at(control))
    for name, given in steps(folder, way):
        play = control.killed(given, "standard") if name == "killed" else control.play(given)
        life.moments[name] = moment(control, play)
    life.seen["restored"] = machine.run("ls /etc/systemd/system/roce-exporter.service.d")
    gone = control.play(variables(folder, way, OLD, roce_exporter_state="absent"))
    # apt keeps what it has downloaded, of any package
    life.seen["left"] = machine.run(
        "find / -xdev -path /proc -prune -o -path /var/cache/apt -prune -o -name '*roce[-_]exporter*' -print;"
        " nft list tables | grep roce; systemctl list-units --all --plain --no-legend 'roce*'"
    )
    life.seen["user"] = machine.run("id -un roce-exporter")
    life.moments["removed"] = moment(control, gone)
    return life


@pytest.fixture(scope="module", params=SUITES)
def here(
    request: pytest.FixtureRequest, package: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Control]:
    """A machine of one suite of Debian, shared by all ways of installation."""
    need("curl", "curl")
    folder = tmp_path_factory.mktemp("ansible")
    served = repository(folder, packages(package, folder))
    wheels(folder)
    dependencies(folder / "wheels", request.param)
    certificate(folder)
    with booted(folder, request.param) as machine, machine.served(served):
        yield control(folder, machine)
    shutil.rmtree(folder / "root")


@pytest.fixture(scope="module", params=WAYS)
def life(request: pytest.FixtureRequest, here: Control) -> Life:
    """Installed in one way, until it is removed."""
    return lived(here, request.param)


def of(life: Life, name: str) -> Moment:
    """A moment that some ways of installation do not have."""
    if name not in life.moments:
        pytest.skip(f"{name}: tested with another way of installation")
    return life.moments[name]


def test_it_installs_and_a_further_run_changes_nothing(life: Life) -> None:
    """Also where the run between them was refused."""
    installed, again = life.moments["installed"], life.moments["again"]
    before = life.moments.get("resumed", installed)
    assert installed.play.code == 0, installed.play.output[-3000:]
    assert installed.play.changed > 0
    assert (again.play.code, again.play.changed) == (0, 0), again.play.output[-3000:]
    assert before.invocation == again.invocation
    assert (again.version, again.reply) == (OLD, READY)


def test_clients_need_the_certificate_a_user_and_an_admitted_source(life: Life) -> None:
    assert life.seen["without user"] == "401"
    assert "roce_exporter_build_info" in life.seen["metrics"]
    assert life.seen["other source"] == "000"


def test_the_drop_in_is_in_effect(life: Life) -> None:
    assert life.seen["drop-ins"].split("/")[-1] == "owners.conf"
    assert life.seen["ProtectProc"] == "default"


def test_secrets_are_in_a_file_of_root_and_the_group_and_nowhere_in_the_output(life: Life) -> None:
    assert life.seen["files"].splitlines() == [
        "750 root:roce-exporter /etc/roce-exporter",
        "640 root:roce-exporter /etc/roce-exporter/config.yml",
        "640 root:roce-exporter /etc/roce-exporter/web.yml",
    ]
    for one in life.moments.values():
        assert HASH not in one.play.output
        assert "PRIVATE KEY" not in one.play.output


def test_a_run_after_one_that_was_killed_restarts_the_daemon(life: Life) -> None:
    """The killed run has replaced config.yml and nothing else, so for Ansible the next run changes no file."""
    before, killed, resumed = (of(life, name) for name in ("installed", "killed", "resumed"))
    assert killed.play.code == -signal.SIGKILL, killed.play.output[-3000:]
    assert killed.invocation == before.invocation
    assert resumed.play.code == 0, resumed.play.output[-3000:]
    assert resumed.invocation != killed.invocation
    assert resumed.reply == READY


def test_a_bad_configuration_is_refused_in_one_line_and_the_daemon_runs_on(life: Life) -> None:
    refused = of(life, "misconfigured")
    assert refused.play.code == 2
    assert re.fullmatch(
        r"Configure the exporter: failed to validate: roce-exporter: /etc/roce-exporter/config[.]yml:\d+: metrics[.]set: "
        r".*invalid choice: 'most' [(]choose from '?lean'?, '?standard'?, '?full'?[)].*; correct roce_exporter_config "
        rf"[(]the host has version {re.escape(OLD)} and its configuration again[)]",
        refused.play.message,
    ), refused.play.message
    assert refused.invocation == life.moments["resumed"].invocation
    assert refused.reply == READY


def test_a_bad_web_configuration_names_the_variables_and_hides_the_secrets(life: Life) -> None:
    refused = of(life, "secretly wrong")
    assert refused.play.code == 2
    assert refused.play.message.startswith(
        "Configure TLS and users: its output is hidden; the exporter does not"
    )
    for name in ("/etc/roce-exporter/web.yml", "roce_exporter_users", "roce_exporter_web_config"):
        assert name in refused.play.message
    assert "\n" not in refused.play.message
    assert refused.invocation == life.moments["installed"].invocation


def test_a_version_that_does_not_start_returns_to_the_one_before(life: Life) -> None:
    back = life.moments["broken"]
    assert back.play.code == 2
    assert back.play.message.startswith(
        "Restart roce-exporter: Unable to restart service roce-exporter.service: "
    )
    assert back.play.message.endswith(f"(the host has version {OLD} and its configuration again)")
    assert "\n" not in back.play.message
    assert (back.version, back.reply) == (OLD, READY)


def test_an_upgrade_has_the_version_and_the_drop_ins(life: Life) -> None:
    new = life.moments["upgraded"]
    assert new.play.code == 0, new.play.output[-3000:]
    assert (new.version, new.reply) == (NEXT, READY)
    assert life.seen["restored"] == "owners.conf"


def test_nothing_is_left_but_the_user(life: Life) -> None:
    removed = life.moments["removed"]
    assert removed.play.code == 0, removed.play.output[-3000:]
    assert (life.seen["left"], life.seen["user"]) == ("", "roce-exporter")
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
