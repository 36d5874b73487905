"""Users and passwords (RFC 7617, bcrypt), checked in a separate thread.

The event loop never waits for bcrypt, and a flood of wrong passwords never delays one that was already verified.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

import bcrypt

from roce_exporter.collect.workers import CallThread, run_in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

VERDICTS = 256
BCRYPT_BYTES = 72
"""The part of a password that bcrypt uses; the package refuses longer ones, while the exporter-toolkit ignores the rest."""
CHECK_SECONDS = 300.0
"""For one check; a hash that takes longer is of no use to anyone."""


class Passwords:
    """Verdicts on users and passwords (RFC 7617), cached under a key that only this process has."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        # Two caches, so that no number of wrong passwords can evict a right one.
        self._verdicts: dict[bool, OrderedDict[bytes, None]] = {True: OrderedDict(), False: OrderedDict()}
        self._turn = asyncio.Lock()
        self._thread = CallThread()

    async def match(self, users: Mapping[bytes, bytes], authorization: str | None) -> bool:
        """Whether the Authorization header names one of the users with the right password.

        Raises:
            TimeoutError, RuntimeError: the password could not be checked.
        """
        credentials = _credentials(authorization)
        if credentials is None:
            return False
        user, password = credentials
        hashed = users.get(user) or _decoy(users)
        seal = self._seal(user, hashed, password)
        verdict = self._remembered(seal)
        if verdict is None:
            async with self._turn:
                verdict = self._remembered(seal)
                if verdict is None:
                    check = partial(_is_right, password, hashed)
                    is_right = await run_in_thread(check, CHECK_SECONDS, self._thread)
                    verdict = is_right and user in users
                    self._remember(seal, verdict)
        return verdict

    def close(self) -> None:
        """Stop the thread."""
        self._thread.retire()

    def _seal(self, *parts: bytes) -> bytes:
        digest = hashlib.blake2b(key=self._key, digest_size=32)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    def _remembered(self, seal: bytes) -> bool | None:
        for verdict, seals in self._verdicts.items():
            if seal in seals:
                seals.move_to_end(seal)
                return verdict
        return None

    def _remember(self, seal: bytes, verdict: bool) -> None:
        seals = self._verdicts[verdict]
        seals[seal] = None
        if len(seals) > VERDICTS:
            seals.popitem(last=False)


def _is_right(password: bytes, hashed: bytes) -> bool:
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


def _decoy(users: Mapping[bytes, bytes]) -> bytes:
    """A hash to check unknown users against, as expensive as the most expensive user's: timing must not reveal user names."""
    cost = max(hashed[4:6] for hashed in users.values())
    return b"$2b$" + cost + b"$" + b"." * 53
