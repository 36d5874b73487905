"""The real command `roce-exporter demo`: its output, and that it leaves nothing behind."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from servers import EXPORTER
from sonic_redis import need_redis
from sonic_server import short_folder
from tools import need
from waiting import HUNG_SECONDS, wait_until

SOON = "--host.simulate-seed=57"
"""With this seed the first storm begins after 20 s and lasts 3.3 s."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Shorter than pytest's own, which can leave no room for the name of a socket."""
    with short_folder() as folder:
        yield folder


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """Its servers are installed. Temporary files go to a folder of their own, so that leftovers are noticed."""
    need("prometheus")
    need_redis()
    return os.environ | {"TMPDIR": str(tmp_path), "TERM": "xterm-256color"}


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def assert_nothing_is_left(folder: Path, children: list[psutil.Process]) -> None:
    assert [child for child in children if child.is_running()] == []
    assert list(folder.iterdir()) == []


@contextlib.contextmanager
def running(environment: dict[str, str], *flags: str) -> Iterator[subprocess.Popen[str]]:
    """The demo without a terminal."""
    pipe = subprocess.PIPE
    argv = [*EXPORTER, "demo", *flags]
    with (
        subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, env=environment) as process,
        ending(process),
    ):
        yield process


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The rest of its output. Not `communicate`, which loses what the first `readline` took into its buffer."""
    rest, errors = process.stdout.read(), process.stderr.read()
    process.wait(HUNG_SECONDS)
    return rest, errors


@contextlib.contextmanager
def ending(process: subprocess.Popen[str]) -> Iterator[None]:
    """Ends the demo however the test ends, so that no Prometheus is left running."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(HUNG_SECONDS)


@pytest.mark.ci
def test_without_a_terminal_it_prints_storm_alert_and_watchdog_as_lines(environment, tmp_path) -> None:
    port = r"leaf-057 Ethernet0 \(gpu-057 eth0\) priority 3"
    events = [
        rf"^\[ *\d+\.\d s\] {event}$"
        for event in (
            r"storm begins: mlx5_0/1 \(eth0\) priority 3 transmit.*",
            r"storm ends: mlx5_0/1 \(eth0\) priority 3 transmit after.*",
            f"switch watchdog trips: {port}",
            f"switch watchdog restores: {port}",
        )
    ]
    alert = r"alert fires: RocePfcStorm \(critical\) PFC storm sent by demo-host mlx5_0/1 \(eth0\)"
    with running(environment, SOON) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        children = descendants(process.pid)
        names = [child.name() for child in children]
        assert names.count("prometheus") == names.count("redis-server") == 1
        (server,) = (child for child in children if child.name() == "redis-server")
        assert server.net_connections("inet") == [], "no TCP port"
        page = re.fullmatch(r"switch +(http://127\.0\.0\.1:\d+/probe\?target=leaf-057)\n", lines[2])
        assert page
        with urllib.request.urlopen(page[1], timeout=HUNG_SECONDS) as answer:
            assert b'roce_switch_probe_success{device="leaf-057"} 1' in answer.read()
        while not all(re.search(one, "".join(lines), re.MULTILINE) for one in (*events, alert)):
            lines.append(process.stdout.readline())
            assert lines[-1], "it has ended"
        process.terminate()
        rest, errors = finish(process)
    lines += rest.splitlines(keepends=True)
    text = "".join(lines)
    assert lines[0].startswith("simulated host, scenario pfc-storm: ")
    assert re.match(r"exporter +http://127\.0\.0\.1:\d+/$", lines[1])
    assert re.search(r"^prometheus +http://127\.0\.0\.1:\d+/alerts$", text, re.MULTILINE)
    ended = re.fullmatch(
        r"ended after \d+ s with (\d+) PFC storms? seen; its servers and files are removed\n", lines[-1]
    )
    assert ended
    begun, *later = (len(re.findall(one, text, re.MULTILINE)) for one in events)
    assert max(later) <= begun == int(ended[1])
    assert "\x1b" not in text
    assert errors == ""
    assert process.returncode == 0
    assert_nothing_is_left(tmp_path, children)


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.ci) for one in (signal.SIGTERM, signal.SIGHUP))],
)
def test_a_signal_ends_it_and_leaves_nothing(environment, tmp_path, number) -> None:
    with running(environment, "--host.simulate=quiet") as process:
        assert "scenario quiet" in process.stdout.readline()
        children = descendants(process.pid)
        assert [child.name() for child in children].count("prometheus") == 1
        process.send_signal(number)
        _, errors = finish(process)
    assert (process.returncode, errors) == (0, "")
    assert_nothing_is_left(tmp_path, children)


