"""The source of the IP side: its names and numbers, what fails alone, and what the kernel's messages become."""

import contextlib
import errno
import json
import os
import socket
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel import Faults, host, tree_of
from netlink_dumps import FakeKernel, refusal
from observed import observe, samples
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from recorded import recording

from roce_exporter.checks.finding import Status
from roce_exporter.checks.settings import Profile, audit
from roce_exporter.exposition import Format
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.ip_netlink import read_ip_facts, read_ip_paths
from roce_exporter.host.kernel.netlink import Malformed, Message, encode_message
from roce_exporter.host.recorded.ip_text import (
    parse_addresses,
    parse_neighbours,
    parse_paths,
    parse_routes,
    parse_rules,
    print_addresses,
    print_neighbours,
    print_path,
    print_route,
    print_rule,
)
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.recorded.recorded_ip import read_recorded_ip
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.host.sources.ip_side import MOST_FAILING, MOST_PREFIXES, decisive, read_ip_side, targets
from roce_exporter.model.ip import IpAddress, IpFacts, IpNeighbour, IpPath, IpRoute, IpRule, NextHop

TWO_RAILS = recording("audit-rails-right")

FACTS = IpFacts(
    (IpAddress("10.0.1.1", 24, "global"), IpAddress("fe80::1", 64, "link")),
    (
        IpNeighbour("10.0.1.254", "failed", 9000.0),
        IpNeighbour("10.0.1.9", "resolved", 5.0),
        IpNeighbour("10.0.1.10", "failed", 5.0),
        IpNeighbour("10.0.1.11", "failed", 601.0),
        IpNeighbour("10.0.1.12", "incomplete", 601.0),
        IpNeighbour("10.0.1.13", "failed", None),
    ),
    (
        IpRoute(254, "10.0.1.0/24", hops=(NextHop("eth0"),)),
        IpRoute(101, "0.0.0.0/0", hops=(NextHop("eth0", "10.0.1.254"),), mtu=1500, advmss=1400),
    ),
    (
        IpRule(0, 4, 255),
        IpRule(101, 4, 101, source="10.0.1.1/32"),
        IpRule(102, 4, 102, source="10.0.1.0/24"),
        IpRule(103, 4, 103, source="10.0.2.0/24"),
        IpRule(104, 4, 104, source="10.0.1.1/32", inverted=True),
    ),
)


BY_ETH0 = IpPath("eth0", mtu=1400)


def read(
    facts: IpFacts | OSError = FACTS, path: IpPath | OSError = BY_ETH0, **files: str | OSError
) -> dict[str, int | str] | None:
    """The IP side of a host with these facts of eth0, whose packets leave by this path."""
    kernel = host({"sys/class/net/eth0/mtu": "9000"})
    Faults(
        kernel,
        ip_facts=facts,
        ip_paths=path if isinstance(path, OSError) else lambda pairs: (path,) * len(pairs),
    ).update({f"../proc/sys/net/ipv4/conf/{name.replace('__', '/')}": text for name, text in files.items()})
    return read_ip_side(kernel, "eth0")


def test_names_and_numbers() -> None:
    """The gateway is not among the failing ones; an entry that failed long ago is of a peer that may be gone."""
    assert read() == {
        "address 10.0.1.1/24 global": 0,
        "address fe80::1/64 link": 0,
        "rule 101 10.0.1.1/32 101": 1,
        "rule 102 10.0.1.0/24 102": 0,
        "limit 0.0.0.0/0": 1440,
        "neighbours resolved": 1,
        "neighbours incomplete": 1,
        "neighbours failed": 4,
        "gateway 10.0.1.254 failed": 1,
        "failing 10.0.1.10 failed": 1,
        "failing 10.0.1.12 incomplete": 1,
        "failing 10.0.1.13 failed": 1,
        "path 10.0.1.1 10.0.1.0/24 eth0 -": 1400,
        "path 10.0.1.1 0.0.0.0/0 eth0 -": 1400,
    }


def test_tables_to_which_no_rule_leads() -> None:
    def unled(*rules: IpRule) -> dict[str, int | str]:
        found = read(replace(FACTS, rules=rules)) or {}
        return {name: value for name, value in found.items() if name.startswith("unled")}

    assert unled(IpRule(0, 4, 255)) == {"unled 101": 1}
    assert unled() == {}, "they were not recorded"
    assert unled(IpRule(0, 6, 255)) == {}, "only those of IPv6 were"
    assert unled(IpRule(0, 4, 255), IpRule(1000, 4, 0, others=("FRA_L3MDEV",))) == {}, "the table of a VRF"


