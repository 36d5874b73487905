"""The units: systemd's own tools report no problem, and the exporter works under their restrictions."""

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
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import bcrypt
import pytest
from deploy_servers import Daemon, running
from deploy_tools import COMMAND, DEPLOY, fetch, need_root, ran
from sandbox import system_calls, unit_lines
from tools import need
from waiting import HUNG_SECONDS, wait_until

from roce_exporter.cli.options import parse_options

FOLDER = DEPLOY / "systemd"
UNIT, SWITCHES, WIRE, NAMESPACES, PROBE = (
    FOLDER / f"roce-exporter{name}.service" for name in ("", "-switches", "-wire", "-namespaces", "-probe")
)
OTHERS = (SWITCHES, WIRE, NAMESPACES, PROBE)
DROP_INS = sorted(path.stem for path in (FOLDER / "drop-ins").glob("*.conf"))
COMBINATIONS = [
    names for count in range(len(DROP_INS) + 1) for names in itertools.combinations(DROP_INS, count)
]
PYTHON = ("-P", "-m", "roce_exporter")
CAP_NET_RAW = 1 << 13
ROCE_PORT = 4791


def installed(folder: Path, original: Path, drop_ins: tuple[str, ...] = ()) -> Path:
    """The unit as it would be installed, with the path of the command on this machine."""
    text = original.read_text()
    assert "/opt/roce-exporter/bin/roce-exporter" in text
    folder.mkdir(exist_ok=True)
    unit = folder / original.name
    unit.write_text(text.replace("/opt/roce-exporter/bin/roce-exporter", str(COMMAND)))
    place = folder / f"{original.name}.d"
    place.mkdir()
    for name in drop_ins:
        shutil.copy(FOLDER / f"drop-ins/{name}.conf", place)
    return unit


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return ran(need("systemd-analyze"), *arguments)


def exposure(unit: Path, most: int) -> int:
    """The exit code of systemd's judgement of a unit's restrictions; 0: its exposure is at most a tenth of this."""
    return analyze("security", "--offline=true", f"--threshold={most}", unit).returncode


# --- the files


def test_every_example_of_the_default_files_is_accepted() -> None:
    for unit, variable, command, count in (
        (UNIT, "ROCE_EXPORTER_FLAGS", ["serve"], 4),
        (SWITCHES, "ROCE_SWITCHES_FLAGS", ["serve", "--no-host"], 2),
        (WIRE, "ROCE_WIRE_FLAGS", ["serve", "--no-host"], 3),
    ):
        lines = unit.with_suffix(".default").read_text().splitlines()
        examples = [line.split('"')[1].split() for line in lines if f"{variable}=" in line]
        assert len(examples) >= count
        for flags in examples:
            if "--config.file" not in " ".join(flags):  # that file is the administrator's
                assert parse_options([*command, *flags]).command == command[0]


def test_the_rule_for_counter_sets_is_one_command_of_iproute2() -> None:
    text = (FOLDER / "90-roce-exporter-counters.rules").read_text()
    (rule,) = (line for line in text.splitlines() if line and not line.startswith("#"))
    assert [part.strip() for part in rule.split(", ")] == [
        'ACTION=="add|move"',
        'SUBSYSTEM=="infiniband"',
        "RUN+=\"/bin/sh -c 'rdma statistic qp set link %k/1 auto type,pid on'\"",
    ]


@pytest.mark.parametrize(
    ("drop_in", "capability"),
    [("optics", "CAP_NET_ADMIN"), ("debugfs", "CAP_DAC_READ_SEARCH"), ("kernel-log", "CAP_SYSLOG")],
)
def test_a_drop_in_adds_the_one_capability_that_its_reason_names(drop_in, capability) -> None:
    path = FOLDER / f"drop-ins/{drop_in}.conf"
    settings = unit_lines(str(path))
    assert settings["AmbientCapabilities"] == settings["CapabilityBoundingSet"] == [capability]
    assert settings["PrivateUsers"] == ["no"]
    assert any(line.startswith("#") and capability in line for line in path.read_text().splitlines())


def test_the_drop_in_for_owners_shows_processes_and_users_and_adds_no_capability() -> None:
    settings = unit_lines(str(FOLDER / "drop-ins/owners.conf"))
    assert settings == {"ProtectProc": ["default"], "PrivateUsers": ["no"]}
    assert unit_lines(str(UNIT))["ProtectProc"] == ["invisible"]


