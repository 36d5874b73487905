"""DCB netlink: every attribute of IEEE_GET; a recording of it reads the same."""

import contextlib
import json
from dataclasses import replace

from fuzz_targets.wire import Wire
from roce_exporter.host.kernel.dcb_netlink import Dcb, DcbNetlink
from roce_exporter.host.recorded.dcb_text import print_dcb, read_dcb

ALLOWED = (OSError,)
CORE = ("host/kernel/dcb_netlink.py", "host/recorded/dcb_text.py", "host/kernel/netlink.py")
ALGORITHMS = {0, 1, 2, 255}


def decode(data: bytes) -> None:
    if not data:
        return
    wire = Wire(data[1:])
    reader = DcbNetlink(lambda _: wire)
    with contextlib.suppress(*ALLOWED):
        recorded(reader.ieee("eth0"))


def recorded(dcb: Dcb) -> None:
    """A capture prints what was read and reads it back; only what dcb does not print is lost."""
    documents = json.loads(json.dumps(print_dcb(dcb)))
    again = read_dcb(documents, "eth0", "recording")
    assert again.pfc == dcb.pfc
    assert again.peer_pfc == dcb.peer_pfc
    assert again.buffer == dcb.buffer
    if dcb.ets and set(dcb.ets.algorithm) <= ALGORITHMS:
        assert again.ets == dcb.ets
    assert replace(again, app=None, ets=None, dcbx=None) == Dcb(
        pfc=dcb.pfc, buffer=dcb.buffer, peer_pfc=dcb.peer_pfc
    )