@pytest.mark.parametrize(
    ("facts", "path", "expected"),
    [
        (OSError(errno.EIO, "broken"), BY_ETH0, {"facts": "EIO"}),
        (FACTS, OSError(errno.ENOBUFS, "lost"), {"paths": "ENOBUFS", "neighbours resolved": 1}),
        (replace(FACTS, capped=("route",)), BY_ETH0, {"capped route": 1}),
    ],
)
def test_what_is_broken(facts, path, expected) -> None:
    assert expected.items() <= (read(facts, path) or {}).items()
    assert read(Absent(errno.ENODEV, "no such")) is None


def test_settings_are_read_for_all_and_for_the_network_device() -> None:
    found = read(
        all__rp_filter="0",
        eth0__rp_filter="2",
        all__arp_ignore="?",
        eth0__arp_ignore=OSError(errno.EACCES, ""),
    )
    assert found is not None
    assert {name: value for name, value in found.items() if "_" in name} == {
        "rp_filter.all": 0,
        "rp_filter.own": 2,
        "arp_ignore.all": "garbage",
        "arp_ignore.own": "EACCES",
    }


def test_failing_peers_are_bounded() -> None:
    many = tuple(IpNeighbour(f"10.0.1.{number}", "failed", 1.0) for number in range(200))
    found = read(replace(FACTS, neighbours=many)) or {}
    assert sum(name.startswith("failing ") for name in found) == MOST_FAILING
    assert found["neighbours failed"] == 200


def test_packets_to_a_subnet_go_to_a_known_peer_first() -> None:
    subnet, everywhere = targets(FACTS, "eth0")
    assert (subnet.prefix, subnet.candidates) == ("10.0.1.0/24", ("10.0.1.9", "10.0.1.254", "10.0.1.127"))
    assert everywhere.candidates == ("203.0.113.1",)
    assert targets(FACTS, "eth1") == (subnet,), "the gateway is behind another network device"


@pytest.mark.parametrize(
    ("cidr", "candidates"),
    [
        ("10.0.0.0/31", ("10.0.0.1",)),
        ("10.0.0.1/31", ("10.0.0.0",)),
        ("10.0.0.1/30", ("10.0.0.2",)),
        ("10.0.0.1/32", ()),
        ("2001:db8::1/127", ("2001:db8::",)),
    ],
)
def test_small_subnets(cidr, candidates) -> None:
    address, _, length = cidr.partition("/")
    found = targets(IpFacts((IpAddress(address, int(length), "global"),)), "eth0")
    assert tuple(one for target in found for one in target.candidates) == candidates


def test_the_number_of_prefixes_is_bounded() -> None:
    routes = tuple(
        IpRoute(254, f"10.{number}.0.0/16", hops=(NextHop("eth0", "10.0.1.254"),)) for number in range(100)
    )
    assert len(targets(replace(FACTS, routes=routes), "eth0")) == 1 + MOST_PREFIXES


def test_one_candidate_by_the_network_device_decides() -> None:
    """A more specific route may lead some addresses of a prefix elsewhere on purpose."""
    here, there, open_, none, own = (
        IpPath("eth0"),
        IpPath("eth1"),
        IpPath(unknown=True),
        IpPath(failure="unreachable"),
        IpPath("lo", local=True),
    )
    assert decisive([there, here], "eth0") == here
    assert decisive([none, there], "eth0") == there
    assert decisive([open_, there], "eth0") == there
    assert decisive([own, open_], "eth0") == open_
    assert decisive([own], "eth0") is None


def test_a_path_that_a_hash_chooses_is_unknown() -> None:
    several = IpRoute(254, "10.9.0.0/16", hops=(NextHop("eth0", "10.0.1.254"), NextHop("eth1", "10.0.2.254")))
    found = read(replace(FACTS, routes=(several,)), IpPath("eth1")) or {}
    assert "path 10.0.1.1 10.9.0.0/16 ? -" in found
    assert "path 10.0.1.1 10.0.1.0/24 eth1 -" in found, "the subnet has one route"


