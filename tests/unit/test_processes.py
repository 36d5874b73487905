"""What /proc reports of processes: real ones of this machine, and a folder that stands for /proc where they cannot be made."""

import errno
import os
import pwd
import subprocess
import sys
import threading
import time

import psutil
import pytest

from roce_exporter.host.kernel import Absent, processes
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.processes import FILE_MOST_BYTES, read_process, read_process_start

OURSELVES = os.getpid()


def test_a_process_is_known_by_command_user_time_and_cgroups():
    facts = LiveKernel().process(OURSELVES)
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        cgroups = file.read()
    assert (facts.pid, facts.cgroups) == (OURSELVES, cgroups)
    assert facts.user == pwd.getpwuid(os.getuid()).pw_name
    assert facts.command.startswith(psutil.Process().name()[:15])
    assert facts.created == psutil.Process().create_time()
    assert time.time() - facts.created < 86400


def test_a_thread_belongs_to_its_process_and_has_its_own_time():
    """RDMA netlink reports the thread that created an object."""
    found = []

    def be_a_thread():
        # the name that NCCL gives to its threads, in effect
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w", encoding="utf-8") as file:
            file.write("NCCL Service 0")
        number = threading.get_native_id()
        found.append((number, read_process(number), read_process_start(number)))

    thread = threading.Thread(target=be_a_thread)
    thread.start()
    thread.join()
    ((number, facts, start),) = found
    assert start >= read_process_start(OURSELVES)
    assert number != OURSELVES
    assert (facts.pid, facts.command) == (OURSELVES, read_process(OURSELVES).command)
    assert facts.created >= read_process(OURSELVES).created


def test_an_ended_process_is_absent():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(Absent) as caught:
        read_process(process.pid)
    assert (caught.value.errno, caught.value.filename) == (errno.ESRCH, f"/proc/{process.pid}")
    with pytest.raises(Absent):
        read_process_start(process.pid)
    for pid in (2**22 + 1, 2**31 - 1, 2**31, 2**32 - 1):  # no process can have these
        with pytest.raises(Absent):
            read_process(pid)


class Raises:
    """Stands for psutil.Process of a process in a state that a test cannot make."""

    def __init__(self, error):
        self.error = error

    def __call__(self, pid, *_):
        raise self.error(pid)


@pytest.mark.parametrize(
    ("error", "pid", "expected"),
    [
        (psutil.AccessDenied, OURSELVES, PermissionError),
        # `hidepid=invisible`: the folder in /proc is missing, and the process exists.
        (psutil.NoSuchProcess, OURSELVES, PermissionError),
        (psutil.NoSuchProcess, 2**22 + 1, Absent),
        (psutil.ZombieProcess, OURSELVES, Absent),
    ],
    ids=["refused", "invisible", "ended", "zombie"],
)
def test_hidden_processes_and_missing_ones_are_distinguished(monkeypatch, error, pid, expected):
    monkeypatch.setattr(psutil, "Process", Raises(error))
    with pytest.raises(expected) as caught:
        read_process(pid)
    assert caught.value.filename == f"/proc/{pid}"


def test_a_zombie_still_has_its_cgroup():
    """Its threads may still use RDMA objects."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        facts = read_process(process.pid)
    assert (facts.pid, facts.command) == (process.pid, "true")


def a_proc(folder, cgroups, status=b"Name:\tpython\nTgid:\t%d\n" % OURSELVES):
    """A folder with the two files that this module reads itself."""
    place = folder / str(OURSELVES)
    place.mkdir()
    (place / "cgroup").write_bytes(cgroups)
    (place / "status").write_bytes(status)
    return str(folder)


def test_undecodable_bytes_are_replaced_and_escapes_of_systemd_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "PROC", a_proc(tmp_path, b"0::/a\\x2db.slice/\xff.service\n"))
    assert read_process(OURSELVES).cgroups == "0::/a\\x2db.slice/\ufffd.service\n"


def test_at_most_a_bounded_part_of_a_file_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "PROC", a_proc(tmp_path, b"x" * (FILE_MOST_BYTES + 1)))
    assert len(read_process(OURSELVES).cgroups) == FILE_MOST_BYTES


@pytest.mark.parametrize("status", [b"", b"Tgid:\n", b"Tgid:\tx\n", b"Name:\tTgid"])
def test_a_status_without_a_process_is_that_of_a_process(monkeypatch, tmp_path, status):
    monkeypatch.setattr(processes, "PROC", a_proc(tmp_path, b"0::/\n", status))
    assert read_process(OURSELVES).pid == OURSELVES


def test_a_file_that_is_gone_is_a_process_that_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "PROC", str(tmp_path))
    monkeypatch.setattr(os, "getsid", Raises(lambda _: ProcessLookupError(errno.ESRCH, "gone")))
    with pytest.raises(Absent):
        read_process(OURSELVES)


def test_a_name_that_is_not_utf8_can_be_printed(monkeypatch):
    monkeypatch.setattr(psutil.Process, "name", lambda _: "odd\udcff")
    assert read_process(OURSELVES).command == "odd\\xff"


def test_a_user_without_a_name_is_a_number(monkeypatch):
    def unknown(_):
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert read_process(OURSELVES).user == str(os.getuid())


def test_psutil_is_imported_for_the_first_process_only():
    code = (
        "import sys; from roce_exporter.host.kernel import live; assert 'psutil' not in sys.modules;"
        " live.LiveKernel().process(1); assert 'psutil' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_start_of_a_process_is_the_time_that_psutil_reports():
    ticks = os.sysconf("SC_CLK_TCK")
    assert read_process_start(OURSELVES) / ticks == pytest.approx(
        psutil.Process().create_time() - psutil.boot_time(), abs=1.5 / ticks
    )


def test_a_name_with_parentheses_and_spaces_does_not_shift_the_start(monkeypatch, tmp_path):
    rest = b"S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"
    (tmp_path / str(OURSELVES)).mkdir()
    (tmp_path / str(OURSELVES) / "stat").write_bytes(b"7 (a) b) R 1 2 (c) " + rest)
    monkeypatch.setattr(processes, "PROC", str(tmp_path))
    assert read_process_start(OURSELVES) == 4711


@pytest.mark.parametrize("content", [b"", b"7 (a", b"7 (a) S 1 2", b"7 (a) S" + 30 * b" x"])
def test_a_malformed_start_is_an_error_that_names_the_file(monkeypatch, tmp_path, content):
    (tmp_path / str(OURSELVES)).mkdir()
    (tmp_path / str(OURSELVES) / "stat").write_bytes(content)
    monkeypatch.setattr(processes, "PROC", str(tmp_path))
    with pytest.raises(OSError, match="not a stat file") as caught:
        read_process_start(OURSELVES)
    assert caught.value.filename == f"{tmp_path}/{OURSELVES}/stat"


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "refused"), FileNotFoundError(errno.ENOENT, "gone")]
)
def test_the_start_of_a_hidden_process_is_refused(monkeypatch, error):
    monkeypatch.setattr(processes, "open", Raises(lambda *_: error), raising=False)
    with pytest.raises(PermissionError) as caught:
        read_process_start(OURSELVES)
    assert caught.value.filename == f"/proc/{OURSELVES}"
