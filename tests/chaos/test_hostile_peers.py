"""All peers at once answer with the worst: one process stays within its memory, holds its event loop for no reader, and serves.

Redis, HTTP with JSON, gNMI, the kubelet, Prometheus, the kernel log and the helper of namespaces, each as often as the process reads. The test times
nothing: work between two turns of the event loop is counted in calls and bytes. `python tests/chaos/test_hostile_peers.py` prints the longest step
of the event loop for each reader, in CPU time.
"""

import asyncio
import contextlib
import itertools
import json
import os
import select
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from gnmi_switch import RefusedError, gnmi_switch
from https_switch import server_context
from sonic_server import short_folder
from waiting import HUNG_SECONDS

from roce_exporter.net.grpc import grpc
from roce_exporter.net.http import BODY_BYTES
from roce_exporter.net.json_reply import SMALL_BYTES

pytestmark = pytest.mark.nightly  # the process is traced for half a minute

MEMORY = 256 << 20
"""167 to 178 MiB were used at a load of 16; up to 292 while gRPC received six messages of a switch at once."""
ADDRESS_SPACE = 2 << 30
"""Threads of gRPC reserve most of it."""
CALLS = 40_000
"""Of Python between two turns: an honest scrape has 16,000."""
READER = Path(__file__).with_name("hostile_reader.py")
MEGABYTE = 1 << 20
LARGE = BODY_BYTES - 1000


def member(number: int, data: bytes) -> bytes:
    """A field of a message of gRPC."""
    size, rest = b"", len(data)
    while rest > 127:
        size, rest = size + bytes([rest & 127 | 128]), rest >> 7
    return bytes([number << 3 | 2]) + size + bytes([rest]) + data


MANY_LEAVES = member(1, (member(4, b"") * 4_000_000)[:LARGE])
BODIES = {
    "objects": b"[" + b"{}," * 2_600_000 + b"{}]",
    "numbers": b"[" + b"0," * 299_000 + b"0]",
    "names": b"{" + b",".join(b'"%d":"a%d"' % (one, one) for one in range(140_000)) + b"}",
    "depth": b"[" * 4 * MEGABYTE,
    "digits": b"[" + b"1" * 4200 + b",1" * 1000 + b"]",
    "letters": b'["' + b"a" * (LARGE) + "\U0001f600".encode() + b'"]',
    "no text": b'"' + b"\xff" * (LARGE),
}
ENDLESS = b'{"a": "' + b"x" * 65_000
CHUNKS = b"1\r\nx\r\n" * MEGABYTE
SLOW = 100
"""Bodies of fewer bytes drip."""
REDIS = (
    b"*131072\r\n" + b"$2\r\nab\r\n" * 131_072,
    b"$65536\r\n" + b"x" * 65_536 + b"\r\n",
    b"*1000000000\r\n",
    b"+OK\r\n" * 10_000,
)
MESSAGES = (MANY_LEAVES, member(1, member(4, member(3, member(11, BODIES["objects"])))), b"\xff" * MEGABYTE)
PODS = (
    member(1, b"") * 2_000_000,
    member(1, member(3, member(2, member(2, b"0000:3b:00.0") * 250_000))),
    b"\xff" * 99,
)
NAMES = b'{"devices": [' + b'{"namespace": "a", "device": "b", "objects": {"c": 1}},' * 18_000


class Peers:
    """Servers of what comes next of some bodies: once, or again and again where they have no end."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()

    def http(self) -> Callable[..., Any]:
        """Replies with a status of 200, until the connection ends."""
        bodies = itertools.cycle((*BODIES.values(), ENDLESS, CHUNKS))

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            body = next(bodies)
            head = b"Transfer-Encoding: chunked\r\n" if body is CHUNKS else b""
            writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
            await self._send(writer, body, is_endless=body is ENDLESS)

        return self._serving(answer)

    def raw(self, *kinds: bytes) -> Callable[..., Any]:
        """Sends without a request, and without end."""
        bodies = itertools.cycle(kinds)

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._send(writer, next(bodies), is_endless=True)

        return self._serving(answer)

    async def _send(self, writer: asyncio.StreamWriter, body: bytes, *, is_endless: bool) -> None:
        while True:
            writer.write(body)
            await writer.drain()
            if not is_endless:
                return
            if len(body) < SLOW:
                await asyncio.sleep(0.01)  # a slow drip

    def _serving(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self.tasks.add(task)
            with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                await answer(reader, writer)
                writer.write_eof() if writer.can_write_eof() else None
                await reader.read()
            writer.transport.abort()

        return serve

    async def close(self) -> None:
        """End what is still being sent."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for _ in range(10):
            await asyncio.sleep(0)  # asyncio closes what was aborted


