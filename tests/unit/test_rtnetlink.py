"""RTM_GETLINK: what becomes of the kernel's replies and errors, and whether pyroute2 reads the same. tests/e2e has the real kernel."""

import contextlib
import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import FakeKernel, refusal
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import (
    Malformed,
    Message,
    decode_values,
    encode_attribute,
    encode_message,
)
from roce_exporter.host.kernel.rtnetlink import LinkAddresses, decode_link_addresses, read_link_addresses

RTM_NEWLINK = 16
IFLA_ADDRESS, IFLA_IFNAME, IFLA_LINKINFO, IFLA_PERM_ADDRESS = 1, 3, 18, 54
IFLA_INFO_SLAVE_KIND, IFLA_INFO_SLAVE_DATA = 4, 5
IFLA_BOND_SLAVE_PERM_HWADDR = 4
"""The numbers of include/uapi/linux/if_link.h and rtnetlink.h."""

OWN, BEFORE, CURRENT = (
    bytes.fromhex("02005e0000fa"),
    bytes.fromhex("02005e0000fb"),
    bytes.fromhex("02005e0000fc"),
)


def link(*attributes: bytes) -> bytes:
    """A reply of the kernel to RTM_GETLINK (constructed from the headers)."""
    header = struct.pack("=BxHiII", 0, 1, 7, 0x1043, 0)
    payload = header + encode_attribute(IFLA_IFNAME, b"eth0\0") + b"".join(attributes)
    return encode_message(Message(RTM_NEWLINK, 0, 1, 0, payload))


def slave(kind: bytes, *data: bytes) -> bytes:
    return encode_attribute(
        IFLA_LINKINFO,
        encode_attribute(IFLA_INFO_SLAVE_KIND, kind + b"\0")
        + (encode_attribute(IFLA_INFO_SLAVE_DATA, b"".join(data)) if data else b""),
    )


PERMANENT = encode_attribute(IFLA_PERM_ADDRESS, OWN)
ADDRESS = encode_attribute(IFLA_ADDRESS, CURRENT)
BONDED = slave(b"bond", encode_attribute(IFLA_BOND_SLAVE_PERM_HWADDR, BEFORE))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ((ADDRESS, PERMANENT), LinkAddresses(OWN.hex(":"), "", CURRENT.hex(":"), borrowed=False)),
        ((ADDRESS,), LinkAddresses("", "", CURRENT.hex(":"), borrowed=False)),
        ((ADDRESS, BONDED), LinkAddresses("", BEFORE.hex(":"), CURRENT.hex(":"), borrowed=True)),
        ((ADDRESS, slave(b"team")), LinkAddresses("", "", CURRENT.hex(":"), borrowed=True)),
        ((ADDRESS, slave(b"bridge")), LinkAddresses("", "", CURRENT.hex(":"), borrowed=False)),
        ((ADDRESS, slave(b"vrf")), LinkAddresses("", "", CURRENT.hex(":"), borrowed=False)),
        ((), LinkAddresses("", "", "", borrowed=False)),
    ],
)
def test_the_addresses_of_a_link(attributes, expected) -> None:
    kernel = FakeKernel(lambda _: [link(*attributes)])
    assert read_link_addresses(r"x\xff", kernel) == expected
    (request,) = kernel.asked
    assert (request.kind, decode_values(request.payload, 16)) == (18, {IFLA_IFNAME: b"x\xff\0"})
    assert [(one.family, one.closed) for one in kernel.sockets] == [(0, True)]


addresses = st.none() | st.binary(min_size=6, max_size=6)


@given(addresses, addresses, addresses, st.sampled_from(("", "bond", "team", "bridge", "vrf")))
def test_pyroute2_reads_the_same(permanent, current, before, kind) -> None:
    attributes = [(IFLA_PERM_ADDRESS, permanent), (IFLA_ADDRESS, current)]
    parts = [encode_attribute(number, value) for number, value in attributes if value is not None]
    data = [] if before is None else [encode_attribute(IFLA_BOND_SLAVE_PERM_HWADDR, before)]
    whole = link(*parts, *([slave(kind.encode(), *data)] if kind else []))
    message = ifinfmsg(whole)
    message.decode()
    assert decode_link_addresses(whole[16:]) == LinkAddresses(
        message.get_attr("IFLA_PERM_ADDRESS") or "",
        message.get_nested("IFLA_LINKINFO", "IFLA_INFO_SLAVE_DATA", "IFLA_BOND_SLAVE_PERM_HWADDR") or "",
        message.get_attr("IFLA_ADDRESS") or "",
        message.get_nested("IFLA_LINKINFO", "IFLA_INFO_SLAVE_KIND") in ("bond", "team"),
    )


@pytest.mark.parametrize(
    ("answer", "number", "absent"),
    [
        (refusal(errno.ENODEV), errno.ENODEV, True),
        (refusal(errno.EPERM), errno.EPERM, False),
        (refusal(errno.ENOBUFS), errno.ENOBUFS, False),
        (link()[:-1], errno.EBADMSG, False),
        (encode_message(Message(RTM_NEWLINK, 0, 1, 0, bytes(15))), errno.EBADMSG, False),
        (refusal(0), errno.EBADMSG, False),
        (OSError(errno.EMFILE, "Too many open files"), errno.EMFILE, False),
    ],
)
def test_every_error_has_its_errno_and_leaves_no_socket(answer, number, absent) -> None:
    kernel = FakeKernel(lambda _: [answer])
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is checked
        read_link_addresses("eth0", kernel)
    assert (caught.value.errno, isinstance(caught.value, Absent)) == (number, absent)
    assert caught.value.filename == ("eth0" if answer == refusal(number) else None)
    assert all(one.closed for one in kernel.sockets)


@given(st.binary(max_size=80))
def test_no_reply_does_more_than_fail(payload) -> None:
    with contextlib.suppress(Malformed):
        decode_link_addresses(payload)


def test_a_name_that_no_device_can_have_is_not_sent() -> None:
    kernel = FakeKernel(lambda _: [])
    with pytest.raises(OSError, match="No such device"):
        read_link_addresses("a-name-of-more-than-15-bytes", kernel)
    assert kernel.asked == []
