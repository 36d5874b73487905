"""A disk, a table of descriptors or a memory that is full: one clear line, nothing lost or left behind, and all is well when there is room again."""

import contextlib
import http.client
import os
import re
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from chaos_daemon import Daemon, Namespace, exporter, namespace
from servers import EXPORTER
from tools import need
from waiting import HUNG_SECONDS, wait_until

pytestmark = pytest.mark.ci

QUERY = "node_infiniband_link_downed_total\n"
SIMULATED = ("--host.simulate=quiet", "--sampler.mode=off")


@pytest.fixture(scope="module")
def disk(tmp_path_factory) -> Iterator[tuple[Namespace, Path]]:
    """An empty disk of three pages, in a private namespace."""
    place = tmp_path_factory.mktemp("disk")
    with namespace("mount") as inside:
        inside.run("mount", "-t", "tmpfs", "-o", "size=12k", "none", str(place))
        yield inside, place


def run(inside: Namespace, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*inside.enter, *EXPORTER, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["host.txt", "host.tar.gz", "host"])
def test_a_capture_on_a_full_disk_leaves_nothing_and_succeeds_when_there_is_room(disk, name) -> None:
    inside, place = disk
    command = ("capture", "--host.simulate=quiet", f"--output={place}/{name}")
    done = run(inside, *command)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{place}/{name}: No space left on device; choose another place" in done.stderr
    assert inside.run("ls", "-A", str(place)) == ""
    with resized(disk, "size=32m"):
        assert run(inside, *command).returncode == 0
        assert run(inside, "once", f"--host.recording={place}/{name}").returncode == 0
        inside.run("rm", "-r", f"{place}/{name}")


@contextlib.contextmanager
def resized(disk: tuple[Namespace, Path], size: str) -> Iterator[None]:
    inside, place = disk
    inside.run("mount", "-o", f"remount,{size}", str(place))
    yield
    inside.run("mount", "-o", "remount,size=12k,nr_inodes=1000", str(place))


def test_a_translation_in_place_on_a_full_disk_leaves_the_file_as_it_was(disk) -> None:
    inside, place = disk
    text = QUERY + "# x\n" * 2000  # two pages; the copy has no third and fourth
    inside.run(
        "sh", "-c", f"yes '# x' | head -n 2000 > {place}/a.promql; echo {QUERY.strip()} >> {place}/a.promql"
    )
    before = inside.run("cat", f"{place}/a.promql")
    assert sorted(before.split()) == sorted(text.split())
    done = run(inside, "tool", "translate", "--in-place", f"{place}/a.promql")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "No space left on device" in done.stderr
    assert inside.run("ls", "-A", str(place)) == "a.promql\n"
    assert inside.run("cat", f"{place}/a.promql") == before
    with resized(disk, "size=1m"):
        assert run(inside, "tool", "translate", "--in-place", f"{place}/a.promql").returncode == 0
        assert "roce_" in inside.run("cat", f"{place}/a.promql")
        inside.run("rm", f"{place}/a.promql")


def test_a_socket_on_a_disk_without_inodes_is_one_line(disk) -> None:
    inside, place = disk
    with resized(disk, "nr_inodes=1"):
        done = run(inside, "tool", "namespaces", f"--rdma.namespaces={place}/socket")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{place}/socket" in done.stderr
    assert "No space left on device" in done.stderr