@contextlib.asynccontextmanager
async def kubelet(path: Path) -> AsyncIterator[str]:
    replies = itertools.cycle(PODS)

    async def answer(*_: object) -> bytes:
        return next(replies)

    server = grpc.aio.server(options=(("grpc.max_send_message_length", -1),))
    handler = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),)
    )
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield str(path)
    finally:
        await server.stop(None)


@contextlib.contextmanager
def small_group() -> Iterator[str]:
    """A control group with this memory alone; empty where none can be made."""
    for root, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = root / f"roce-peers-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(MEMORY))
        except OSError:
            continue
        try:
            yield str(group)
        finally:
            group.rmdir()
        return
    yield ""


async def test_all_peers_at_once_cost_bounded_memory_and_hold_nobody_up(tmp_path, record_property) -> None:
    seen, peak = await against_all(tmp_path, counted=True)
    record_property("seen", seen | {"peak": peak})
    assert not seen["faults"], seen
    assert seen["decoded"] <= SMALL_BYTES, seen
    assert seen["calls"] <= CALLS, seen
    assert peak < MEMORY, f"{peak >> 20} MiB"


async def against_all(tmp_path: Path, *, counted: bool) -> tuple[dict[str, Any], int]:
    """What a process that reads from all peers has seen, and its peak of memory in bytes."""
    messages = itertools.cycle(MESSAGES)

    def message(asked: Any) -> Any:
        if asked.method != "Get":
            raise RefusedError(grpc.StatusCode.UNIMPLEMENTED)
        return next(messages)

    with short_folder() as folder, small_group() as group:
        async with contextlib.AsyncExitStack() as stack:

            async def listening(answer: Callable[..., Any], tls: ssl.SSLContext | None = None) -> int:
                server = await stack.enter_async_context(
                    await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
                )
                return int(server.sockets[0].getsockname()[1])

            peers = Peers()
            stack.push_async_callback(peers.close)
            https = await listening(peers.http(), server_context(tmp_path)[0])
            http, database = await listening(peers.http()), await listening(peers.raw(*REDIS))
            await stack.enter_async_context(
                await asyncio.start_unix_server(peers.raw(NAMES, ENDLESS), str(folder / "namespaces"))
            )
            leaf = await stack.enter_async_context(gnmi_switch(message, tmp_path, login=None, plain=True))
            targets = {
                "leaf": {"module": "sonic_gnmi", "address": f"grpc+insecure://127.0.0.1:{leaf.port}"},
                "redis": {"module": "sonic", "address": f"redis://127.0.0.1:{database}"},
                "nxos": {"module": "nxos", "address": f"http://127.0.0.1:{http}"},
                "cumulus": {
                    "module": "cumulus",
                    "address": f"https://127.0.0.1:{https}",
                    "tls": {"insecure_skip_verify": True},
                },
            }
            limits = {"cache": "0s", "timeout": "4s"}
            (tmp_path / "switches.yml").write_text(json.dumps({"targets": targets, "limits": limits}))
            given = {
                "counted": counted,
                "address_space": ADDRESS_SPACE,
                "group": group if counted else "",
                "switches": str(tmp_path / "switches.yml"),
                "kubelet": await stack.enter_async_context(kubelet(folder / "kubelet")),
                "namespaces": str(folder / "namespaces"),
                "prometheus": [f"prometheus+http://127.0.0.1:{http}", f"http://127.0.0.1:{http}/ports"],
            }
            return await asyncio.to_thread(survivor, given, tmp_path)


def survivor(given: dict[str, Any], folder: Path) -> tuple[dict[str, Any], int]:
    """What the process has seen, and its peak of memory in bytes; each scrape meanwhile is answered."""
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, str(READER), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        ) as child,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            address = child.stdout.readline().decode().strip()
            assert address, (folder / "log").read_text()
            while not select.select([child.stdout], [], [], 0)[0]:
                assert child.poll() is None, (folder / "log").read_text()
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=HUNG_SECONDS) as reply:
                    assert b"roce_port_up{" in reply.read()
            assert child.stdout.readline() == b"enough\n", (folder / "log").read_text()
            status = Path(f"/proc/{child.pid}/status").read_text()
            peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
            child.stdin.close()
            said = child.stdout.readline()
            assert psutil.pid_exists(child.pid)
            assert said, (folder / "log").read_text()
            return json.loads(said), peak
        finally:
            child.kill()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found, _ = asyncio.run(against_all(Path(place), counted=False))
    for name, milliseconds in found["steps"].items():
        sys.stdout.write(f"{milliseconds:6.1f} ms {name}\n")
