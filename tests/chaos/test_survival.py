"""What a host may do to the daemon: kill it, stop it, fill the disk, remove /proc, change the clock, exhaust the memory."""

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from chaos_daemon import Daemon, Samples, exporter, namespace
from servers import EXPORTER, FREE
from tools import lacking, need
from waiting import HUNG_SECONDS, wait_until

from roce_exporter.cli.daemon import report_alive

pytestmark = pytest.mark.ci


SIMULATED = ("--host.simulate=incast",)
FULL = "/dev/full"
PATIENT = f"--collect.timeout={HUNG_SECONDS}"
"""Where nothing hangs and no series may be missing, however busy the machine is."""
MARGIN = 4 * 1024 * 1024
"""Bytes of address space that a daemon under memory pressure has left."""


def of_host(samples: Samples) -> set[str]:
    """The series of the host; all must be present. The verdict depends on how long the daemon has run, a hint on whether a storm goes on."""
    others = ("roce_exporter_", "p", "roce_port_health", "roce_pfc_storm_hint")
    return {f"{name}{labels}" for name, labels in samples if not name.startswith(others)}


def complete(daemon: Daemon, known: Collection[str] = ()) -> set[str]:
    """The series of the simulated host, as soon as the fast loop has polled each of its four ports and the known ones are there."""

    def ask() -> set[str]:
        samples = daemon.scrape()
        watched = {dict(labels)["device"] for name, labels in samples if name == "roce_pfc_storm_active"}
        found = of_host(samples)
        return found if len(watched) == 4 and found.issuperset(known) else set()

    return wait_until(ask)


def counters(samples: Samples) -> Samples:
    return {name: value for name, value in samples.items() if name[0].endswith("_total")}


def check_nothing_went_back(before: Samples, after: Samples) -> None:
    back = {name for name, value in counters(before).items() if counters(after).get(name, value) < value}
    assert not back


@contextlib.contextmanager
def supervisor(place: Path) -> Iterator[Callable[[], str]]:
    """A socket like systemd's. It returns the next notification."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(place))
        sock.settimeout(HUNG_SECONDS)
        yield lambda: sock.recv(4096).decode()


def test_killed_and_started_again_it_serves_the_same_has_written_nothing_and_connects_to_nothing(
    tmp_path, record_property
) -> None:
    """No state is lost: nothing is on disk, and the port is free again at once. All its sockets are those of clients."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home)}
    served: set[str] = set()
    address = FREE
    for _ in range(3):
        begun = time.monotonic()
        with exporter(tmp_path, *SIMULATED, environment=environment, address=address) as daemon:
            record_property("ready_seconds", time.monotonic() - begun)
            address = daemon.address
            served = complete(daemon, served)
            sockets = psutil.Process(daemon.process.pid).net_connections("inet")
            assert {one.laddr.port for one in sockets} == {tuple_of(address)[1]}, "none goes out"
            with socket.create_connection(
                tuple_of(address)
            ) as client:  # the process is killed in the middle of a request
                client.sendall(b"GET /metrics HTTP/1.1\r\n")
                daemon.process.send_signal(signal.SIGKILL)
                assert daemon.process.wait(HUNG_SECONDS) == -signal.SIGKILL
    assert served
    assert not list(home.rglob("*"))


def tuple_of(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_a_log_on_a_full_disk_costs_the_log_only(tmp_path) -> None:
    (tmp_path / "exporter.log").symlink_to(FULL)
    with exporter(tmp_path, *SIMULATED) as daemon:
        for _ in range(20):
            assert daemon.scrape()
        assert daemon.stop() == 0


def test_without_any_standard_stream_it_serves(tmp_path) -> None:
    closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    with exporter(tmp_path, *SIMULATED, prefix=closed) as daemon:
        assert of_host(daemon.scrape())
        assert daemon.stop() == 0
    assert daemon.log == ""


@pytest.mark.parametrize("command", ["once", "check settings", "explain np_cnp_sent"])
@pytest.mark.parametrize("closed", [False, True], ids=["full", "closed"])
def test_a_failed_write_is_reported_in_one_line(command, closed) -> None:
    arguments = [*EXPORTER, *command.split(), "--host.simulate=quiet"]
    if closed:
        arguments = ["sh", "-c", 'exec "$@" >&-', "sh", *arguments]
    with open(FULL, "wb") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"roce-exporter: standard output.*; .*\n", done.stderr)


