"""Passwords of switches: read from their files for every round of queries, so that a change counts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiofiles

from roce_exporter.switches.readings import SourceError
from roce_exporter.switches.targets import Login

if TYPE_CHECKING:
    from roce_exporter.switches.targets import BasicAuth

PASSWORD_BYTES = 4096
HIDDEN = "***"


async def read_login(auth: BasicAuth | None) -> Login:
    """The user and the password as they are in the file now; trailing line ends are not part of the password.

    Raises:
        SourceError: the file cannot be read, is empty or too large, or holds more than one line of text.
    """
    if auth is None:
        return Login()
    try:
        async with aiofiles.open(auth.password_file, "rb") as file:
            content = await file.read(PASSWORD_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid path"
        raise SourceError(f"password_file {auth.password_file}: cannot be read: {reason}") from None
    return Login(auth.username, _password(content, auth))


def _password(content: bytes, auth: BasicAuth) -> str:
    try:
        text = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        text = ""
    if not text or len(content) > PASSWORD_BYTES or not text.isprintable():
        raise SourceError(
            f"password_file {auth.password_file}: is not a password; write it as one line of at most {PASSWORD_BYTES} bytes"
        )
    return text


def hide(text: str, login: Login) -> str:
    """The text without the password, for pages and logs. Doors never put it there; this is the second line of defence."""
    return text.replace(login.password, HIDDEN) if login.password else text