def test_the_unit_for_captures_has_one_capability() -> None:
    """The same in both sets; the rest of the restrictions are those of the unit for switches."""
    wire, switches = (set(path.read_text().splitlines()) for path in (WIRE, SWITCHES))
    assert {"CapabilityBoundingSet=CAP_NET_RAW", "AmbientCapabilities=CAP_NET_RAW"} <= wire
    kinds = re.compile(r"(Protect|Private|Restrict|SystemCall|MemoryDeny|Lock|NoNew|Device)")
    protections = {line for line in switches if kinds.match(line)}
    missing = {line.partition("=")[0] for line in protections - wire}
    assert missing == {"PrivateUsers", "RestrictAddressFamilies"}


# --- what systemd's tools say


@pytest.mark.ci
def test_systemd_finds_nothing_wrong(tmp_path) -> None:
    """With every combination of drop-ins."""
    units = [installed(tmp_path / "others", original) for original in OTHERS]
    for number, names in enumerate(COMBINATIONS):
        verdict = analyze("verify", installed(tmp_path / str(number), UNIT, names), *units)
        assert (verdict.returncode, verdict.stderr) == (0, ""), names
        units = []


@pytest.mark.ci
def test_exposure_is_at_most_two_with_any_three_drop_ins(tmp_path) -> None:
    """With all that there are it is 2.2. The restrictions of a drop-in only add up, so fewer than three are not tried."""
    for number, names in enumerate(names for names in COMBINATIONS if len(names) in (3, len(DROP_INS))):
        assert exposure(installed(tmp_path / str(number), UNIT, names), 20 if len(names) == 3 else 22) == 0, (
            names
        )
    for original in OTHERS:
        assert exposure(installed(tmp_path / original.stem, original), 20) == 0, original
    loose = installed(tmp_path / "loose", UNIT)
    loose.write_text(
        re.sub(r"^(CapabilityBoundingSet=|User=roce-exporter)\n", "", loose.read_text(), flags=re.MULTILINE)
    )
    assert exposure(loose, 20) != 0, "otherwise this would pass whatever the unit contains"


@pytest.mark.ci
def test_the_unit_for_namespaces_may_enter_network_namespaces_and_little_else() -> None:
    settings = unit_lines(str(NAMESPACES))
    assert settings["AmbientCapabilities"] == settings["CapabilityBoundingSet"] == ["CAP_SYS_ADMIN"]
    assert settings["RestrictNamespaces"] == ["net"]
    need("systemd-analyze")
    calls = system_calls(settings["SystemCallFilter"])
    assert "setns" in calls
    assert not calls & {"mount", "move_mount", "open_by_handle_at", "bpf", "reboot", "swapon", "init_module"}
    (start,) = settings["ExecStart"]
    options = parse_options(start.split()[1:3])
    assert options.rdma_namespaces == f"/run/{settings['RuntimeDirectory'][0]}/namespaces.sock"


@pytest.mark.ci
def test_units_have_the_users_that_sysusers_makes_and_those_with_secrets_of_their_own_another(
    tmp_path,
) -> None:
    (tmp_path / "etc").mkdir()
    done = ran(need("systemd-sysusers"), f"--root={tmp_path}", UNIT.with_suffix(".sysusers"))
    assert done.returncode == 0, done.stderr
    made = [line.split(":") for line in (tmp_path / "etc/passwd").read_text().splitlines()]
    assert all((one[5], one[6].rpartition("/")[2]) == ("/", "nologin") for one in made)
    users = {unit.stem: unit_lines(str(unit))["User"] for unit in (UNIT, *OTHERS)}
    assert users == {unit.stem: unit_lines(str(unit))["Group"] for unit in (UNIT, *OTHERS)}
    assert {name for (name,) in users.values()} == {one[0] for one in made if one[0].startswith("roce")}
    apart = users.keys() - {"roce-exporter-namespaces"}
    assert len({tuple(users[name]) for name in apart}) == len(apart) == 4


# --- under the restrictions of a unit


def sandbox(*words: str, unit: Path = UNIT) -> list[str]:
    """A command of Python under the restrictions of a unit."""
    need_root()
    need("systemd-analyze")
    return [
        sys.executable,
        str(Path(__file__).with_name("sandbox.py")),
        str(unit),
        "nobody",
        sys.prefix,
        *words,
    ]


