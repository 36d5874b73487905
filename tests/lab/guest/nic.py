"""The network cards without hardware: how a test loads and controls them (rocelab/README.md)."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTROL = Path("/sys/kernel/debug/rocelab")
MODULE = os.environ.get("ROCELAB_MODULE", "")
"""The module that run.sh built for this kernel."""


def run(*command: str) -> str:
    """The output of a command.

    Raises:
        CalledProcessError: the command failed.
    """
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kernel() -> tuple[int, int]:
    """The series of the running kernel: (6, 12)."""
    major, minor, *_ = os.uname().release.split(".")
    return int(major), int(minor)


def ask_json(*command: str) -> Any:
    """The output of a command as JSON."""
    return json.loads(run(*command))


@dataclass(frozen=True, slots=True)
class Table:
    """The values that one query of the driver returns, and its faults."""

    path: Path

    def set(self, values: Mapping[str, int]) -> None:
        """Set all values at one moment: every read returns either the old or the new ones."""
        self.write("values", "".join(f"{name} {value}\n" for name, value in values.items()))

    def values(self) -> dict[str, int]:
        """Every name, including those that the driver does not list just now, with its set value; None if it has none."""
        if not (self.path / "values").exists():
            return {}
        lines = (line.rsplit(" ", 1) for line in (self.path / "values").read_text().splitlines())
        return {name: int(value) for name, value in lines}

    def spelling(self, *names: str) -> str:
        """The first of these names that the driver has on this kernel; empty if it has none of them."""
        had = self.values()
        return next((name for name in names if name in had), "")

    def break_with(self, fault: str) -> None:
        """`EIO`, `hang`, `NAME EIO`, or `none`."""
        self.write("fault", fault)

    @contextmanager
    def broken(self, fault: str) -> Iterator[None]:
        """Broken until the block ends. `fault` is an errno's name, or `hang`, or `NAME ERRNO`."""
        self.break_with(fault)
        try:
            yield
        finally:
            self.break_with(" ".join((*fault.split(" ")[:-1], "none")))

    def delay(self, microseconds: int) -> None:
        """Set how long each query takes."""
        self.write("delay_us", str(microseconds))

    def queries(self) -> int:
        """How often the driver was queried since it was loaded."""
        return int((self.path / "queries").read_text())

    def write(self, file: str, text: str) -> None:
        """Write a file of the table: `values`, `fault`, `delay_us`, `refresh_ms`.

        Raises:
            OSError: the error of the module.
        """
        # One write system call: buffered text files may split it.
        descriptor = os.open(self.path / file, os.O_WRONLY)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Nic:
    """One device of rocelab."""

    number: int
    rdma: str
    netdevs: tuple[str, ...]

    def table(self, name: str) -> Table:
        """A table of the device: `rdma`, `port`, `state`."""
        return Table(CONTROL / str(self.number) / name)

    def leg(self, name: str, number: int = 0) -> Table:
        """A table of one network device: `access`, `ethtool`, `pause`, `fec`, `standard`, `link`, `dcb`."""
        return Table(CONTROL / str(self.number) / f"leg{number}" / name)

    def log(self, how: str, text: str) -> None:
        """Write a line to the kernel log as a driver does: `err`, `info`, or `net` for the first network device."""
        descriptor = os.open(CONTROL / str(self.number) / "log", os.O_WRONLY)
        try:
            os.write(descriptor, f"{how} {text}".encode())
        finally:
            os.close(descriptor)

    def reset(self) -> None:
        """Restart counters from 0."""
        (CONTROL / str(self.number) / "reset").write_text("1")


def order(what: str, text: str) -> None:
    """`add` a personality, such as `mlx5` or `mlx5/2`; `remove` a number."""
    descriptor = os.open(CONTROL / what, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def load(devices: str) -> None:
    """Load the module with these devices, and bring their interfaces up."""
    run("insmod", MODULE, f"devices={devices}")
    for nic in nics().values():
        for netdev in nic.netdevs:
            run("ip", "link", "set", netdev, "up")


def unload() -> None:
    """Unload the module."""
    run("rmmod", "rocelab")


def nics() -> dict[str, Nic]:
    """Every device by the name of its RDMA device."""
    found = {}
    for place in sorted(Path("/sys/class/infiniband").iterdir()):
        owner = (place / "device").resolve()
        if not (owner.name.rpartition(".")[2].isdecimal() and owner.parent.name == "platform"):
            continue
        ports = {Path(f"/sys/class/net/{name.name}") for name in (owner / "net").iterdir()}
        netdevs = sorted(ports, key=lambda port: int((port / "dev_port").read_text()))
        number = int(owner.name.rpartition(".")[2])
        found[place.name] = Nic(number, place.name, tuple(port.name for port in netdevs))
    return found
