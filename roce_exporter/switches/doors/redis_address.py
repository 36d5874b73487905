"""The address of one database, apart from the door, which needs redis-py."""

from __future__ import annotations

from typing import NamedTuple


class RedisAddress(NamedTuple):
    """Where one database is."""

    host: str
    """An IP address; empty for a unix socket."""
    port: int
    path: str
    """The path of the unix socket."""
    number: int
    """The number of the database: SELECT."""

    def __str__(self) -> str:
        place = self.path or (f"[{self.host}]" if ":" in self.host else self.host) + f":{self.port}"
        return f"{place} database {self.number}"
