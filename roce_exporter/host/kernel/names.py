r"""Decode names from the operating system to text, and encode them back. No other module does that.

The kernel accepts nearly any bytes as the name of a network device (dev_valid_name in net/core/dev.c), including invalid
UTF-8. Such a byte becomes `\xNN`, so that every name is valid text for labels, logs and JSON, different names stay
different, and the original bytes can be restored for requests to the kernel. If a name itself contains such an escape, its
backslash is escaped as `\x5c`.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Any

from roce_exporter.host.kernel import Absent

MOST_NAMES = 1024
LONGEST_NETDEV = 15  # IFNAMSIZ of include/uapi/linux/if.h without the terminating NUL
_NO_HOSTNAME = "(none)"
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def keep(kept: dict[Any, Any], name: object, value: object) -> None:
    """Keep a value by a name that comes and goes: beyond `MOST_NAMES` the oldest one is forgotten, which costs time only."""
    if name not in kept and len(kept) >= MOST_NAMES:
        kept.pop(next(iter(kept)), None)
    kept[name] = value


def decode_name(raw: bytes) -> str:
    """The text of a name, up to its NUL if it has one."""
    name = raw.partition(b"\0")[0]
    try:
        text = name.decode()
    except UnicodeDecodeError:
        pass
    else:
        if "\\x" not in text:
            return text
    escaped = re.sub(rb"\\(?=x[0-9a-f]{2})", rb"\\x5c", name)
    return escaped.decode("utf-8", "backslashreplace")


def encode_name(text: str) -> bytes:
    """The bytes of a name, or of a path made of names, from which `decode_name` made this text."""
    if "\\x" not in text:
        return text.encode("utf-8", "surrogateescape")
    pieces = _ESCAPE.split(text)
    plain, escapes = pieces[::2], pieces[1::2]
    found = plain[0].encode("utf-8", "surrogateescape")
    for escape, piece in zip(escapes, plain[1:], strict=True):
        found += bytes.fromhex(escape) + piece.encode("utf-8", "surrogateescape")
    return found


def given_hostname(text: str) -> str:
    """The host's name in a text of the kernel. Absent: it is not set (UTS_NODENAME of include/linux/uts.h)."""
    name = text.strip()
    if name in ("", _NO_HOSTNAME):
        raise Absent(errno.ENOENT, "the host has no name")
    return name


def encode_netdev(name: str) -> bytes:
    """The bytes of a network device's name. OSError: ENODEV, not a valid name of a network device."""
    raw = encode_name(name)
    if not raw or len(raw) > LONGEST_NETDEV or b"\0" in raw:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), name)
    return raw
