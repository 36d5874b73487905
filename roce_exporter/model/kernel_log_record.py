r"""One record of the kernel log, in the form of Documentation/ABI/testing/dev-kmsg.

    PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT
     SUBSYSTEM=pci
     DEVICE=+pci:0000:3b:00.0

Bytes outside printable ASCII, and the backslash, are written as `\xNN`. The priority holds the facility in its upper bits. Only the
kernel itself writes with facility 0: /dev/kmsg changes the facility 0 of a write to 1 (`devkmsg_write` in kernel/printk/printk.c), so no
process can forge a record of the kernel.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_BYTES = 8192
"""PRINTK_MESSAGE_MAX (CONSOLE_EXT_LOG_MAX before Linux 6.4): no record is longer; a read with less space fails with EINVAL."""

MOST_TEXT = 1024
"""Characters of a text that are kept. `dev_printk` cuts texts at about this length, too."""

_HEAD = re.compile(rb"([0-9]{1,10}),([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,256};")

_DEVICE = b"\n DEVICE="

_FACILITY_SHIFT = 3


class LogRecord(NamedTuple):
    """One message of the kernel."""

    sequence: int
    """Increases by one from record to record."""
    text: str
    """The first line, at most `MOST_TEXT` characters, still with the escapes of the kernel."""
    device: str
    """The device of its tag `DEVICE=`, without the subsystem: `0000:3b:00.0`; empty without such a tag."""


def decode_record(raw: bytes) -> LogRecord | None:
    """The record; without a text if it is not from the kernel. None if this is not a record at all."""
    head = _HEAD.match(raw)
    if head is None:
        return None
    sequence = int(head[2])
    if int(head[1]) >> _FACILITY_SHIFT:
        return LogRecord(sequence, "", "")
    end = raw.find(b"\n", head.end())
    line = raw[head.end() :] if end < 0 else raw[head.end() : end]
    return LogRecord(sequence, line[:MOST_TEXT].decode("ascii", "replace"), _device(raw))


def _device(raw: bytes) -> str:
    found = raw.find(_DEVICE)
    if found < 0:
        return ""
    tag = raw[found + len(_DEVICE) :][:256].partition(b"\n")[0].decode("ascii", "replace")
    # `+pci:0000:3b:00.0`; other forms are numbers of device nodes and of network interfaces
    return tag.partition(":")[2] if tag.startswith("+") else ""