@contextmanager
def restricted(
    *flags: str, unit: Path = UNIT, action: str = "serve"
) -> Iterator[tuple[Daemon, dict[str, str]]]:
    """The exporter under the restrictions of a unit, and what the kernel says about its process."""
    with running(sandbox(*PYTHON, unit=unit), flags=flags, action=action) as daemon:
        assert daemon.hear() == "READY=1"
        lines = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert "0" not in status["Uid"].split()
        yield daemon, status
        assert daemon.stop() == 0
        while daemon.hear() != "STOPPING=1":
            pass


@pytest.mark.ci
def test_it_works_under_the_units_restrictions() -> None:
    """Without capabilities, as another user, read-only, under the unit's own system call filter, on this real host."""
    with restricted() as (daemon, status):
        assert {status[key] for key in ("CapEff", "CapPrm", "CapAmb")} == {"0" * 16}
        metrics = fetch(f"{daemon.url}/metrics")
        assert "\nroce_exporter_devices " in metrics
        assert "\nprocess_start_time_seconds 1." in metrics


@pytest.mark.ci
def test_passwords_are_checked_under_the_units_restrictions() -> None:
    """Bcrypt and its thread also work under the system call filter and without executable memory."""
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    with tempfile.NamedTemporaryFile("w", dir="/var/tmp", suffix=".yml") as config:
        config.write(f"basic_auth_users: {{prometheus: {hashed}}}\n")
        config.flush()
        Path(config.name).chmod(0o644)
        with restricted(f"--web.config.file={config.name}") as (daemon, _):
            assert status_of(daemon.url, "prometheus:right") == HTTPStatus.OK
            assert status_of(daemon.url, "prometheus:wrong") == HTTPStatus.UNAUTHORIZED


def status_of(url: str, credentials: str) -> int:
    """The status of a request with these credentials."""
    header = {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=header), timeout=HUNG_SECONDS
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.ci
def test_the_example_for_switches_works_under_the_restrictions_of_its_unit() -> None:
    """The switch of the example does not exist here, so the probe says that its name cannot be resolved."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)
        shutil.copy(FOLDER / "switches.yml", place)
        for name in ("nxos.password", "ca.pem"):
            (place / name).write_text("secret\n")
            (place / name).chmod(0o644)
        with restricted("--no-host", f"--switches.config={place}/switches.yml", unit=SWITCHES) as (daemon, _):
            metrics = fetch(f"{daemon.url}/probe?target=spine1")
            assert 'roce_switch_probe_success{device="spine1"} 0' in metrics
            assert "spine1.example.com: cannot be resolved" in fetch(
                f"{daemon.url}/debug/probe?target=spine1"
            )


@pytest.mark.ci
def test_a_capture_works_under_the_restrictions_of_its_unit() -> None:
    """It receives frames of the loopback device with CAP_NET_RAW alone, and serves their number."""
    with restricted("--no-host", "--wire.interface=lo", unit=WIRE) as (daemon, status):
        assert {int(status[key], 16) for key in ("CapEff", "CapPrm", "CapBnd")} == {CAP_NET_RAW}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(10):
                sender.sendto(bytes(16), ("127.0.0.1", ROCE_PORT))
        # other tests may send such packets at the same time
        ten = re.compile(r"^roce_wire_capture_frames_total [1-9]\d+$", re.MULTILINE)
        wait_until(lambda: ten.search(fetch(f"{daemon.url}/metrics")))


PROCESSES = (
    "import os; from roce_exporter.host.kernel import processes as p;"
    " facts = p.read_process(os.getppid()); print(bool(facts.cgroups), p._exists(1), p._exists(2**22 + 1))"
)


@pytest.mark.ci
def test_psutil_works_under_the_units_restrictions() -> None:
    """It makes system calls of its own."""
    result = ran(*sandbox("-P", "-c", PROCESSES))
    assert (result.stdout, result.stderr) == ("True True False\n", "")


@pytest.mark.ci
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
def test_the_units_restrictions_are_effective(attempt) -> None:
    result = ran(*sandbox("-c", attempt))
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(("OSError", "PermissionError", "AssertionError"))


# --- as a service


@pytest.mark.ci
def test_the_service_is_watched_and_not_restarted_after_an_invalid_flag() -> None:
    """Without its notifications, which chaos/test_survival.py tests, systemd would end it every half minute."""
    assert "\nWatchdogSec=" in UNIT.read_text()
    assert "\nRestartPreventExitStatus=2\n" in UNIT.read_text()
    assert ran(COMMAND, "serve", "--no.such.flag").returncode == 2