# What iproute2 prints (re-typed from its JSON on Linux 6.18; addresses changed).
PRINTED_RULES = [
    {"priority": 0, "src": "all", "table": "local", "protocol": "kernel"},
    {"priority": 98, "src": "all", "fwmark": "0x3", "action": "unreachable"},
    {
        "priority": 99,
        "not": None,
        "src": "10.0.1.0",
        "srclen": 24,
        "dst": "10.7.0.0",
        "dstlen": 16,
        "iif": "lo",
        "oif": "r2",
        "fwmark": "0x1",
        "fwmask": "0xff",
        "table": "102",
        "suppress_prefixlen": 8,
    },
    {"priority": 100, "src": "all", "goto": "102"},
    {"priority": 101, "src": "all", "tos": "0x10", "table": "55"},
    {"priority": 32766, "src": "all", "table": "main"},
]
RULES = (
    IpRule(0, 4, 255),
    IpRule(98, 4, 0, "unreachable", mark=3, mask=0xFFFFFFFF),
    IpRule(
        99,
        4,
        102,
        source="10.0.1.0/24",
        destination="10.7.0.0/16",
        inverted=True,
        input="lo",
        output="r2",
        mark=1,
        mask=0xFF,
        suppress=8,
    ),
    IpRule(100, 4, 0, "goto", target=102),
    IpRule(101, 4, 55, others=("tos",)),
    IpRule(32766, 4, 254),
)
PRINTED_ROUTES = [
    {"dst": "default", "gateway": "10.0.1.254", "dev": "r1", "table": "101", "metric": 100, "flags": []},
    {
        "dst": "10.4.0.0/16",
        "nexthops": [
            {"gateway": "10.0.1.9", "dev": "r1", "weight": 1, "flags": []},
            {"gateway": "10.0.2.9", "dev": "r2", "weight": 1, "flags": ["dead", "linkdown"]},
        ],
        "flags": [],
    },
    {"dst": "10.5.0.0/16", "via": {"family": "inet6", "host": "fe80::1"}, "dev": "r1", "flags": ["linkdown"]},
    {"type": "local", "dst": "10.0.1.1", "dev": "r1", "table": "local", "scope": "host", "flags": []},
    {
        "dst": "10.9.0.0/16",
        "gateway": "10.0.1.254",
        "dev": "r1",
        "flags": [],
        "metrics": [{"mtu": 1400, "advmss": 1000}],
    },
    {},
]
ROUTES = (
    IpRoute(101, "0.0.0.0/0", hops=(NextHop("r1", "10.0.1.254"),), metric=100),
    IpRoute(254, "10.4.0.0/16", hops=(NextHop("r1", "10.0.1.9"), NextHop("r2", "10.0.2.9", usable=False))),
    IpRoute(254, "10.5.0.0/16", hops=(NextHop("r1", "fe80::1"),)),
    IpRoute(255, "10.0.1.1/32", "local", (NextHop("r1"),)),
    IpRoute(254, "10.9.0.0/16", hops=(NextHop("r1", "10.0.1.254"),), mtu=1400, advmss=1000),
)


def test_what_iproute2_prints() -> None:
    assert parse_rules(PRINTED_RULES, 4) == RULES
    assert parse_routes(PRINTED_ROUTES, 4) == ROUTES
    rows = [
        {"dst": "10.0.1.9", "dev": "r1", "updated": 4, "state": ["STALE"]},
        {"dst": "ff02::1", "dev": "r1", "state": ["NOARP"]},
        {"dst": "10.0.1.8", "dev": "r1", "state": ["FAILED"]},
        {"dst": "10.0.1.7", "dev": "r1", "extern_learn": None, "managed": None, "state": ["INCOMPLETE"]},
    ]
    assert parse_neighbours(rows) == {
        "r1": (IpNeighbour("10.0.1.9", "resolved", 4.0), IpNeighbour("10.0.1.8", "failed", None))
    }
    row = {
        "family": "inet6",
        "local": "2001:db8::1",
        "prefixlen": 64,
        "scope": "global",
        "dadfailed": True,
        "tentative": True,
    }
    assert parse_addresses([{"ifname": "r1", "addr_info": [row]}, {}]) == {
        "r1": (IpAddress("2001:db8::1", 64, "global", failed=True),)
    }