def test_without_proc_it_serves_the_host_without_an_account_of_the_process(tmp_path) -> None:
    with exporter(tmp_path, *SIMULATED, "--sampler.mode=off") as daemon:
        whole = daemon.scrape()
    with namespace("mount") as inside:
        inside.run("mount", "-t", "tmpfs", "none", "/proc")
        with exporter(tmp_path, *SIMULATED, "--sampler.mode=off", prefix=inside.enter) as daemon:
            # The verdict of a port comes with its second moment.
            wait_until(lambda: all(name.startswith("process_") for name in lost(whole, daemon.scrape())))
            assert lost(whole, daemon.scrape()), "the process metrics need /proc"
            assert daemon.stop() == 0
    assert "Traceback" not in daemon.log


def lost(before: Samples, now: Samples) -> set[str]:
    """The names of series that are gone, but for counts of requests."""
    return {name for name, _ in before.keys() - now.keys() if not name.startswith("roce_exporter_http")}


def faketime_library() -> str:
    """The path of libfaketime; without it the test is skipped, and in CI it fails."""
    need("faketime")
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return (
        str(found[0]) if found else lacking("libfaketimeMT.so.1 is not installed (apt-get install faketime)")
    )


@pytest.mark.parametrize("jump", ["-3650d", "+3650d"])
def test_a_wall_clock_that_jumps_moves_no_counter_and_no_duration(tmp_path, jump) -> None:
    """As when a host without a battery clock starts NTP. The detector uses the monotonic clock."""
    told = tmp_path / "clock"
    told.write_text("+0d\n")
    environment = {
        "LD_PRELOAD": faketime_library(),
        "FAKETIME_TIMESTAMP_FILE": str(told),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    flags = ("--host.simulate=pfc-storm", "--log.level=debug", PATIENT)
    with exporter(tmp_path, *flags, environment=environment) as daemon:
        complete(daemon)
        before = daemon.scrape()
        assert abs(date_header(daemon) - time.time()) < 86400
        told.write_text(f"{jump}\n")
        wait_until(lambda: abs(date_header(daemon) - time.time()) > 86400 * 3000)
        after = daemon.scrape()
        check_nothing_went_back(before, after)
        assert of_host(before) <= of_host(after)
        for (name, labels), value in after.items():
            if name.endswith("_seconds_total") and name.startswith("roce_pfc"):
                assert value < 3600, (name, labels)
            if "duration_seconds" in name:
                assert 0 <= value < HUNG_SECONDS, (name, labels)
        assert daemon.stop() == 0


def date_header(daemon: Daemon) -> float:
    """The daemon's own wall clock, from the Date header (Unix seconds)."""
    with urlopen(f"http://{daemon.address}/-/healthy", timeout=HUNG_SECONDS) as answer:
        return parsedate_to_datetime(answer.headers["Date"]).timestamp()


def test_a_resumed_process_answers_and_reports_no_false_storm(tmp_path) -> None:
    """The unobserved interval is not evaluated: it adds neither a storm nor storm seconds."""
    with exporter(tmp_path, "--host.simulate=quiet", "--sampler.mode=fixed", PATIENT) as daemon:
        complete(daemon)
        before = daemon.scrape()
        daemon.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: daemon.seen.status() == psutil.STATUS_STOPPED)
        with socket.create_connection(tuple_of(daemon.address)) as client:
            client.settimeout(HUNG_SECONDS)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            time.sleep(3)  # long enough that every interval in progress is too long to evaluate
            daemon.process.send_signal(signal.SIGCONT)
            assert client.recv(12) == b"HTTP/1.1 200"
        after = daemon.scrape()
        check_nothing_went_back(before, after)
        assert of_host(before) <= of_host(after)
        storms = {name: value for name, value in after.items() if "storms_total" in name[0]}
        assert storms
        assert not any(storms.values())
        assert daemon.stop() == 0


