"""A web server of a switch for tests: it answers as a function says, over TLS of its own authority, and can misbehave."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11
import trustme
from waiting import HUNG_SECONDS

from roce_exporter.net.login import Credentials, Login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.readings import ProbeRequest
from roce_exporter.switches.targets import Route, SwitchTarget

NAME = "switch.example.com"
LOGIN = Login("reader", "hunter2-very-secret")


@dataclass(frozen=True)
class Asked:
    """One request that the server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Says:
    """One reply. With `raw` these bytes are sent instead of a well-formed reply; then the connection is closed, or kept open."""

    body: bytes = b"{}"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    raw: bytes | None = None
    hang: bool = False
    trickle: bool = False
    """Send the first byte of `raw` again and again, until the client disconnects."""
    close: bool = False


def says(document: Any, **more: Any) -> Says:
    return Says(json.dumps(document).encode(), **more)


@dataclass
class HttpsSwitch:
    port: int
    ca_file: Path
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    open: int = 0
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """No connection is open any more."""

    def visit(self, module: str = "nxos", *, seconds: float = HUNG_SECONDS, **options: Any) -> ProbeRequest:
        """A visit to this switch; options: scheme, login, tls, record, name, server_name, links, priorities."""
        scheme = options.get("scheme", "https")
        target = SwitchTarget(
            name=options.get("name", "spine1"),
            module=module,
            scheme=scheme,
            host=NAME,
            ports={"https": self.port, "http": self.port},
            basic_auth=Credentials("reader", Path("password")),
            tls=options.get("tls", TlsFiles(ca_file=self.ca_file)),
            priorities=options.get("priorities", "pfc"),
        )
        return ProbeRequest(
            target=target,
            route=Route("127.0.0.1", options.get("server_name", NAME)),
            login=options.get("login", LOGIN),
            deadline=asyncio.get_running_loop().time() + seconds,
            record=options.get("record", False),
        )


def server_context(folder: Path, *names: str, **options: Any) -> tuple[ssl.SSLContext, Path]:
    """The context of a server, and the file of the authority that signed its certificate."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*(names or (NAME,)), **options).configure_cert(context)
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return context, path


@asynccontextmanager
async def https_switch(
    answer: Callable[[Asked], Says],
    folder: Path,
    *,
    context: ssl.SSLContext | None = None,
    plain: bool = False,
) -> AsyncIterator[HttpsSwitch]:
    """Serve until the block is left; `answer` gets each request."""
    own, ca_file = server_context(folder)
    switch = HttpsSwitch(0, ca_file)
    switch.quiet.set()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        switch.connections += 1
        switch.open += 1
        switch.quiet.clear()
        switch.most_at_once = max(switch.most_at_once, switch.open)
        try:
            await converse(reader, writer, answer, switch.asked)
        except (OSError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # the client or the test has ended
        finally:
            switch.open -= 1
            if not switch.open:
                switch.quiet.set()
            tasks.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(
        serve,
        "127.0.0.1",
        0,
        ssl=None if plain else context or own,
        **({} if plain else {"ssl_handshake_timeout": 5}),
    )
    switch.port = server.sockets[0].getsockname()[1]
    try:
        yield switch
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


async def converse(reader: Any, writer: Any, answer: Callable[[Asked], Says], asked: list[Asked]) -> None:
    parser = h11.Connection(h11.SERVER)
    while request := await received(parser, reader, writer):
        asked.append(request)
        reply = answer(request)
        if reply.raw is not None:
            writer.write(reply.raw)
            await writer.drain()
            while reply.trickle:
                await asyncio.sleep(0.001)
                writer.write(reply.raw[:1])
                await writer.drain()
            if reply.hang:
                await reader.read()
            writer.close()
            await writer.wait_closed()
            return
        extra = (("Connection", "close"),) if reply.close else ()
        headers = [*reply.headers, ("Content-Length", str(len(reply.body))), *extra]
        writer.write(parser.send(h11.Response(status_code=reply.status, headers=headers)))
        writer.write(parser.send(h11.Data(data=reply.body)))
        writer.write(parser.send(h11.EndOfMessage()))
        await writer.drain()
        if parser.our_state is not h11.DONE:
            writer.close()
            return
        parser.start_next_cycle()


async def received(parser: h11.Connection, reader: Any, writer: Any) -> Asked | None:
    head, body = None, b""
    while True:
        try:
            event = parser.next_event()
        except h11.RemoteProtocolError:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            await reader.read()
            return None
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and head:
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Asked(head.method.decode(), head.target.decode(), headers, body)
        else:
            return None