@pytest.mark.ci
def test_a_path_goes_bad_with_clean_counters_and_the_alert_and_the_page_name_it(
    environment, tmp_path
) -> None:
    """Real probers, real UDP, a real Prometheus with our rules. No counter of the host has an alert.

    At first, and on a busy machine at any time, others lose probes, too: what counts is that both soon name the path alone.
    """

    def fired() -> bool:
        with urllib.request.urlopen(f"{prometheus}/api/v1/alerts") as reply:
            found = json.load(reply)["data"]["alerts"]
        firing = {one["labels"]["alertname"]: one for one in found if one["state"] == "firing"}
        if "RocePathLoss" not in firing or firing.keys() & {"RoceProbeLoss", "RocePortFaulty"}:
            return False
        description = firing["RocePathLoss"]["annotations"]["description"]
        lost = re.search(r"Most are lost to \S+ from port \d+", description)
        return "rack rack-2 rail 0" in description and bool(lost)

    def named() -> bool:
        words = [*EXPORTER, "check", "fabric", f"--prometheus={prometheus}", "--format=json"]
        done = subprocess.run(words, capture_output=True, check=False)
        findings = json.loads(done.stdout or b"{}").get("findings", [])
        return {one["device"] for one in findings if one["check"] == "probe_loss"} == {
            "uplinks of rack-2 rail 0"
        }

    with running(environment, "--host.simulate=lossy-path") as process:
        lines = iter(process.stdout.readline, "")
        assert "scenario lossy-path" in next(lines)
        prometheus = next(line.split()[1].removesuffix("/alerts") for line in lines if "/alerts" in line)
        children = descendants(process.pid)
        assert next(line for line in lines if "alert fires: RocePathLoss (warning)" in line)
        wait_until(fired)
        wait_until(named)
        process.terminate()
        finish(process)
    assert_nothing_is_left(tmp_path, children)


@pytest.mark.ci
def test_its_child_processes_end_when_it_is_killed(environment) -> None:
    """Temporary files remain in this case."""
    with running(environment, "--host.simulate=quiet") as process:
        assert "scenario quiet" in process.stdout.readline()
        children = descendants(process.pid)
        assert {"prometheus", "redis-server"} <= {child.name() for child in children}
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=HUNG_SECONDS)
    assert alive == []


@pytest.mark.ci
def test_the_reader_of_its_lines_may_close_the_pipe(environment, tmp_path) -> None:
    """As in `roce-exporter demo | head -1`: the demo ends at the next line that it prints."""
    with running(environment, "--host.simulate=quiet", "--duration=2") as process:
        process.stdout.readline()
        children = descendants(process.pid)
        process.stdout.close()
        assert process.wait(HUNG_SECONDS) == 0
        assert process.stderr.read() == ""
    assert_nothing_is_left(tmp_path, children)


ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # from here on Ctrl-C there is SIGINT here
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A pseudo-terminal of 100 x 30 that runs the demo."""

    def __init__(self, environment: dict[str, str], *flags: str) -> None:
        self.descriptor, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_TERMINAL, *EXPORTER, "demo", *flags],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
        )
        os.close(other)
        self.output = ""

    def read_until(self, text: str) -> None:
        """Read on until this text has appeared; far longer than that takes on the slowest machine, then it is missing."""
        deadline, waiting = time.monotonic() + 400, select.poll()
        waiting.register(self.descriptor, select.POLLIN)
        while text not in self.output:
            assert time.monotonic() < deadline, f"{text!r} is missing in: {self.output[-3000:]}"
            if waiting.poll(1000):
                self.output += os.read(self.descriptor, 65536).decode(errors="replace")

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while told := os.read(self.descriptor, 65536):
                self.output += told.decode(errors="replace")
        os.close(self.descriptor)
        return self.process.wait(HUNG_SECONDS)


@pytest.mark.ci
def test_on_a_terminal_there_is_a_screen_and_ctrl_c_ends_it(environment, tmp_path) -> None:
    terminal = Terminal(environment, SOON)
    with ending(terminal.process):
        check_screen(terminal, tmp_path)


def check_screen(terminal: Terminal, folder: Path) -> None:
    terminal.read_until("Ctrl-C ends it")
    children = descendants(terminal.process.pid)
    assert [child.name() for child in children].count("prometheus") == 1
    assert "\x1b[?1049h" in terminal.output, "a screen of its own"
    for expected in ("roce-exporter demo", "http://127.0.0.1:", "pause in", "eth3 mlx5_3/1 p3"):
        terminal.read_until(expected)
    terminal.read_until("goes on")
    for expected in ("leaf-057", "headroom", "Ethernet0 gpu-057 eth0 p3", "tripped"):
        terminal.read_until(expected)
    os.write(terminal.descriptor, b"\x03")
    assert terminal.end() == 0
    assert "\x1b[?1049l" in terminal.output, "the terminal is restored"
    # One, or more where this test has to wait for a busy machine.
    assert re.search(r"ended after \d+ s with [1-9]\d* PFC storms? seen", terminal.output)
    assert "Traceback" not in terminal.output
    assert_nothing_is_left(folder, children)


@pytest.mark.ci
def test_a_key_shows_the_next_scenario_and_a_terminal_that_is_closed_ends_it(environment, tmp_path) -> None:
    terminal = Terminal(environment, "--host.simulate=quiet")
    with ending(terminal.process):
        terminal.read_until("Ctrl-C ends it")
        before = descendants(terminal.process.pid)
        os.write(terminal.descriptor, b"x")  # no such key
        os.write(terminal.descriptor, b"n")
        terminal.read_until("  incast")
        terminal.output = ""
        os.write(terminal.descriptor, b"p")
        terminal.read_until("  quiet")
        terminal.output = ""
        terminal.read_until("Ctrl-C ends it")
        children = descendants(terminal.process.pid)
        assert not {child.pid for child in before} & {child.pid for child in children}, "the servers are new"
        os.close(terminal.descriptor)
        terminal.process.wait(HUNG_SECONDS)
    assert_nothing_is_left(tmp_path, children)
