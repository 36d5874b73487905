"""Record the kernel log: the messages about RDMA devices that the table knows, and no others.

Addresses and the host's name are replaced in them; names of devices and PCI addresses stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded.log_moments import PATH, print_records
from roce_exporter.model import decode_record
from roce_exporter.normalise.log_lines import event_of, read_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.host.kernel.kmsg import KernelLog
    from roce_exporter.host.recorded.scrub import Scrubber

PART = 1024
MOST_PARTS = 256
"""Parts of a log that are read; the largest buffers hold as many messages."""
MOST_KEPT = 1000
"""Messages that are kept, the newest."""


def kernel_log(kernel: Kernel, scrub: Scrubber) -> dict[str, str]:
    """The file of the log, scrubbed; no file where the host has no log, an empty one where no message matches.

    Raises:
        OSError: the log cannot be read.
    """
    try:
        log = kernel.open_kernel_log(oldest=True)
    except Absent:
        return {}
    try:
        kept = [raw for raw in _records(log) if _is_known(raw)]
    finally:
        log.close()
    return {PATH: _scrubbed(kernel, print_records(kept[-MOST_KEPT:]), scrub)}


def _records(log: KernelLog) -> Iterator[bytes]:
    for _ in range(MOST_PARTS):
        records = log.read(PART).records
        yield from records
        if not records:
            return


def _is_known(raw: bytes) -> bool:
    record = decode_record(raw)
    line = read_line(record) if record else None
    return line is not None and event_of(line) != ""


def _scrubbed(kernel: Kernel, text: str, scrub: Scrubber) -> str:
    try:
        name = kernel.hostname()
    except OSError:
        name = ""
    scrubbed = scrub.text(text)
    return scrubbed.replace(name, scrub.hostname(name)) if name in scrubbed and name else scrubbed
