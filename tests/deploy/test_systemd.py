"""The unit: systemd's own tools report no problem, and the exporter works under the unit's restrictions."""

from __future__ import annotations

import base64
import itertools
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

import bcrypt
import pytest
from deploy_daemon import running
from deploy_tools import COMMAND, DEPLOY, fetch, need, need_root, wait_until
from sandbox import system_calls, unit_lines

from roce_exporter.cli.options import parse_options

pytestmark = pytest.mark.ci

UNIT = DEPLOY / "systemd/roce-exporter.service"
SWITCHES = DEPLOY / "systemd/roce-exporter-switches.service"
COUNTERS = DEPLOY / "systemd/roce-exporter-counters@.service"
UDEV_RULE = DEPLOY / "systemd/90-roce-exporter-counters.rules"
WIRE = DEPLOY / "systemd/roce-exporter-wire.service"
NAMESPACES = DEPLOY / "systemd/roce-exporter-namespaces.service"
DROP_INS = sorted(path.stem for path in (DEPLOY / "systemd/drop-ins").glob("*.conf"))
COMBINATIONS = [
    names for count in range(len(DROP_INS) + 1) for names in itertools.combinations(DROP_INS, count)
]
SANDBOX = [sys.executable, str(Path(__file__).with_name("sandbox.py")), str(UNIT), "nobody", sys.prefix]
SWITCHES_SANDBOX = [str(SWITCHES) if word == str(UNIT) else word for word in SANDBOX]
WIRE_SANDBOX = [str(WIRE) if word == str(UNIT) else word for word in SANDBOX]
CAP_NET_RAW = 1 << 13
ROCE_PORT = 4791


def installed(folder: Path, drop_ins: tuple[str, ...] = (), original: Path = UNIT) -> str:
    """The unit as it would be installed, with the path of the command on this machine."""
    text = original.read_text()
    assert "/opt/roce-exporter/bin/roce-exporter" in text
    unit = folder / original.name
    unit.write_text(text.replace("/opt/roce-exporter/bin/roce-exporter", str(COMMAND)))
    place = folder / f"{original.name}.d"
    place.mkdir()
    for name in drop_ins:
        shutil.copy(DEPLOY / f"systemd/drop-ins/{name}.conf", place)
    return str(unit)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [need("systemd-analyze", "systemd"), *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("drop_ins", COMBINATIONS, ids="+".join)
def test_systemd_finds_nothing_wrong(tmp_path: Path, drop_ins: tuple[str, ...]) -> None:
    verdict = analyze("verify", installed(tmp_path, drop_ins))
    assert (verdict.returncode, verdict.stderr) == (0, "")


@pytest.mark.parametrize("drop_ins", COMBINATIONS, ids="+".join)
def test_exposure_is_at_most_two_with_any_three_drop_ins(tmp_path: Path, drop_ins: tuple[str, ...]) -> None:
    """With all that there are it is 2.2."""
    unit = installed(tmp_path, drop_ins)
    most = 20 if len(drop_ins) <= 3 else 22
    verdict = analyze("security", "--offline=true", f"--threshold={most}", unit)
    assert verdict.returncode == 0, verdict.stdout


@pytest.mark.parametrize("original", [SWITCHES, WIRE], ids=lambda path: path.stem)
def test_the_other_units_are_valid_and_as_restricted(tmp_path: Path, original: Path) -> None:
    unit = installed(tmp_path, original=original)
    verdict = analyze("verify", unit)
    assert (verdict.returncode, verdict.stderr) == (0, "")
    assert analyze("security", "--offline=true", "--threshold=20", unit).returncode == 0


def test_the_unit_for_namespaces_may_enter_network_namespaces_and_little_else(tmp_path: Path) -> None:
    unit = installed(tmp_path, original=NAMESPACES)
    verdict = analyze("verify", unit)
    assert (verdict.returncode, verdict.stderr) == (0, "")
    assert analyze("security", "--offline=true", "--threshold=20", unit).returncode == 0
    settings = unit_lines(unit)
    assert settings["AmbientCapabilities"] == settings["CapabilityBoundingSet"] == ["CAP_SYS_ADMIN"]
    assert settings["RestrictNamespaces"] == ["net"]
    calls = system_calls(settings["SystemCallFilter"])
    assert "setns" in calls
    assert not calls & {"mount", "move_mount", "open_by_handle_at", "bpf", "reboot", "swapon", "init_module"}
    (command,) = settings["ExecStart"]
    options = parse_options(command.split()[1:])
    assert options.command == "namespaces"
    assert options.namespaces_socket == f"/run/{settings['RuntimeDirectory'][0]}/namespaces.sock"


def test_the_example_for_switches_works_under_the_restrictions_of_its_unit(tmp_path: Path) -> None:
    """The switch of the example does not exist here, so the probe says that its name cannot be resolved."""
    need_root()
    need("systemd-analyze", "systemd")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)
        shutil.copy(SWITCHES.with_name("switches.yml"), place)
        for name in ("nxos.password", "ca.pem"):
            (place / name).write_text("secret\n")
            (place / name).chmod(0o644)
        flags = [f"--config.file={place}/switches.yml"]
        command = [*SWITCHES_SANDBOX, "-P", "-m", "roce_exporter"]
        with running(command, flags=flags, action="switches") as daemon:
            assert daemon.hear() == "READY=1"
            metrics = fetch(f"{daemon.url}/probe?target=spine1")
            assert 'roce_switch_probe_success{device="spine1"} 0' in metrics
            document = fetch(f"{daemon.url}/debug/probe?target=spine1")
            assert "spine1.example.com: cannot be resolved" in document
            assert daemon.stop() == 0


