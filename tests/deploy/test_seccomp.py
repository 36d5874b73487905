"""The list of system calls for containers: strace sees no other call, and the exporter works under it."""

import base64
import errno
import json
import os
import platform
import re
import signal
import ssl
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import trustme
import yaml
from deploy_servers import Daemon, running
from deploy_tools import DEPLOY, ROOT, printed, ran
from sandbox import system_calls, unit_lines
from tools import need
from waiting import HUNG_SECONDS

import roce_exporter

PROFILE = DEPLOY / "seccomp/roce-exporter.json"
UNIT = DEPLOY / "systemd/roce-exporter.service"
ENTRIES = json.loads(PROFILE.read_text())["syscalls"]
UNDER_THE_PROFILE = (sys.executable, str(Path(__file__).with_name("profiled.py")), str(PROFILE))
EXPORTER = (sys.executable, "-P", "-m", "roce_exporter")
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", re.MULTILINE)
OWNER = (
    "import os; from roce_exporter.host.kernel import processes as p;"
    " print(bool(p.read_process(os.getppid()).cgroups), p._exists(1), p._exists(2**22 + 1))"
)
HOSTS = {
    "this host": (),
    "simulated": ("--host.simulate=pfc-storm",),
    "recorded": (f"--host.recording={ROOT}/tests/recordings/bnxt.txt",),
}


def named(kind: str) -> set[str]:
    """The names of the entries whose comment begins with this word."""
    return {name for entry in ENTRIES if entry["comment"].startswith(f"{kind}: ") for name in entry["names"]}


def secrets(folder: Path) -> str:
    """A flag with a file that has a user, a certificate and its key."""
    pem = trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.bytes().decode()
    config = {
        "tls_server_config": {"cert": pem, "key": pem},
        "basic_auth_users": {"prometheus": bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()},
    }
    (folder / "web.yml").write_text(yaml.safe_dump(config))
    return f"--web.config.file={folder / 'web.yml'}"


def scraped(daemon: Daemon, scheme: str, path: str) -> str:
    """A page, requested by the user of `secrets`."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    user = base64.b64encode(b"prometheus:right").decode()
    request = urllib.request.Request(
        f"{scheme}://127.0.0.1:{daemon.port}{path}", headers={"Authorization": f"Basic {user}"}
    )
    with urllib.request.urlopen(request, timeout=HUNG_SECONDS, context=context) as answer:
        return str(answer.read().decode())


@contextmanager
def serving(prefix: Sequence[str], flags: Sequence[str], scheme: str = "http") -> Iterator[Daemon]:
    """A daemon that has been scraped; the fast loop samples at its full rate."""
    with running([*prefix, *EXPORTER], flags=["--sampler.mode=fixed", *flags]) as daemon:
        assert daemon.hear() == "READY=1"
        for path in ("/metrics", "/metrics", "/debug/snapshot"):
            assert scraped(daemon, scheme, path)
        yield daemon


def commands() -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Commands that end by themselves, with their environments."""
    places = f"{Path(roce_exporter.__file__).parents[1]}:{sysconfig.get_path('purelib')}"
    interpreter = str(getattr(sys, "_base_executable", sys.executable))
    image = (interpreter, "-P", "-m", "roce_exporter", "once", "--host.simulate=incast")
    return {
        "as in the image": (image, {"PYTHONPATH": places}),
        "owners": ((sys.executable, "-P", "-c", OWNER), {}),
    }


def terminate(daemon: Daemon) -> None:
    """End the daemon below strace, which ignores the signal itself."""
    pid = daemon.process.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(child), signal.SIGTERM)
    assert daemon.process.wait(HUNG_SECONDS) == 0


