"""The Ansible role on machines that really boot: installed, converged again, killed, misconfigured, upgraded, returned and removed.

The role is copied as a user copies it. Each way of installation is one life of a host.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_control import BROKEN, NEXT, OLD, Control, control, make_packages, make_wheels, role
from deploy_machine import ADDRESS, CLIENTS, Machine, booted
from deploy_tools import ROOT, ran, tool_environment
from tools import need

pytestmark = pytest.mark.nightly

PASSWORD = "opensesame"  # noqa: S105 - of this test only
USER = ("--user", f"prometheus:{PASSWORD}")
HASH = "$2b$04$MlePiL00ynAWhBc07aMaEuDyeQi83eO2d9OgkWFT02vgs/SvBpu3G"
"""Of the password, with the least cost."""
UNIT = "roce-exporter.service"
READY = "roce_exporter is ready.\n"
CODE = ("--write-out", "%{http_code}")


def chosen(folder: Path, version: str) -> dict[str, Any]:
    """A version, and its files on this machine."""
    return {
        "roce_exporter_version": version,
        "roce_exporter_package": str(next(folder.glob(f"roce-exporter_{version}_*.deb"))),
        "roce_exporter_wheel": f"{folder}/roce_exporter-{version}-py3-none-any.whl",
    }


def variables(folder: Path, way: str, **others: object) -> dict[str, Any]:
    """All that the role can configure on one host, installed in this way."""
    return {
        "roce_exporter_install_from": way,
        **chosen(folder, OLD),
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


@pytest.fixture(scope="module")
def here(package, tmp_path_factory) -> Iterator[Control]:
    """A machine of Debian 12, shared by all ways of installation."""
    need("curl")
    folder = tmp_path_factory.mktemp("ansible")
    make_packages(package, folder)
    make_wheels(folder)
    # a certificate for the machine's address, signed by itself, and its key
    command = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=machine -addext subjectAltName=IP:{ADDRESS}"
    command += " -keyout key.pem -out certificate.pem"
    subprocess.run([need("openssl"), *command.split()], cwd=folder, check=True, capture_output=True)
    with booted(folder) as machine, machine.served(folder / "repository"):
        yield control(folder, machine)
    shutil.rmtree(folder / "root")


def state(here: Control) -> tuple[str, str]:
    """The version of the exporter, and its reply to a client."""
    version = here.machine.run("/opt/roce-exporter/bin/roce-exporter --version").rpartition(" ")[2]
    return version, here.client("/-/ready", *USER)


def start(here: Control) -> str:
    """What identifies the present start of the daemon."""
    return here.machine.run(f"systemctl show -P InvocationID {UNIT}")


@pytest.mark.parametrize("way", ["package", "wheel"])
def test_the_life_of_a_host(here, way) -> None:
    """A host with a package goes on with the repository."""
    folder, machine = here.folder, here.machine
    now = variables(folder, way)
    outputs = []

    def play(given: dict[str, Any], *flags: str, code: int = 0, kill_at: str = "") -> Any:
        """A run, whose output hides the secrets."""
        done = here.play(given, *flags, kill_at=kill_at)
        assert done.code == code, done.output[-3000:]
        outputs.append(done.output)
        return done

    assert play(now, "-vvv").changed > 0
    check_configured(here)
    first = start(here)
    if way == "package":
        changed = {"metrics.set": "standard", "web.listen-address": [":10200"]}
        now = variables(folder, "repository", roce_exporter_config=changed)
        check_killed_and_resumed(here, now, first, play)
        check_bad_configuration(here, now, play)
    else:
        check_bad_secrets(here, now, play)

    before = start(here)
    assert play(now).changed == 0, "also after a run that was refused"
    assert (start(here), state(here)) == (before, (OLD, READY))

    back = play({**now, **chosen(folder, BROKEN), "roce_exporter_drop_ins": ["optics"]}, code=2).message
    assert back.startswith("Restart roce-exporter: Unable to restart service roce-exporter.service: ")
    assert back.endswith(f"(the host has version {OLD} and its configuration again)")
    assert "\n" not in back
    assert state(here) == (OLD, READY)
    play({**now, **chosen(folder, NEXT)})
    assert state(here) == (NEXT, READY)
    assert machine.run("ls /etc/systemd/system/roce-exporter.service.d") == "owners.conf"

    play(variables(folder, way, roce_exporter_state="absent"))
    # apt keeps what it has downloaded, of any package
    left = machine.run(
        "find / -xdev -path /proc -prune -o -path /var/cache/apt -prune -o -name '*roce[-_]exporter*' -print;"
        " nft list tables | grep roce; systemctl list-units --all --plain --no-legend 'roce*'"
    )
    assert (left, machine.run("id -un roce-exporter"), here.client("/-/ready", *USER)) == (
        "",
        "roce-exporter",
        "",
    )
    assert not [text for text in outputs if HASH in text or "PRIVATE KEY" in text]


def check_configured(here: Control) -> None:
    """Clients need the certificate, a user and an admitted source; secrets are in a file of root and the group."""
    machine = here.machine
    assert here.client("/-/ready", *CODE)[-3:] == "401"
    assert "roce_exporter_build_info" in here.client("/metrics", *USER)
    elsewhere = ("--interface", CLIENTS[1], "--connect-timeout", "2")
    assert here.client("/-/ready", *elsewhere, *CODE)[-3:] == "000"
    assert machine.run("stat -c '%a %U:%G %n' /etc/roce-exporter /etc/roce-exporter/*").splitlines() == [
        "750 root:roce-exporter /etc/roce-exporter",
        "640 root:roce-exporter /etc/roce-exporter/config.yml",
        "640 root:roce-exporter /etc/roce-exporter/web.yml",
    ]
    assert machine.run(f"systemctl show -P DropInPaths {UNIT}").split("/")[-1] == "owners.conf"
    assert machine.run(f"systemctl show -P ProtectProc {UNIT}") == "default"


def check_killed_and_resumed(here: Control, now: dict[str, Any], before: str, play: Any) -> None:
    """The killed run has replaced config.yml and nothing else, so for Ansible the next run changes no file: it restarts the daemon."""
    play(now, code=-signal.SIGKILL, kill_at="standard")
    assert start(here) == before
    play(now)
    assert start(here) != before
    assert state(here) == (OLD, READY)


def check_bad_configuration(here: Control, now: dict[str, Any], play: Any) -> None:
    """It is refused in one line, and the daemon runs on."""
    before = start(here)
    refused = play({**now, "roce_exporter_config": {"metrics.set": "most"}}, code=2).message
    assert re.fullmatch(
        r"Configure the exporter: failed to validate: roce-exporter: /etc/roce-exporter/config[.]yml:\d+: metrics[.]set: "
        r".*invalid choice: 'most' [(]choose from '?lean'?, '?standard'?, '?full'?[)].*; correct roce_exporter_config "
        rf"[(]the host has version {re.escape(OLD)} and its configuration again[)]",
        refused,
    ), refused
    assert (start(here), state(here)) == (before, (OLD, READY))


def check_bad_secrets(here: Control, now: dict[str, Any], play: Any) -> None:
    """A bad web configuration names the variables and hides the secrets."""
    before = start(here)
    wrong = {"basic_auth_user": {"prometheus": HASH}}
    refused = play({**now, "roce_exporter_web_config": wrong}, code=2).message
    assert refused.startswith("Configure TLS and users: its output is hidden; the exporter does not")
    for name in ("/etc/roce-exporter/web.yml", "roce_exporter_users", "roce_exporter_web_config"):
        assert name in refused
    assert "\n" not in refused
    assert start(here) == before


BAD = {
    "roce_exporter_version": ({"install_from": "package"}, "required"),
    "roce_exporter_tls_key": ({"tls_key": "x"}, "both or neither are required"),
    "roce_exporter_users": ({"users": {"a": "plain-secret"}}, "must be a bcrypt hash"),
    "roce_exporter_drop_ins": ({"drop_ins": ["optic"]}, "must be one or more of"),
}
"""For each variable: what is given to a host, and what is wrong with it."""


def test_bad_variables_are_one_clear_line(tmp_path) -> None:
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


def test_the_role_is_clean_for_ansible_lint(tmp_path) -> None:
    """With the profile for production, without a look at Galaxy."""
    place = role(tmp_path)
    tools = tool_environment("ansible")
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"),
    }
    flags = ("--offline", "--nocolor", "--profile=production", place.relative_to(tmp_path))
    done = ran(tools / "ansible-lint", *flags, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