def test_the_unit_for_counter_sets_is_valid_and_as_restricted(tmp_path: Path) -> None:
    unit = installed(tmp_path, original=COUNTERS)
    verdict = analyze("verify", unit)
    assert (verdict.returncode, verdict.stderr) == (0, "")
    verdict = analyze("security", "--offline=true", "--threshold=20", unit)
    assert verdict.returncode == 0, verdict.stdout


def test_the_unit_for_counter_sets_runs_the_command_for_its_device() -> None:
    text = COUNTERS.read_text()
    (command,) = [line.split()[1:] for line in text.splitlines() if line.startswith("ExecStart=")]
    (flags,) = [
        line.split("=", 2)[2].split() for line in text.splitlines() if line.startswith("Environment=")
    ]
    words = [word.replace("%i", "mlx5_0") for word in command if word != "$ROCE_COUNTERS_FLAGS"]
    options = parse_options([*words, *flags])
    assert (options.command, options.action, options.auto) == ("counters", "enable", 3)
    assert options.device_include.fullmatch("mlx5_0")
    assert "WantedBy" not in text, "an administrator starts it, or the rule for udev"


def test_the_rule_for_udev_starts_that_unit_for_each_device() -> None:
    rules = [line for line in UDEV_RULE.read_text().splitlines() if line and not line.startswith("#")]
    (rule,) = rules
    parts = [part.strip() for part in rule.split(",")]
    assert parts == [
        'ACTION=="add|move"',
        'SUBSYSTEM=="infiniband"',
        'TAG+="systemd"',
        f'ENV{{SYSTEMD_WANTS}}+="{COUNTERS.name.replace("@.", "@%k.")}"',
    ]


