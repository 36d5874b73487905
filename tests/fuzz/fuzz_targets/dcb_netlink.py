"""DCB netlink: every attribute of IEEE_GET; a recording of it reads the same."""

import contextlib
import json

from fuzz_targets.wire import Wire
from roce_exporter.host.kernel.dcb_netlink import Dcb, DcbNetlink
from roce_exporter.host.recorded.dcb_text import KINDS, read_dcb

ALLOWED = (OSError,)
CORE = ("host/kernel/dcb_netlink.py", "host/recorded/dcb_text.py", "host/kernel/netlink.py")


def decode(data: bytes) -> None:
    if not data:
        return
    wire = Wire(data[1:])
    reader = DcbNetlink(lambda _: wire)
    with contextlib.suppress(*ALLOWED):
        recorded(reader.ieee("eth0"))


def recorded(dcb: Dcb) -> None:
    """A capture writes what was read, and a recording of it reads the same."""
    captured = {kind: dcb[kind] for kind in KINDS if kind in dcb}
    assert read_dcb(json.loads(json.dumps(captured)), "eth0", "recording") == captured
