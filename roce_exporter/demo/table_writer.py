"""Writes the tables of the simulated switch into the demo's own Redis server: the only place of the package that writes to Redis.

It gets the socket of a server that the demo has started, never an address.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from roce_exporter.host.simulated.simulated_switch import DATABASE_NUMBERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from roce_exporter.host.simulated.simulated_switch import Databases

WRITE_SECONDS = 2.0
"""Timeout of one request."""


class TablesNotWrittenError(Exception):
    """The Redis server does not answer: one line."""


class TableWriter:
    """Keeps the tables of a switch up to date."""

    def __init__(self, clients: dict[str, redis.asyncio.Redis]) -> None:
        self._clients = clients
        self._written: Databases = {}

    async def write(self, databases: Databases) -> None:
        """Replace what has changed since the last call; each database in one transaction, so no reader sees a mixture.

        Raises:
            TablesNotWrittenError: the server does not answer.
        """
        try:
            for name, tables in databases.items():
                await self._write(name, tables)
        except (redis.RedisError, OSError) as error:
            raise TablesNotWrittenError(f"the tables of the switch cannot be written: {error}") from error
        self._written = databases

    async def _write(self, name: str, tables: Mapping[str, Mapping[Any, Any]]) -> None:
        before = self._written.get(name, {})
        changed = {key: fields for key, fields in tables.items() if before.get(key) != fields}
        gone = [*(before.keys() - tables.keys()), *changed]
        if not gone:
            return
        async with self._clients[name].pipeline(transaction=True) as pipeline:
            pipeline.delete(*gone)
            for key, fields in changed.items():
                pipeline.hset(key, mapping=fields)
            await pipeline.execute()


@contextlib.asynccontextmanager
async def table_writer(socket: Path) -> AsyncIterator[TableWriter]:
    """A writer to the Redis server at this unix socket; it connects with the first call."""
    never = Retry(NoBackoff(), 0)
    async with contextlib.AsyncExitStack() as stack:
        clients = {
            name: redis.asyncio.Redis(
                unix_socket_path=str(socket),
                db=number,
                retry=never,
                socket_timeout=WRITE_SECONDS,
                socket_connect_timeout=WRITE_SECONDS,
            )
            for name, number in DATABASE_NUMBERS.items()
        }
        for client in clients.values():
            stack.push_async_callback(client.aclose)
        yield TableWriter(clients)
