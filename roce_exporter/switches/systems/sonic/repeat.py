"""Read the values of a whole round of queries to a SONiC again, by prepared bytes.

A whole round derives the names of objects, settings and neighbours, and reads them. As long as these do not change, the next rounds
send the same commands for the numbers, and take them out of the replies by position. Names, states and settings are read again as well,
and only compared: the replies as bytes, by a digest. Where anything differs, is absent or is not the number that it was, a whole
round follows.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from roce_exporter.net import NetError, ReplyBudget
from roce_exporter.normalise.series import Value
from roce_exporter.switches.interpretation import first_positions, flat_values
from roce_exporter.switches.readings import Origin, ProbeRequest, RawNumber, SwitchReadings, Unreadable
from roce_exporter.switches.systems.sonic.keys import RATES, SENSORS
from roce_exporter.switches.systems.sonic.read import CONVERSIONS, SURE_DIGITS
from roce_exporter.switches.systems.sonic.redis_client import (
    SLICE,
    Command,
    Hash,
    RedisAddress,
    Tls,
    open_database,
    packed,
    round_budget,
)
from roce_exporter.switches.systems.sonic.tables import RATE_FIELDS, SENSOR_FIELDS

SLOW_SECONDS = 60.0
"""Between two readings of what people change, and of what xcvrd renews once a minute."""
WHOLE_SECONDS = 600.0
"""After this time a whole round finds values of objects that had none. Rows that appear or disappear are among what is compared."""
FAST_TABLES = ("COUNTERS_", "PORT_TABLE:", "PORT_OPERR_TABLE|")
"""Beginnings of keys that are compared in each round: names of objects, states and faults of ports."""
SOME_FIELDS = {RATES: RATE_FIELDS, SENSORS: SENSOR_FIELDS}
"""Readings that hold fields of other tables, too."""
OK = b"+OK\r\n"

Seen = dict["RedisAddress", list[tuple["Command", "Hash"]]]
"""The commands of a whole round and what they read, by database."""


class HashFields(NamedTuple):
    """Hashes of which the same fields are read: at most one slice of commands."""

    start: bytes
    """Each command up to its key."""
    keys: bytes
    """Separated by a byte that no key has, and compressed to a quarter."""
    end: bytes
    """What follows the key in each command."""
    select: bytes
    header: bytes
    """The first line of the reply to each command."""
    fields: tuple[str, ...]
    positions: array[int]
    """Among the values of all readings, field by field."""

    def sent(self) -> bytes:
        """All commands."""
        return b"%b%b%b%b%b" % (
            self.select,
            self.start,
            (self.end + self.start).join(zlib.decompress(self.keys).split(b"\0")),
            self.end,
            self.select,
        )

    def values(self, reply: bytes) -> Iterator[Sequence[Value]] | None:
        """The values field by field; None if the reply is not that of these commands with a text for each field."""
        lines = reply.split(b"\r\n")
        step = 1 + 2 * len(self.fields)
        count = len(self.positions) // len(self.fields)
        # OK of the first SELECT, the hashes, OK of the last one, and what is behind the last end of a line.
        if len(lines) != count * step + 3 or lines[1:-2:step].count(self.header) != count:
            return None
        return (
            numbers_of(lines[3 + 2 * place : -2 : step], CONVERSIONS.get(name))
            for place, name in enumerate(self.fields)
        )


def numbers_of(texts: Sequence[bytes], convert: Callable[[str], RawNumber] | None) -> Sequence[Value]:
    """The numbers in texts.

    Raises:
        ValueError: one of them is no number.
    """
    if convert is None:
        if not b"".join(texts).isdigit() or max(map(len, texts)) >= SURE_DIGITS:
            raise ValueError("not a number that is certainly below 2^64")
        return [*map(int, texts)]
    known: dict[bytes, Value] = {}
    for text in {*texts}:
        value = convert(text.decode("utf-8", "replace"))
        if isinstance(value, Unreadable):
            raise ValueError(value.reason)  # noqa: TRY004 - it is the switch's value
        known[text] = value
    return [known[text] for text in texts]


class Compared(NamedTuple):
    """Commands whose replies have to be those of the whole round."""

    slices: tuple[bytes, ...]
    """Compressed to a tenth."""
    digest: bytes


@dataclass(slots=True)
class Database:
    """What is read again in one database."""

    address: RedisAddress
    fast: Compared
    slow: Compared
    columns: list[HashFields] = field(default_factory=list)
    """Of each round."""
    slow_columns: list[HashFields] = field(default_factory=list)


@dataclass(slots=True)
class SonicRepeat:
    """The same as the whole round that ended at `begun`, by the monotonic clock."""

    databases: tuple[Database, ...]
    tls: Tls | None
    values: list[Value]
    begun: float
    slow_due: float

    async def read(self, probe: ProbeRequest) -> list[Value] | None:
        """As `Repeat`."""
        now = time.monotonic()
        if now - self.begun > WHOLE_SECONDS:
            return None
        slow = now >= self.slow_due
        values = self.values.copy()
        servers: dict[tuple[str, int, str], list[Database]] = {}
        for one in self.databases:
            servers.setdefault(one.address[:3], []).append(one)
        budget = round_budget()
        try:
            async with asyncio.timeout_at(probe.deadline), asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._server(probe, parts, values, budget, slow=slow))
                    for parts in servers.values()
                ]
        except TimeoutError:
            return None
        if not all(task.result() for task in tasks):
            return None
        self.values = values
        if slow:
            self.slow_due = now + SLOW_SECONDS
        return values

    async def _server(
        self,
        probe: ProbeRequest,
        parts: Sequence[Database],
        values: list[Value],
        budget: ReplyBudget,
        *,
        slow: bool,
    ) -> bool:
        """Read the databases of one server on one connection; whether all is as it was."""
        try:
            opened = open_database(
                parts[0].address,
                probe.login,
                self.tls,
                gate=probe.gate,
                deadline=probe.deadline,
                budget=budget,
            )
            async with opened as connection:
                for part in parts:
                    for compared in (part.fast, part.slow) if slow else (part.fast,):
                        found = hashlib.blake2b(digest_size=16)
                        for one in compared.slices:
                            found.update(await connection.raw(zlib.decompress(one), OK))
                        if found.digest() != compared.digest:
                            return False
                    for columns in (*part.columns, *part.slow_columns) if slow else part.columns:
                        numbers = columns.values(await connection.raw(columns.sent(), OK))
                        if numbers is None:
                            return False
                        places = iter(columns.positions)
                        for texts in numbers:
                            for place, value in zip(islice(places, len(texts)), texts, strict=True):
                                values[place] = value
        except (NetError, ValueError):
            return False
        return True


def repeat_of(
    readings: SwitchReadings, seen: Seen, keys: Mapping[Origin, tuple[RedisAddress, str]], tls: Tls | None
) -> SonicRepeat:
    """What reads the values of these readings again. `keys` has the database and the key of each object by its origin."""
    databases: dict[RedisAddress, Database] = {}
    for address, commands in seen.items():
        compared = [one for one in commands if not one[0][1].startswith(SENSORS)]
        fast = [one for one in compared if one[0][1].startswith(FAST_TABLES)]
        slow = [one for one in compared if not one[0][1].startswith(FAST_TABLES)]
        databases[address] = Database(address, _compared(address, fast), _compared(address, slow))
    alike: dict[tuple[RedisAddress, bool, tuple[str, ...]], list[tuple[str, list[int]]]] = {}
    for start, reading in zip(first_positions(readings), readings.readings, strict=False):
        if reading.origin is None or reading.origin not in keys:
            continue
        address, key = keys[reading.origin]
        some = SOME_FIELDS.get(reading.origin[1], tuple(reading.values))
        found = {
            name: start + position
            for position, (name, value) in enumerate(reading.values.items())
            if name in some and not isinstance(value, Unreadable)
        }
        if found and "\0" not in key:  # a name of a hostile switch could otherwise end a command
            group = alike.setdefault((address, reading.origin[1] == SENSORS, tuple(found)), [])
            group.append((key, [*found.values()]))
    for (address, is_slow, fields), objects in alike.items():
        columns = databases[address].slow_columns if is_slow else databases[address].columns
        for first in range(0, len(objects), SLICE):
            columns.append(_columns(address, fields, objects[first : first + SLICE]))
    now = time.monotonic()
    return SonicRepeat(tuple(databases.values()), tls, flat_values(readings), now, now + SLOW_SECONDS)


def _columns(
    address: RedisAddress, fields: tuple[str, ...], objects: Sequence[tuple[str, list[int]]]
) -> HashFields:
    # One command with an empty key shows what is before and behind it.
    start, end = packed([("HMGET", "", *fields)]).split(b"$0\r\n\r\n", 1)
    return HashFields(
        start,
        zlib.compress(
            b"\0".join([b"$%d\r\n%b\r\n" % (len(key.encode()), key.encode()) for key, _ in objects]), 1
        ),
        end,
        packed([("SELECT", str(address.number))]),
        b"*%d" % len(fields),
        fields,
        array("I", [places[place] for place in range(len(fields)) for _, places in objects]),
    )


def _compared(address: RedisAddress, commands: Sequence[tuple[Command, Hash]]) -> Compared:
    slices, digest = [], hashlib.blake2b(digest_size=16)
    for first in range(0, len(commands), SLICE):
        part = commands[first : first + SLICE]
        # Between two SELECT: one chooses the database, the reply to the other one is the end.
        select = ("SELECT", str(address.number))
        slices.append(zlib.compress(packed((select, *(command for command, _ in part), select)), 1))
        digest.update(OK + b"".join(_reply(command, found) for command, found in part) + OK)
    return Compared(tuple(slices), digest.digest())


def _reply(command: Command, found: Hash) -> bytes:
    """The reply of Redis that has these values."""
    whole = command[0] == "HGETALL"
    texts = [text for pair in found.items() for text in pair] if whole else map(found.get, command[2:])
    lines = [
        b"$-1\r\n" if text is None else b"$%d\r\n%b\r\n" % (len(text.encode()), text.encode())
        for text in texts
    ]
    return b"*%d\r\n%b" % (len(lines), b"".join(lines))