def test_what_is_printed_is_parsed_again() -> None:
    def again(rows: object) -> list[object]:
        return json.loads(json.dumps(rows))  # type: ignore[no-any-return]  # a list is printed

    assert parse_rules(again([print_rule(one) for one in RULES]), 4) == RULES
    assert parse_routes(again([print_route(one) for one in ROUTES]), 4) == ROUTES
    addresses = {
        "r1": (
            IpAddress("2001:db8::1", 64, "global", failed=True),
            IpAddress("10.0.0.1", 8, "host", tentative=True),
        )
    }
    assert parse_addresses(again(print_addresses(addresses))) == addresses
    entries = (IpNeighbour("10.0.1.9", "incomplete", 4.0), IpNeighbour("10.0.1.8", "failed", None))
    assert parse_neighbours(again(print_neighbours("r1", entries))) == {"r1": entries}
    for path in (IpPath("r1", "10.0.1.254", 1400), IpPath("lo", local=True), IpPath(failure="unreachable")):
        assert parse_paths(again([print_path("10.0.0.1", "10.9.0.1", path)])) == {
            ("10.0.0.1", "10.9.0.1"): path
        }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ip/address.json", "["),
        ("ip/address.json", "{}x"),
        ("ip/address.json", '[{"ifname": "r1", "addr_info": [{"local": 5}]}]'),
        ("ip/route.json", '[{"dst": "10.0.0.0/8", "metric": "x"}]'),
        ("ip/rule.json", '[{"src": "all"}]'),
        ("ip/neigh.json", '[{"state": ["FAILED"]}]'),
        ("ip/get.json", '[{"dst": "10.0.0.1"}]'),
        ("ip/rule6.json", "7"),
        ("ip/address.json", '[{"ifname": "a b"}]'),
        ("ip/address.json", '[{"ifname": "r1", "addr_info": [{"local": "x", "prefixlen": 24}]}]'),
        ("ip/address.json", '[{"ifname": "r1", "addr_info": [{"local": "10.0.0.1", "prefixlen": 99}]}]'),
        ("ip/route.json", '[{"dst": "10.0.0.0/99", "dev": "r1"}]'),
        ("ip/route6.json", '[{"dst": "default", "dev": "r1", "gateway": "nowhere"}]'),
        ("ip/rule.json", '[{"priority": 1, "src": "some", "table": "main"}]'),
        ("ip/get.json", '[{"dst": "10.0.0.1", "from": "10.0.0.2", "dev": "a b"}]'),
    ],
)
def test_a_malformed_file_is_named(name, text) -> None:
    with pytest.raises(RecordingError, match=name) as refusal:
        read_recorded_ip(tree_of({"ip/address.json": [{"ifname": "r1"}]} | {name: text}), "x")
    assert "\n" not in str(refusal.value)


async def test_a_refusal_makes_the_checks_unreadable_and_the_source_down() -> None:
    kernel = load_recording(TWO_RAILS)
    Faults(kernel)["ip_facts"] = OSError(errno.EPERM, os.strerror(errno.EPERM))
    exporter, (seen,) = await observe(kernel)
    (address,) = {
        one.status
        for one in audit(seen.snapshot.devices, Profile("IP side", addresses=True))
        if one.check == "ip_address"
    }
    assert address == Status.UNKNOWN, "not wrong, and not left out"
    found = samples(exporter.render(seen, Format.TEXT))
    assert found['roce_exporter_source_up{source="addresses",device="mlx5_0",netdev="ens1np0"}'] == "0"
    assert not [name for name in found if name.startswith("roce_neighbours")]


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (refusal(errno.EPERM), errno.EPERM),
        (b"torn", errno.EBADMSG),
        (OSError(errno.EMFILE, ""), errno.EMFILE),
        (encode_message(Message(20, 0, 0, 0, b"short")), errno.EBADMSG),
    ],
)
def test_every_failure_is_one_oserror(answer, number) -> None:
    for kernel, read in (
        (FakeKernel(lambda _: [answer]), lambda kernel: read_ip_facts("lo", kernel)),
        (FakeKernel(lambda _: [answer]), lambda kernel: read_ip_paths([("10.0.0.1", "10.0.0.2")], kernel)),
    ):
        with pytest.raises(OSError) as failure:  # noqa: PT011 - its number is checked
            read(kernel)
        assert failure.value.errno == number
        assert not isinstance(failure.value, Absent)
        assert all(one.closed for one in kernel.sockets)


def test_a_lost_reply_is_said() -> None:
    with pytest.raises(OSError, match="lost a netlink reply"):
        read_ip_facts("lo", FakeKernel(lambda _: []))


