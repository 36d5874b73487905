"""ethtool netlink: the family's number, then pause, link, FEC, standard counters or a page of a transceiver."""

import contextlib

from fuzz_targets.wire import Wire, counts
from roce_exporter.host.kernel.ethtool_netlink import EthtoolNetlink
from roce_exporter.host.kernel.transceiver import PageAddress

ALLOWED = (OSError,)
CORE = ("host/kernel/ethtool_netlink.py", "host/kernel/netlink.py")


def decode(data: bytes) -> None:
    if not data:
        return
    wire = Wire(data[1:])
    reader = EthtoolNetlink(lambda _: wire)
    with contextlib.suppress(*ALLOWED):
        match data[0] % 5:
            case 0:
                counts(dict(reader.pause("eth0")))
            case 1:
                counts(dict(reader.link("eth0")))
            case 2:
                counts(dict(reader.fec("eth0")))
            case 3:
                counts(reader.standard("eth0"))
            case 4:
                assert len(reader.module_page("eth0", PageAddress(length=4))) == 4