ERRORS = {
    "EMFILE": "Too many open files",
    "ENFILE": "Too many open files in system",
    "ENOMEM": "Cannot allocate memory",
}
OPENED = {
    "the output of a capture": ("new.txt", ("capture", "--host.simulate=quiet", "--output={}")),
    "a recording": ("old.txt", ("once", "--host.recording={}")),
    "a web config file": ("web.yml", ("serve", *SIMULATED, "--web.config.file={}")),
    "a configuration file": ("options.yml", ("once", "--config.file={}")),
    "a file of switches": ("switches.yml", ("serve", "--no-host", "--switches.config={}")),
    "a file of limits": ("thresholds.yml", ("serve", *SIMULATED, "--thresholds.file={}")),
    "a dashboard": ("old.promql", ("tool", "translate", "{}")),
    "packets": ("frames.pcap", ("wire", "{}")),
}
"""What is opened, and the command that opens it."""


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("what", OPENED)
def test_a_file_that_cannot_be_opened_for_a_shortage_is_one_line_with_its_name(tmp_path, what, error) -> None:
    """The kernel's table of files is everybody's, so strace returns its error in the place of the system call."""
    name, arguments = OPENED[what]
    place = tmp_path / name
    if name != "new.txt":
        place.write_text("")
    inject = (
        "-f",
        "-qq",
        "-o",
        str(tmp_path / "calls"),
        "-P",
        str(place),
        "-e",
        f"inject=openat:error={error}",
    )
    command = [need("strace"), *inject, *EXPORTER, *(one.format(place) for one in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HUNG_SECONDS)
    assert "INJECTED" in (tmp_path / "calls").read_text()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert name in done.stderr
    assert ERRORS[error] in done.stderr
    assert name != "new.txt" or not place.exists()


def limited(daemon: Daemon, most: int) -> None:
    """From now on the daemon may have so many descriptors, those that it has included."""
    daemon.seen.rlimit(psutil.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_without_descriptors_a_daemon_keeps_its_configuration_logs_once_and_recovers(tmp_path) -> None:
    config, log = tmp_path / "web.yml", tmp_path / "exporter.log"
    config.write_text("http_server_config: {headers: {X-Frame-Options: deny}}\n")
    with (
        exporter(tmp_path, *SIMULATED, f"--web.config.file={config}") as daemon,
        contextlib.ExitStack() as stack,
    ):
        before = daemon.seen.rlimit(psutil.RLIMIT_NOFILE)
        series = set(daemon.scrape())
        client = stack.enter_context(
            contextlib.closing(http.client.HTTPConnection(daemon.address, timeout=HUNG_SECONDS))
        )
        assert header(client) == "deny"
        limited(daemon, daemon.seen.num_fds())
        config.write_text("http_server_config: {headers: {X-Frame-Options: sameorigin}}\n")
        assert [header(client) for _ in range(20)] == ["deny"] * 20, "the configuration of before"
        others = [socket.create_connection(daemon.where, HUNG_SECONDS) for _ in range(20)]
        wait_until(lambda: "cannot accept a connection" in log.read_text())
        daemon.seen.rlimit(psutil.RLIMIT_NOFILE, before)
        for other in others:
            other.close()
        client.close()
        wait_until(lambda: header(client) == "sameorigin")
        assert {name for name, _ in series} <= {name for name, _ in daemon.scrape()}
        assert daemon.stop() == 0
    lines = [line for line in daemon.log.splitlines() if "level=warn" in line or "level=error" in line]
    assert len([line for line in lines if "Too many open files" in line and str(config) in line]) == 1, lines
    assert len([line for line in lines if "cannot accept a connection" in line]) == 1, lines
    assert "Traceback" not in daemon.log


def header(client: http.client.HTTPConnection) -> str | None:
    """What the configuration adds to the page of metrics."""
    client.request("GET", "/metrics")
    with client.getresponse() as reply:
        assert reply.status == 200
        assert re.search(rb"^roce_port_receive_packets_total", reply.read(), re.MULTILINE)
        return reply.headers["X-Frame-Options"]


def test_without_descriptors_the_switches_of_before_stay_and_the_next_signal_reads_the_new_ones(
    tmp_path,
) -> None:
    config = tmp_path / "switches.yml"
    config.write_text("targets: {leaf1: {address: 'http://127.0.0.1:1', module: nxos}}\n")
    with exporter(tmp_path, "--no-host", f"--switches.config={config}") as daemon:
        before = daemon.seen.rlimit(psutil.RLIMIT_NOFILE)
        assert daemon.status("/probe?target=leaf2") == 404
        config.write_text("targets: {leaf2: {address: 'http://127.0.0.1:1', module: nxos}}\n")
        limited(daemon, 3)
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_until(lambda: "SIGHUP: nothing has changed, because" in daemon.log)
        daemon.seen.rlimit(psutil.RLIMIT_NOFILE, before)
        assert daemon.status("/probe?target=leaf2") == 404
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_until(lambda: daemon.status("/probe?target=leaf2") != 404)
        assert daemon.stop() == 0
    assert daemon.log.count("Too many open files") == 1
    assert "Traceback" not in daemon.log
