"""`rdma` of iproute2 on made-up lists: the processes that an exporter starts which runs it and reads its JSON.

Without an RDMA device `rdma` ends before it has opened its socket. So it gets the same lists as the exporter, byte by byte, by a
library that is loaded into it (`replayed_netlink.c`). What it does with them is its own: parsing, /proc/PID/comm, JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel.netlink import (
    DONE,
    MULTIPART,
    Message,
    encode_attribute,
    encode_message,
    encode_u32,
)
from roce_exporter.host.kernel.object_netlink import LISTINGS
from roce_exporter.host.kernel.rdma_netlink import DEV_INDEX, DEV_NAME, PORT_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from object_lists import ReplayedHost

    from roce_exporter.model import RdmaDevice

KINDS = ("ctx", "cq", "mr", "qp", "cm_id")
SOURCE = Path(__file__).with_name("replayed_netlink.c")
COMMAND_MASK = 0x3FF
GET_DEVICES = 1
BUFFER_BYTES = 4096
"""Receive buffer of `rdma`: a page."""
NLDEV = 5 << 10


class Rdma(NamedTuple):
    """`rdma` with an environment in which it finds the made-up devices."""

    environment: dict[str, str]
    devices: tuple[str, ...]

    def read_host(self) -> int:
        """One process per kind lists all devices; returns the number of objects in their JSON."""
        return sum(self._count(kind, ()) for kind in KINDS)

    def read_devices(self) -> int:
        """One process per kind and device."""
        return sum(
            self._count(kind, ("link" if kind in ("qp", "cm_id") else "dev", name))
            for name in self.devices
            for kind in KINDS
        )

    def start_only(self) -> None:
        """One process per kind that finds no device."""
        for kind in KINDS:
            self._run(kind, (), self.environment | {"REPLAYED_NETLINK": "/dev/null"})

    def _count(self, kind: str, what: Sequence[str]) -> int:
        return len(json.loads(self._run(kind, what, self.environment) or "[]"))

    @staticmethod
    def _run(kind: str, what: Sequence[str], environment: dict[str, str]) -> bytes:
        command = ["rdma", "-j", "resource", "show", kind, *what]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - constants


@contextlib.contextmanager
def replayed(host: ReplayedHost, devices: Sequence[RdmaDevice]) -> Iterator[Rdma | None]:
    """`rdma` on the lists of a host, until the block ends; None without `rdma` or a C compiler."""
    if not (shutil.which("rdma") and shutil.which("cc")):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        library = place / "replayed_netlink.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", SOURCE, "-o", library, "-ldl"], check=True)  # noqa: S603, S607 - no input
        _write_lists(place, host, devices)
        environment = os.environ | {"LD_PRELOAD": str(library), "REPLAYED_NETLINK": folder}
        yield Rdma(environment, tuple(one.name for one in devices))


def _write_lists(place: Path, host: ReplayedHost, devices: Sequence[RdmaDevice]) -> None:
    _write(place / f"{GET_DEVICES}-0", [_device_entry(one) for one in devices] + [_done()])
    for device in devices:
        for kind, listing in LISTINGS.items():
            _write(
                place / f"{listing.command & COMMAND_MASK}-{device.index}",
                host.encode(device, kind, BUFFER_BYTES),
            )


def _device_entry(device: RdmaDevice) -> bytes:
    payload = (
        encode_u32(DEV_INDEX, device.index)
        + encode_attribute(DEV_NAME, device.name.encode() + b"\0")
        + encode_u32(PORT_INDEX, 1)
    )
    return encode_message(Message(NLDEV | GET_DEVICES, MULTIPART, 0, 0, payload))


def _done() -> bytes:
    return encode_message(Message(DONE, MULTIPART, 0, 0, bytes(4)))


def _write(path: Path, datagrams: Sequence[bytes]) -> None:
    path.write_bytes(b"".join(len(one).to_bytes(4, "little") + one for one in datagrams))