@pytest.mark.parametrize(
    ("code", "failure"),
    [(errno.ENETUNREACH, "unreachable"), (errno.EACCES, "prohibited"), (errno.EINVAL, "blackhole")],
)
def test_packets_that_do_not_leave(code, failure) -> None:
    (path,) = read_ip_paths([("10.0.0.1", "10.9.0.1")], FakeKernel(lambda _: [refusal(code)]))
    assert path == IpPath(failure=failure)


LO = socket.if_nametoindex("lo")
CLASSES = {22: ifaddrmsg, 26: rtmsg, 30: ndmsg, 34: fibmsg}
"""pyroute2's messages by the kind of the request: another library writes what is read here."""


def listed(kind: int, *messages: dict[str, Any]) -> bytes:
    """A list of the kernel as pyroute2 encodes it."""
    whole = b""
    for fields in messages:
        message = CLASSES[kind]()
        message["header"]["type"], message["header"]["flags"] = kind - 2, 2
        for name, value in fields.items():
            message[name] = value
        message.encode()
        whole += bytes(message.data)
    return whole


def facts_of(lists: dict[tuple[int, int], bytes]) -> IpFacts:
    """What is read from these lists by kind of the request and family; the others are empty."""
    kernel = FakeKernel(
        lambda request: [lists.get((request.kind, request.payload[0]), b"") + refusal(0, kind=3)]
    )
    return read_ip_facts("lo", kernel)


numbers = st.integers(0, 2**32 - 1)
small = st.integers(0, 255)
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
versions = st.sampled_from((4, 6))


def address(version: int) -> st.SearchStrategy[str]:
    return st.ip_addresses(v=version).map(lambda one: socket.inet_ntop(FAMILIES[version], one.packed))


@given(st.data())
def test_addresses_as_pyroute2_writes_them(data) -> None:
    draw = data.draw
    version = draw(versions)
    length = draw(small)
    scope = draw(st.sampled_from((0, 200, 253, 254, 77)))
    flags = draw(numbers)
    own, far = draw(address(version)), draw(address(version))
    attributes = [("IFA_LOCAL", own), ("IFA_ADDRESS", far)] if draw(st.booleans()) else [("IFA_ADDRESS", own)]
    message = {"family": FAMILIES[version], "prefixlen": length, "flags": flags & 0xFF, "scope": scope}
    whole = {**message, "index": LO, "attrs": [*attributes, ("IFA_FLAGS", flags)]}
    other = {**whole, "index": LO + 1}
    failed = bool(flags & 8)
    names = {0: "global", 200: "site", 253: "link", 254: "host", 77: "77"}
    assert facts_of({(22, FAMILIES[version]): listed(22, whole, other)}).addresses == (
        IpAddress(own, length, names[scope], failed, bool(flags & 0x40) and not failed),
    )


@given(st.data())
def test_neighbours_as_pyroute2_writes_them(data) -> None:
    draw = data.draw
    version = draw(versions)
    updated = draw(st.none() | numbers)
    state = draw(st.sampled_from((0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80)))
    own = draw(address(version))
    times = {"ndm_confirmed": 1, "ndm_used": 2, "ndm_updated": updated, "ndm_refcnt": 3}
    attributes = [("NDA_DST", own), *([] if updated is None else [("NDA_CACHEINFO", times)])]
    learned = draw(st.booleans())
    whole = {
        "family": FAMILIES[version],
        "ifindex": LO,
        "state": state,
        "attrs": attributes,
        "flags": 0x10 * learned,
    }
    word = "" if learned else {1: "incomplete", 0x20: "failed", 0x40: "", 0: ""}.get(state, "resolved")
    assert facts_of(
        {(30, FAMILIES[version]): listed(30, whole, {**whole, "ifindex": LO + 1})}
    ).neighbours == ((IpNeighbour(own, word, None if updated is None else updated / 100),) if word else ())