def pressed(daemon: Daemon, margin: int) -> None:
    """Limit the daemon's address space to `more` bytes above its present use."""
    daemon.seen.rlimit(psutil.RLIMIT_AS, (daemon.seen.memory_info().vms + margin, psutil.RLIM_INFINITY))


def test_with_4_mb_of_address_space_left_it_lives_and_recovers(tmp_path) -> None:
    """Every reply is a complete exposition or an error, and all is well again after the limit is lifted."""
    with exporter(tmp_path, *SIMULATED, "--log.level=warn") as daemon:
        whole = complete(daemon)
        pressed(daemon, MARGIN)
        codes = [daemon.status("/metrics") for _ in range(50)]
        assert set(codes) <= {200, 500}
        assert 200 in codes
        assert daemon.process.poll() is None
        daemon.seen.rlimit(psutil.RLIMIT_AS, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        wait_until(lambda: whole <= of_host(daemon.scrape()))
        assert daemon.stop() == 0


@pytest.mark.parametrize("margin", [0, 64 * 1024])
def test_without_address_space_it_recovers_or_ends_and_is_never_half_dead(tmp_path, margin) -> None:
    """A missing reply is an error or a closed connection. A process that had to end is restarted by systemd."""
    with exporter(tmp_path, *SIMULATED, "--log.level=warn") as daemon:
        whole = complete(daemon)
        pressed(daemon, margin)
        answers = flood(daemon)
        assert all(answer.startswith(b"HTTP/1.1 ") for answer in answers if answer)
        with contextlib.suppress(psutil.NoSuchProcess):
            daemon.seen.rlimit(psutil.RLIMIT_AS, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        wait_until(lambda: daemon.process.poll() is not None or whole <= of_host(daemon.scrape()))
        if daemon.process.poll() is None:
            assert daemon.stop() == 0
        else:
            assert daemon.process.returncode == 1
            assert re.search("MemoryError|can't start new thread|out of memory", daemon.log)


def flood(daemon: Daemon) -> list[bytes]:
    """The beginnings of the replies to a hundred clients; each sends twenty requests at once."""
    clients = []
    with contextlib.ExitStack() as opened:
        for _ in range(100):
            with contextlib.suppress(OSError):
                client = opened.enter_context(socket.create_connection(tuple_of(daemon.address)))
                clients.append(client)
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        return [answered(client) for client in clients]


def answered(client: socket.socket) -> bytes:
    client.settimeout(HUNG_SECONDS)
    try:
        return client.recv(100)
    except ConnectionError:
        return b""


def test_the_watchdog_is_notified(tmp_path) -> None:
    """WATCHDOG_USEC is systemd's timeout: a notification is sent in half that time, from before the first collection to the end."""
    with supervisor(tmp_path / "notify") as heard:
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
        with exporter(tmp_path, *SIMULATED, environment=environment) as daemon:
            told = [heard() for _ in range(6)]
            assert set(told) == {"WATCHDOG=1", "READY=1"}
            assert told.count("READY=1") == 1
            assert daemon.stop() == 0
            while (last := heard()) == "WATCHDOG=1":
                pass
            assert last == "STOPPING=1"


async def test_a_hung_loop_does_not_notify_the_watchdog(tmp_path, monkeypatch) -> None:
    """The notifications come from the serving loop, not from a thread that would survive it."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        telling = asyncio.ensure_future(report_alive(0.01))
        assert await asyncio.to_thread(sock.recv, 100) == b"WATCHDOG=1"
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while sock.recv(100):
                pass
        threading.Event().wait(0.2)
        with pytest.raises(BlockingIOError):
            sock.recv(100)
        telling.cancel()


@pytest.mark.parametrize(
    "environment", [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "400000", "WATCHDOG_PID": "1"}]
)
def test_a_watchdog_of_another_process_is_not_notified(tmp_path, environment) -> None:
    with supervisor(tmp_path / "notify") as heard:
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), **environment}
        with exporter(tmp_path, *SIMULATED, environment=environment) as daemon:
            assert heard() == "READY=1"
            assert daemon.stop() == 0
            assert heard() == "STOPPING=1"