def test_counter_sets_are_shown_under_the_restrictions_of_their_unit(tmp_path: Path) -> None:
    """Without its capability, which `show` does not need. This host may have no RDMA, which is one line, too."""
    need_root()
    need("systemd-analyze", "systemd")
    unit = tmp_path / COUNTERS.name
    unit.write_text(COUNTERS.read_text().replace("=CAP_NET_ADMIN\n", "=\n"))
    sandbox = [str(unit) if word == str(UNIT) else word for word in SANDBOX]
    command = [*sandbox, "-P", "-m", "roce_exporter", "counters", "show"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    said = result.stdout + result.stderr
    assert "Traceback" not in said
    assert "counter sets\n" in said or "is ib_core loaded?" in said or "no RDMA device matches" in said


def test_processes_are_read_under_the_units_restrictions() -> None:
    """The system calls of psutil, and the one that finds hidden processes."""
    need_root()
    need("systemd-analyze", "systemd")
    code = (
        "import os; from roce_exporter.kernel import processes as p;"
        " facts = p.read_process(os.getppid()); print(bool(facts.cgroups), p._exists(1), p._exists(2**22 + 1))"
    )
    result = subprocess.run([*SANDBOX, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("True True False\n", "")


def test_the_unit_for_captures_has_one_capability() -> None:
    """The same in both sets; the rest of the restrictions are those of the unit for switches."""
    wire, switches = (set(path.read_text().splitlines()) for path in (WIRE, SWITCHES))
    assert {"CapabilityBoundingSet=CAP_NET_RAW", "AmbientCapabilities=CAP_NET_RAW"} <= wire
    protections = {
        line
        for line in switches
        if re.match(r"(Protect|Private|Restrict|SystemCall|MemoryDeny|Lock|NoNew|Device)", line)
    }
    missing = {line.partition("=")[0] for line in protections - wire}
    assert missing == {"PrivateUsers", "RestrictAddressFamilies"}


def test_a_capture_works_under_the_restrictions_of_its_unit() -> None:
    """It receives frames of the loopback device with CAP_NET_RAW alone, and serves their number."""
    need_root()
    need("systemd-analyze", "systemd")
    flags = ["--serve", "--interface=lo"]
    with running([*WIRE_SANDBOX, "-P", "-m", "roce_exporter"], flags=flags, action="wire") as daemon:
        assert daemon.hear() == "READY=1"
        lines = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert {int(status[key], 16) for key in ("CapEff", "CapPrm", "CapBnd")} == {CAP_NET_RAW}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert "0" not in status["Uid"].split()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(10):
                sender.sendto(bytes(16), ("127.0.0.1", ROCE_PORT))
        # other tests may send such packets at the same time
        ten = re.compile(r"^roce_wire_capture_frames_total [1-9]\d+$", re.MULTILINE)
        wait_until(lambda: ten.search(fetch(f"{daemon.url}/metrics")), "ten frames")
        assert daemon.stop() == 0


def test_the_threshold_can_be_missed(tmp_path: Path) -> None:
    """Otherwise the two tests before would pass whatever the unit contains."""
    unit = Path(installed(tmp_path))
    unit.write_text(
        unit.read_text().replace("CapabilityBoundingSet=\n", "").replace("User=roce-exporter\n", "")
    )
    assert analyze("security", "--offline=true", "--threshold=20", str(unit)).returncode != 0


@pytest.mark.parametrize(
    ("drop_in", "capability"),
    [("optics", "CAP_NET_ADMIN"), ("debugfs", "CAP_DAC_READ_SEARCH"), ("kernel-log", "CAP_SYSLOG")],
)
def test_a_drop_in_adds_the_one_capability_that_its_reason_names(drop_in: str, capability: str) -> None:
    text = (DEPLOY / f"systemd/drop-ins/{drop_in}.conf").read_text()
    settings = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    assert f"AmbientCapabilities={capability}" in settings
    assert f"CapabilityBoundingSet={capability}" in settings
    assert "PrivateUsers=no" in settings
    assert any(line.startswith("#") and capability in line for line in text.splitlines())


def test_the_drop_in_for_owners_shows_processes_and_users_and_adds_no_capability() -> None:
    settings = unit_lines(str(DEPLOY / "systemd/drop-ins/owners.conf"))
    assert settings == {"ProtectProc": ["default"], "PrivateUsers": ["no"]}
    assert unit_lines(str(UNIT))["ProtectProc"] == ["invisible"]


def test_the_user_of_the_unit_is_the_one_that_sysusers_makes(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    command = [need("systemd-sysusers", "systemd"), f"--root={tmp_path}", str(UNIT.with_suffix(".sysusers"))]
    subprocess.run(command, check=True, capture_output=True)
    name, _, _, _, _, home, shell = (tmp_path / "etc/passwd").read_text().splitlines()[-1].split(":")
    assert (name, home) == ("roce-exporter", "/")
    assert shell.endswith("nologin")
    assert "User=roce-exporter\nGroup=roce-exporter\n" in UNIT.read_text()


def test_every_example_of_the_default_file_is_accepted() -> None:
    lines = UNIT.with_suffix(".default").read_text().splitlines()
    examples = [line.split('"')[1].split() for line in lines if "ROCE_EXPORTER_FLAGS=" in line]
    assert len(examples) >= 4
    others = SWITCHES.with_suffix(".default").read_text().splitlines()
    of_switches = [line.split('"')[1].split() for line in others if "ROCE_SWITCHES_FLAGS=" in line]
    assert [parse_options(["switches", *flags]).command for flags in of_switches] == ["switches"] * 2
    lines = WIRE.with_suffix(".default").read_text().splitlines()
    of_captures = [line.split('"')[1].split() for line in lines if "ROCE_WIRE_FLAGS=" in line]
    assert [parse_options(["wire", "--serve", *flags]).command for flags in of_captures] == ["wire"] * 3
    for flags in examples:
        if "--config.file" not in " ".join(flags):
            assert parse_options(["serve", *flags]).command == "serve"


def test_it_works_under_the_units_restrictions() -> None:
    """Without capabilities, as another user, read-only, under the unit's own system call filter, on this real host."""
    need_root()
    need("systemd-analyze", "systemd")
    with running([*SANDBOX, "-P", "-m", "roce_exporter"]) as daemon:
        assert daemon.hear() == "READY=1"
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
            if ":\t" in line
        )
        assert {status[key] for key in ("CapEff", "CapPrm", "CapAmb")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert "0" not in status["Uid"].split()
        metrics = fetch(f"{daemon.url}/metrics")
        assert "\nroce_exporter_devices " in metrics
        assert "\nprocess_start_time_seconds 1." in metrics
        assert daemon.stop() == 0
        assert daemon.hear() == "STOPPING=1"


def test_passwords_are_checked_under_the_units_restrictions() -> None:
    """Bcrypt and its thread also work under the system call filter and without executable memory."""
    need_root()
    need("systemd-analyze", "systemd")
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    with tempfile.NamedTemporaryFile("w", dir="/var/tmp", suffix=".yml") as config:
        config.write(f"basic_auth_users: {{prometheus: {hashed}}}\n")
        config.flush()
        Path(config.name).chmod(0o644)
        flags = [f"--web.config.file={config.name}"]
        with running([*SANDBOX, "-P", "-m", "roce_exporter"], flags=flags) as daemon:
            assert daemon.hear() == "READY=1"
            assert status_of(daemon.url, "prometheus:right") == HTTPStatus.OK
            assert status_of(daemon.url, "prometheus:wrong") == HTTPStatus.UNAUTHORIZED


def test_addresses_are_read_under_the_units_restrictions() -> None:
    """pyroute2 imports ctypes, and its sockets need an event loop."""
    need_root()
    need("systemd-analyze", "systemd")
    code = "from roce_exporter.kernel.rtnetlink import read_link_addresses as read; print(read('lo').current)"
    result = subprocess.run([*SANDBOX, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("00:00:00:00:00:00\n", "")


def status_of(url: str, credentials: str) -> int:
    """The status of a request with these credentials."""
    header = {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=header), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(
    "attempt",
    [
        "open('/var/tmp/written', 'w')",
        "open('/sys/kernel/uevent_helper', 'w')",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW)",
        "import os; os.setuid(0)",
        "import os; os.chroot('/')",
        "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0",
        "import mmap; mmap.mmap(-1, 4096, prot=7)",
    ],
)
def test_the_units_restrictions_are_effective(attempt: str) -> None:
    """The restrictions of the test before are effective."""
    need_root()
    need("systemd-analyze", "systemd")
    result = subprocess.run([*SANDBOX, "-c", attempt], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(("OSError", "PermissionError", "AssertionError"))


def test_systemd_is_notified_of_ready_watchdog_and_stopping() -> None:
    """The unit has WatchdogSec, so without notifications systemd would end the exporter every half minute."""
    assert "\nWatchdogSec=" in UNIT.read_text()
    with running([str(COMMAND)], {"WATCHDOG_USEC": "400000"}) as daemon:
        heard = [daemon.hear() for _ in range(4)]
        assert "READY=1" in heard
        assert heard.count("WATCHDOG=1") >= 3
        assert daemon.stop() == 0
        while daemon.hear() != "STOPPING=1":
            pass


def test_the_service_is_not_restarted_after_an_invalid_flag() -> None:
    assert "\nRestartPreventExitStatus=2\n" in UNIT.read_text()
    answer = subprocess.run([str(COMMAND), "serve", "--no.such.flag"], capture_output=True, check=False)
    assert answer.returncode == 2


def test_health_is_served_where_the_documents_say() -> None:
    with running([str(COMMAND)]) as daemon:
        wait_until(lambda: "ready" in fetch(f"{daemon.url}/-/ready"), "ready")
        assert "healthy" in fetch(f"{daemon.url}/-/healthy")