@given(st.data())
def test_routes_as_pyroute2_writes_them(data) -> None:
    draw = data.draw
    version = draw(versions)
    length = draw(st.integers(0, 32))
    source_length = draw(st.integers(0, 32))
    tos = draw(small)
    kind = draw(st.integers(0, 9))
    table = draw(numbers)
    several = draw(st.booleans())
    to, source, via = (draw(address(version)) for _ in range(3))
    mtu, dead = draw(numbers), draw(st.booleans())
    hop = {"oif": LO, "flags": int(dead), "hops": 0, "attrs": [("RTA_GATEWAY", via)]}
    where = (
        [("RTA_MULTIPATH", [hop, {**hop, "flags": 0}])]
        if several
        else [("RTA_OIF", LO), ("RTA_GATEWAY", via)]
    )
    attributes = [
        *([("RTA_DST", to)] if length else []),
        *([("RTA_SRC", source)] if source_length else []),
        ("RTA_TABLE", table),
        ("RTA_PRIORITY", 7),
        ("RTA_METRICS", {"attrs": [("RTAX_MTU", mtu), ("RTAX_ADVMSS", 9)]}),
        *where,
    ]
    whole = {
        "family": FAMILIES[version],
        "dst_len": length,
        "src_len": source_length,
        "tos": tos,
        "table": 5,
        "type": kind,
        "flags": int(dead),
        "attrs": attributes,
    }
    elsewhere = {**whole, "attrs": [*attributes[:-1], ("RTA_OIF", 2**31 - 1)]}
    cached = {**whole, "flags": 0x200}
    kinds = (
        "0",
        "unicast",
        "local",
        "broadcast",
        "anycast",
        "multicast",
        "blackhole",
        "unreachable",
        "prohibit",
        "throw",
    )
    hops = (NextHop("lo", via, not dead), *([NextHop("lo", via)] if several else []))
    found = facts_of({(26, FAMILIES[version]): listed(26, whole, cached, *([] if several else [elsewhere]))})
    assert found.routes == (
        IpRoute(
            table or 5,
            f"{to}/{length}" if length else {4: "0.0.0.0/0", 6: "::/0"}[version],
            kinds[kind],
            hops,
            7,
            mtu,
            9,
            tos,
            f"{source}/{source_length}" if source_length else "",
        ),
    )


@given(st.data())
def test_rules_as_pyroute2_writes_them(data) -> None:
    draw = data.draw
    version = draw(versions)
    length = draw(small)
    action = draw(small)
    tos = draw(st.sampled_from((0, 0x10)))
    inverted = draw(st.booleans())
    own, to = (draw(st.none() | address(version)) for _ in range(2))
    drawn = {
        name: draw(st.none() | numbers)
        for name in (
            "PRIORITY",
            "TABLE",
            "FWMARK",
            "FWMASK",
            "GOTO",
            "SUPPRESS_PREFIXLEN",
            "SUPPRESS_IFGROUP",
        )
    }
    came = draw(st.none() | st.sampled_from(("eth0", "lo")))
    fields = {"SRC": own, "DST": to, "IIFNAME": came, "PROTOCOL": 2, "L3MDEV": 1, **drawn}
    attributes = [(f"FRA_{name}", value) for name, value in fields.items() if value is not None]
    whole = {
        "family": FAMILIES[version],
        "dst_len": length,
        "src_len": length,
        "tos": tos,
        "table": 9,
        "action": action,
        "flags": 2 * inverted,
        "attrs": attributes,
    }
    words = {1: "lookup", 2: "goto", 3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
    others = ("FRA_L3MDEV", *(["FRA_SUPPRESS_IFGROUP"] if drawn["SUPPRESS_IFGROUP"] is not None else []))
    limit = drawn["SUPPRESS_PREFIXLEN"]
    assert facts_of({(34, FAMILIES[version]): listed(34, whole)}).rules == (
        IpRule(
            drawn["PRIORITY"] or 0,
            version,
            drawn["TABLE"] or 9,
            words.get(action, str(action)),
            f"{own}/{length}" if own else "",
            f"{to}/{length}" if to else "",
            inverted,
            came or "",
            "",
            drawn["FWMARK"] or 0,
            drawn["FWMASK"] or 0,
            drawn["GOTO"] or 0,
            0xFFFFFFFF if limit is None else limit,
            (*others, *(["tos"] if tos else [])),
        ),
    )


@given(st.sampled_from((22, 26, 30, 34)), st.binary(max_size=120))
def test_no_byte_of_a_list_does_more_than_fail(kind, payload) -> None:
    message = encode_message(Message(kind - 2, 2, 0, 0, payload))
    kernel = FakeKernel(lambda request: [(message if request.kind == kind else b"") + refusal(0, kind=3)])
    with contextlib.suppress(Malformed):
        assert isinstance(read_ip_facts("lo", kernel), IpFacts)
    assert all(one.closed for one in kernel.sockets)


def test_no_such_network_device_is_absent() -> None:
    for name in ("nosuch0", "", "a/b", "x" * 16):
        with pytest.raises(Absent):
            read_ip_facts(name)
    assert read_ip_paths([]) == ()
