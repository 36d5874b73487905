"""The daemon as a separate process, real clients, and private namespaces in which the kernel itself refuses."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import servers
from prometheus_client.parser import text_string_to_metric_families
from tools import lacking, need
from waiting import HUNG_SECONDS

Key = tuple[str, tuple[tuple[str, str], ...]]
Samples = dict[Key, float]

SCRAPE = {"X-Prometheus-Scrape-Timeout-Seconds": "5"}


def key(name: str, **labels: str) -> Key:
    return name, tuple(sorted((label, text) for label, text in labels.items() if text))


def parse(text: bytes) -> Samples:
    """Every sample of an exposition."""
    return {
        key(sample.name, **sample.labels): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


class Daemon(servers.Running):
    """One running exporter, ours or another."""

    def scrape(self, timeout: float = HUNG_SECONDS) -> Samples:
        """One scrape of all samples."""
        return parse(self.get(timeout=timeout, **SCRAPE))


@contextlib.contextmanager
def exporter(folder: Path, *flags: str, **options: Any) -> Iterator[Daemon]:
    """Our exporter on loopback with all metrics, ready."""
    with servers.exporter(folder, "--metrics.set=full", *flags, **options) as running:
        yield Daemon(running.process, running.address, running.log_file)


@dataclass(frozen=True, slots=True)
class Namespace:
    """New namespaces, held by an idle process."""

    holder: subprocess.Popen[bytes]
    enter: tuple[str, ...]
    """The prefix of a command that is to run inside."""

    def run(self, *command: str) -> str:
        """The output of a command inside; it must succeed."""
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout


@contextlib.contextmanager
def namespace(*kinds: str) -> Iterator[Namespace]:
    """Private namespaces of these kinds (`mount`, `net`). Mounts in them are invisible elsewhere and end with them."""
    enter, unshare = need("nsenter"), need("unshare")
    user = [] if os.geteuid() == 0 else ["user"]
    mapped = ["--user", "--map-root-user"] if user else []
    flags = [f"--{kind}" for kind in kinds]
    holder = subprocess.Popen(
        [unshare, *mapped, *flags, "sh", "-c", "echo held; exec cat >/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != b"held\n":
            lacking(f"private namespaces ({', '.join(kinds)}) are not allowed here; run as root")
        into = [f"--{kind}" for kind in (*user, *kinds)]
        credentials = ["--preserve-credentials"] if user else []
        yield Namespace(holder, (enter, f"--target={holder.pid}", *into, *credentials, "--"))
    finally:
        holder.stdin.close()
        holder.wait(HUNG_SECONDS)
        holder.stdout.close()
