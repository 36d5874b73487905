"""A booted machine of Debian in a network of its own, which Ansible reaches without sshd.

systemd-nspawn boots it in a network namespace; a second one has the other end of a veth pair, so that requests come from outside.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy_image import machine_tar
from deploy_tools import need_root
from tools import lacking, need
from waiting import HUNG_SECONDS, wait_until

ADDRESS = "192.0.2.2"
"""Of the machine."""
CLIENTS = ("192.0.2.1", "192.0.2.9")
"""Of the namespace outside, the second one for a client that a firewall does not admit."""
SSH = """#!/bin/sh
# In place of ssh: runs the last argument in the machine, as root. While it starts, systemd-nspawn has another child than its init.
for last; do :; done
leader=$(ps --ppid {nspawn} -o pid= | tr -d ' ')
exec nsenter --target="$leader" --all env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -c "$last"
"""


@dataclass(frozen=True)
class Machine:
    """A running machine."""

    root: Path
    ssh: Path
    outside: str

    def run(self, command: str) -> str:
        """What a command in the machine prints."""
        done = subprocess.run([self.ssh, command], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def curl(self, *arguments: str) -> str:
        """What curl prints in the namespace outside."""
        command = ["ip", "netns", "exec", self.outside, "curl", "--silent", "--max-time", "20", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    @contextmanager
    def served(self, folder: Path) -> Iterator[str]:
        """The address, for the machine, of a web server outside for this folder."""
        command = ["ip", "netns", "exec", self.outside, sys.executable, "-m", "http.server"]
        command += ["--bind", CLIENTS[0], "--directory", str(folder), "8080"]
        url = f"http://{CLIENTS[0]}:8080"
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                wait_until(lambda: self.curl("--fail", url))
                yield url
            finally:
                server.terminate()


@contextmanager
def network() -> Iterator[tuple[str, str]]:
    """Two namespaces and the pair of network devices between them: the machine's, and the one outside."""
    need("ip")
    inside, outside = (f"roce-{os.getpid()}-{side}" for side in ("in", "out"))
    try:
        for command in (
            f"netns add {inside}",
            f"netns add {outside}",
            f"link add host0 netns {inside} type veth peer name outside0 netns {outside}",
            f"-n {inside} address add {ADDRESS}/24 dev host0",
            *(f"-n {outside} address add {client}/24 dev outside0" for client in CLIENTS),
            f"-n {inside} link set lo up",
            f"-n {outside} link set lo up",
            f"-n {inside} link set host0 up",
            f"-n {outside} link set outside0 up",
        ):
            made = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
            if made.returncode:
                lacking(f"ip {command} failed: {made.stderr}")
        yield inside, outside
    finally:
        for name in (inside, outside):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def leader_of(nspawn: int) -> str:
    """The process that is the machine's init; empty while there is none."""
    command = [need("ps"), "--ppid", str(nspawn), "-o", "pid="]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return next(iter(found.split()), "")


@contextmanager
def booted(folder: Path, suite: str = "bookworm") -> Iterator[Machine]:
    """A machine of this suite of Debian, without a source of packages, until the block ends."""
    need_root()
    nspawn = need("systemd-nspawn")
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "--extract", "-f", machine_tar(suite), "-C", root], check=True)
    for source in (root / "etc/apt").glob("sources.list*"):
        shutil.rmtree(source) if source.is_dir() else source.unlink()
    (root / "etc/apt/sources.list.d").mkdir()
    with network() as (inside, outside), (folder / "console").open("w") as console:
        flags = [
            "--quiet",
            "--register=no",
            "--keep-unit",
            f"--network-namespace-path=/run/netns/{inside}",
            "--capability=CAP_NET_ADMIN,CAP_SYSLOG",
        ]
        machine = subprocess.Popen(
            [nspawn, *flags, "-D", root, "--boot"],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until(lambda: leader_of(machine.pid) or machine.poll() is not None)
            if machine.poll() is not None:
                lacking(f"systemd-nspawn cannot boot here: {(folder / 'console').read_text()[-500:]}")
            ssh = folder / "ssh"
            ssh.write_text(SSH.format(nspawn=machine.pid))
            ssh.chmod(0o755)
            found = Machine(root, ssh, outside)
            wait_until(lambda: found.run("systemctl is-system-running") in {"running", "degraded"})
            yield found
        finally:
            machine.terminate()
            machine.wait(timeout=HUNG_SECONDS)
