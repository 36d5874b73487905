"""rtnetlink and devlink: addresses, routes and rules of a network device, paths, its hardware address; reporters, versions, diagnosis."""

import contextlib
from collections.abc import Iterable

from fuzz_targets.wire import Wire, counts
from roce_exporter.host.kernel.devlink_netlink import DevlinkNetlink
from roce_exporter.host.kernel.ip_netlink import read_ip_facts, read_ip_paths
from roce_exporter.host.kernel.rtnetlink import choose_mac_address, read_link_addresses

ALLOWED = (OSError,)
CORE = ("host/kernel/ip_netlink.py", "host/kernel/devlink_netlink.py", "host/kernel/rtnetlink.py")
INSTANCE = "pci/0000:3b:00.0"


def decode(data: bytes) -> None:
    if not data:
        return
    wire = Wire(data[1:])
    devlink = DevlinkNetlink(lambda _: wire)
    with contextlib.suppress(*ALLOWED):
        match data[0] % 6:
            case 0:
                facts = read_ip_facts("lo", lambda _: wire)
                one_line(rule.input + rule.output for rule in facts.rules)
                assert all(one.seconds is None or one.seconds >= 0 for one in facts.neighbours)
            case 1:
                paths = read_ip_paths([("10.0.0.1", "10.0.0.2"), ("::1", "::2")], lambda _: wire)
                one_line(path.netdev + path.gateway for path in paths)
            case 2:
                one_line([choose_mac_address(read_link_addresses("lo", lambda _: wire), "lo")])
            case 3:
                one_line(reporter.name for reporter in devlink.reporters(INSTANCE))
            case 4:
                one_line(found.component + found.version for found in devlink.versions(INSTANCE))
            case 5:
                counts(dict(devlink.diagnosis(INSTANCE)))


def one_line(texts: Iterable[str]) -> None:
    """Each text can be a label or a part of a message."""
    assert all(len(text.splitlines()) <= 1 for text in texts)
