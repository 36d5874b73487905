"""The helper `roce-exporter tool namespaces`: visits network namespaces and reports their RDMA devices on a Unix socket.

It is the only part of the exporter that needs CAP_SYS_ADMIN, so it is a process of its own and as small as possible. It
reads nothing from a client: each connection gets one document and is closed. It visits at most once per `REST` seconds,
whatever the number of clients, and changes nothing.

setns(2) with CLONE_NEWNET needs the capability and moves the calling thread alone. A thread that has entered a namespace must end
afterwards: it is never moved back. The file system and everything else of the thread stay those of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import json
import logging
import os
import stat
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.host.kernel import read_or
from roce_exporter.host.kernel.names import decode_name, encode_name
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
from roce_exporter.model.values import reason_of
from roce_exporter.net import NetError
from roce_exporter.net.json_reply import decode_json

FOLDER = "/run/netns"  # where `ip netns` and the CNI plugins of container runtimes keep namespaces by name
CLONE_NEWNET = 0x40000000
MOST_NAMESPACES = 512
Objects = dict[str, dict[str, int]]
"""Kind of object to number in use, by device."""


def list_namespaces(folder: str = FOLDER) -> tuple[str, ...]:
    """The names of the network namespaces in a folder, at most `MOST_NAMESPACES`; empty without the folder.

    OSError: the folder cannot be read.
    """
    try:
        return tuple(sorted(map(decode_name, os.listdir(os.fsencode(folder))))[:MOST_NAMESPACES])
    except FileNotFoundError:
        return ()


def read_namespace(name: str, folder: str = FOLDER, enter: Callable[[int], None] | None = None) -> Objects:
    """The objects of each RDMA device of a namespace. The thread stays there: call this in a thread of its own.

    OSError: the namespace may not be entered (EPERM: without CAP_SYS_ADMIN), was removed, or RDMA netlink fails.
    """
    place = os.path.join(os.fsencode(folder), encode_name(os.path.basename(name)))
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        (enter or _enter)(descriptor)
    finally:
        os.close(descriptor)
    netlink = RdmaNetlink()
    try:
        # A device that was moved meanwhile exists, and nothing more is known of it.
        return {device.name: dict(read_or({}, netlink.resources, device)) for device in netlink.devices()}
    finally:
        netlink.close()


def check_entry() -> None:
    """Enter the namespace of this thread again, which changes nothing. OSError: EPERM without CAP_SYS_ADMIN."""
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(descriptor)
    finally:
        os.close(descriptor)


def _enter(descriptor: int) -> None:
    # Python has os.setns since 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


MOST_BYTES = 1024 * 1024  # size of a document that is read
MOST_DEVICES = 1024  # devices of all namespaces that are shown
MOST_KINDS = 16  # kinds of objects of one device
MOST_CHARACTERS = 255  # of a name
MOST_VALUES = 50_000  # of a document
MOST_OBJECTS = 1 << 32  # of one kind


class NamespaceReport(NamedTuple):
    """The RDMA devices of the namespaces that were visited."""

    devices: dict[tuple[str, str], dict[str, int]]
    """Kind of object to number in use, by namespace and device."""
    failed: dict[str, str]
    """Why a namespace could not be visited, by its name."""


def encode_report(report: NamespaceReport) -> bytes:
    """The document of a report."""
    devices = [
        {"namespace": namespace, "device": device, "objects": objects}
        for (namespace, device), objects in report.devices.items()
    ]
    return json.dumps({"devices": devices, "failed": report.failed}).encode()


def decode_report(document: bytes) -> NamespaceReport:
    """The report in a document, without the devices beyond `MOST_DEVICES`. ValueError: it is no such document."""
    try:
        found = decode_json(document, most=MOST_VALUES)
        devices = {
            (_name(one["namespace"]), _name(one["device"])): _objects(one["objects"])
            for one in found["devices"][:MOST_DEVICES]
        }
        failed = {str(name): str(why) for name, why in found["failed"].items()}
    except (TypeError, KeyError, AttributeError, ValueError, NetError):
        raise ValueError("the document is not one of `roce-exporter tool namespaces`") from None
    return NamespaceReport(devices, failed)


def _objects(found: dict[str, Any]) -> dict[str, int]:
    if not all(isinstance(number, int) and 0 <= number < MOST_OBJECTS for number in found.values()):
        raise ValueError("an object count is not a number")
    return {_name(kind): number for kind, number in islice(found.items(), MOST_KINDS)}


def _name(found: object) -> str:
    return str(found)[:MOST_CHARACTERS]


LOG = logging.getLogger(__name__)
REST = 10.0  # least seconds between two rounds of visits
TIMEOUT = 2.0  # seconds after which a namespace is given up
MOST_STUCK = 32  # visits that do not return; each holds a thread, and the unit has 64
ROUND_SECONDS = 3.0  # seconds that a client waits for a round. The exporter gives up after five.
SEND_SECONDS = 5.0  # seconds that a client may take to read its document


class NamespaceHelper:
    """Reports the namespaces of one folder. Used from one event loop; `clock` returns monotonic seconds."""

    def __init__(
        self,
        folder: str,
        clock: Callable[[], float],
        visit_one: Callable[[str, str], Objects] = read_namespace,
        timeout: float = TIMEOUT,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._visit = visit_one
        self._timeout = timeout
        self._in_flight: InFlight[str] = InFlight(clock)
        self._visited = -float("inf")
        self._rounds: asyncio.Task[None] | None = None
        self._report = NamespaceReport({}, {})
        """Of the last complete round; of the first one as far as it is."""

    async def document(self) -> bytes:
        """The document of a round that is at most `REST` seconds old; of the last one, where a new one takes longer than `ROUND_SECONDS`.

        A round belongs to the helper and not to the client that began it: it goes on when that has gone.
        """
        if self._rounds is None and self._clock() - self._visited >= REST:
            self._rounds = asyncio.create_task(self._round())
        if self._rounds is not None:
            await asyncio.wait((self._rounds,), timeout=ROUND_SECONDS)
        return encode_report(self._report)

    async def answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the document to a client and close the connection."""
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits for all of it
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(SEND_SECONDS):
                writer.write(await self.document())
                await writer.drain()
        writer.transport.abort()

    async def _round(self) -> None:
        try:
            self._report = await self._visit_all(
                self._report if self._visited < 0 else NamespaceReport({}, {})
            )
        except OSError as error:
            LOG.warning(
                "the network namespaces below %s cannot be listed: %s", self._folder, reason_of(error)
            )
        finally:
            self._visited, self._rounds = self._clock(), None

    async def _visit_all(self, report: NamespaceReport) -> NamespaceReport:
        # One after another: namespaces come and go, and no round is urgent.
        for name in list_namespaces(self._folder):
            # A thread of its own, which ends after one namespace: it cannot return to the first namespace.
            work = partial(self._visit, name, self._folder)
            if len(self._in_flight.since()) >= MOST_STUCK:
                report.failed[name] = "EBUSY"
                continue
            try:
                devices = await call_in_worker(self._in_flight, name, work, self._timeout)
            except (OSError, RuntimeError) as error:  # RuntimeError: there is no thread for it
                report.failed[name] = reason_of(error) if isinstance(error, OSError) else "EAGAIN"
                continue
            report.devices.update({(name, device): objects for device, objects in devices.items()})
        return report


async def open_helper(helper: NamespaceHelper, path: str, group: int = -1) -> asyncio.Server:
    """Listen on a Unix socket that its owner and one group may use, and no other user. OSError: the socket cannot be made."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(errno.EEXIST, "a file that is no socket is there", path)
        os.unlink(path)
    before = os.umask(0o177 if group < 0 else 0o117)
    try:
        server = await asyncio.start_unix_server(helper.answer, path)
    finally:
        os.umask(before)
    if group >= 0:
        os.chown(path, -1, group, follow_symlinks=False)  # in the folder of others it may be another file now
    return server
