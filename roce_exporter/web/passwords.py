"""Users and passwords (RFC 7617, bcrypt), checked in a separate thread.

The event loop never waits for bcrypt, a flood of wrong passwords never delays one that was already verified, and delays a new one by a check or two.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from functools import partial

from roce_exporter.collect.workers import CallThread, run_in_thread

VERDICTS = 256
BCRYPT_BYTES = 72
"""The part of a password that bcrypt uses; the package refuses longer ones, while the exporter-toolkit ignores the rest."""
WAITING = 64  # checks that wait, of about a tenth of a second each
CHECK_SECONDS = 300.0  # for one check; a hash that takes longer is of no use to anyone


class TooManyChecksError(Exception):
    """So many passwords wait for their check that this one is given up."""


class NewestFirst:
    """One turn at a time, the newest first: clients that ask and leave can only delay each other.

    Beyond `most` that wait, the one that has waited longest gives up.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._is_taken = False
        self._waiting: list[asyncio.Future[None]] = []

    @contextlib.asynccontextmanager
    async def next(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it. Raises TooManyChecksError: newer ones took all places."""
        if self._is_taken:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            if len(self._waiting) > self._most:
                self._waiting.pop(0).set_exception(
                    TooManyChecksError("too many passwords are being checked; try again")
                )
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                elif not turn.cancelled() and turn.exception() is None:
                    self._pass_on()  # the turn came in the same moment
                raise
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        self._is_taken = bool(self._waiting)
        if self._waiting:
            self._waiting.pop().set_result(None)


class Passwords:
    """Verdicts on users and passwords (RFC 7617), cached under a key that only this process has."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        # Two caches, so that no number of wrong passwords can evict a right one.
        self._verdicts: dict[bool, OrderedDict[bytes, None]] = {True: OrderedDict(), False: OrderedDict()}
        self._turns = NewestFirst(WAITING)
        self._thread = CallThread()

    async def match(self, users: Mapping[bytes, bytes], authorization: str | None) -> bool:
        """Whether the Authorization header names one of the users with the right password.

        Raises:
            TimeoutError, RuntimeError: the password could not be checked.
            TooManyChecksError: too many newer ones came before its turn.
        """
        credentials = _credentials(authorization)
        if credentials is None:
            return False
        user, password = credentials
        # Unknown users are checked against a hash as expensive as the most expensive user's: timing must not reveal user names.
        cost = max(hashed[4:6] for hashed in users.values())
        hashed = users.get(user) or b"$2b$" + cost + b"$" + b"." * 53
        parts = b"".join(len(part).to_bytes(8) + part for part in (user, hashed, password))
        seal = hashlib.blake2b(parts, key=self._key, digest_size=32).digest()
        verdict = self._remembered(seal)
        if verdict is None:
            async with self._turns.next():
                verdict = self._remembered(seal)
                if verdict is None:
                    check = partial(_is_right, password, hashed)
                    is_right = await run_in_thread(check, CHECK_SECONDS, self._thread)
                    verdict = is_right and user in users
                    seals = self._verdicts[verdict]
                    seals[seal] = None
                    if len(seals) > VERDICTS:
                        seals.popitem(last=False)
        return verdict

    def close(self) -> None:
        """Stop the thread."""
        self._thread.retire()

    def _remembered(self, seal: bytes) -> bool | None:
        for verdict, seals in self._verdicts.items():
            if seal in seals:
                seals.move_to_end(seal)
                return verdict
        return None


def _is_right(password: bytes, hashed: bytes) -> bool:
    import bcrypt  # noqa: PLC0415 - half a megabyte that only a daemon with passwords needs

    try:
        return bcrypt.checkpw(password[:BCRYPT_BYTES], hashed)
    except ValueError:
        return False


def _credentials(authorization: str | None) -> tuple[bytes, bytes] | None:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (user, password) if colon else None