@pytest.fixture(scope="module")
def no_bytecode() -> Iterator[None]:
    """As in the image: a Python that compiles what it imports for the first time renames files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        yield


@pytest.fixture(scope="module")
def traced(tmp_path_factory, no_bytecode) -> set[str]:
    """The calls of all scenarios."""
    strace = need("strace")
    folder = tmp_path_factory.mktemp("traces")
    found: set[str] = set()

    def into(name: str) -> tuple[str, ...]:
        return (strace, "-f", "-qq", "-e", "trace=all", "-o", str(folder / f"{name}.trace"))

    for name, flags in HOSTS.items():
        with serving(into(name), flags) as daemon:
            terminate(daemon)
    with serving(into("secured"), [*HOSTS["simulated"], secrets(folder)], "https") as daemon:
        terminate(daemon)
    for name, (command, environment) in commands().items():
        printed(*into(name), *command, env={**os.environ, **environment})
    for trace in folder.glob("*.trace"):
        calls = set(CALL.findall(trace.read_text(errors="replace")))
        assert {"execve", "openat", "exit_group"} <= calls, trace.name
        found |= calls
    return found


@pytest.mark.ci
def test_the_exporter_makes_no_call_outside_the_list(traced) -> None:
    assert traced - named("seen") - named("margin") == set()


@pytest.mark.ci
def test_each_call_that_was_not_seen_is_in_the_margin(traced) -> None:
    """With the C library and the Python of the image; others make some calls of the margin in place of these."""
    here = (platform.machine(), *platform.libc_ver(), sys.version_info[:2])
    if here != ("x86_64", "glibc", "2.36", (3, 11)):
        pytest.skip("not x86-64 with glibc 2.36 and Python 3.11, as Debian 12 has")
    assert named("seen") - traced == set()


def test_each_entry_has_a_reason_and_no_name_is_there_twice() -> None:
    assert all(re.match(r"(seen|margin): \w", entry["comment"]) for entry in ENTRIES)
    names = [name for entry in ENTRIES for name in entry["names"] if name != "socket"]
    assert len(names) == len(set(names))


@pytest.mark.ci
def test_the_unit_allows_every_call_of_the_list(traced) -> None:
    """But those that need capabilities, which a container runtime makes before the start; systemd makes its own."""
    need("systemd-analyze")
    (runtime,) = [set(entry["names"]) for entry in ENTRIES if "container runtime" in entry["comment"]]
    allowed = system_calls(unit_lines(str(UNIT))["SystemCallFilter"])
    assert traced - allowed == set()
    assert (named("seen") | named("margin")) - runtime - allowed == set()
    assert not allowed & {"io_uring_setup", "add_key", "mlock", "mount", "ptrace", "reboot"}


@pytest.mark.ci
@pytest.mark.parametrize("host", HOSTS)
def test_it_serves_under_the_profile(host) -> None:
    with serving(UNDER_THE_PROFILE, HOSTS[host]) as daemon:
        assert "\nSeccomp:\t2\n" in Path(f"/proc/{daemon.process.pid}/status").read_text()
        devices = int(
            re.findall(r"^roce_exporter_devices (\d+)", scraped(daemon, "http", "/metrics"), re.MULTILINE)[0]
        )
        assert devices or host == "this host"
        assert daemon.stop() == 0


@pytest.mark.ci
def test_it_serves_tls_and_checks_passwords_under_the_profile(tmp_path) -> None:
    """The key is in the file itself, and therefore in memory only."""
    with serving(UNDER_THE_PROFILE, [*HOSTS["simulated"], secrets(tmp_path)], "https") as daemon:
        assert daemon.stop() == 0


@pytest.mark.ci
def test_commands_work_under_the_profile() -> None:
    for name, (command, environment) in commands().items():
        result = ran(*UNDER_THE_PROFILE, *command, env={**os.environ, **environment})
        assert (result.returncode, result.stderr) == (0, ""), name
        assert result.stdout == "True True False\n" or "roce_ecn_marked_packets_total{" in result.stdout


REFUSED = (
    "call('ptrace', 0, 0, 0, 0)",
    "call('mount', b'none', b'/mnt', b'tmpfs', 0, None)",
    "call('unshare', NEW_USER)",
    "call('setns', os.open('/proc/self/ns/net', os.O_RDONLY), 0)",
    "call('clone', NEW_USER | 17, 0, 0, 0, 0)",
    "call('io_uring_setup', 1, bytes(120))",
    "call('add_key', b'user', b'x', b'y', 1, -2)",
    "socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "os.mkdir('/proc/none')",
    "os.chmod('/proc/none', 0)",
)
ATTEMPTS = """
import ctypes, os, socket, sys
NEW_USER = 0x10000000
def call(name, *arguments):
    number = ctypes.CDLL('libseccomp.so.2').seccomp_syscall_resolve_name(name.encode())
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), name)
for statement in sys.argv[1:]:
    try:
        exec(statement)
        print(0)
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.ci
def test_calls_outside_the_list_fail() -> None:
    """`execve` cannot be among them: an engine loads the list before it starts the program by this very call.

    The flags of clone3 are in memory, where the filter cannot read them: it does not exist, as in the profiles of engines.
    """
    others = {"call('clone3', 0, 0)": errno.ENOSYS, "os.getpid()": 0}
    found = printed(*UNDER_THE_PROFILE, sys.executable, "-c", ATTEMPTS, *REFUSED, *others).split()
    expected = {**dict.fromkeys(REFUSED, errno.EPERM), **others}
    assert dict(zip(expected, map(int, found), strict=True)) == expected


def test_the_profile_has_only_fields_of_the_format() -> None:
    profile: dict[str, Any] = json.loads(PROFILE.read_text())
    assert set(profile) == {"defaultAction", "defaultErrnoRet", "architectures", "syscalls"}
    assert profile["architectures"] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"]
    for entry in profile["syscalls"]:
        assert set(entry) <= {"names", "action", "args", "errnoRet", "comment"}
