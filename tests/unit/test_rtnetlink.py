"""rtnetlink through pyroute2: what becomes of the kernel's replies and errors. tests/e2e has the real kernel."""

import builtins
import errno
import struct
import sys
from collections.abc import Callable
from typing import Any, Self

import pytest
from pyroute2.netlink.exceptions import NetlinkDecodeError, NetlinkDumpInterrupted, NetlinkError
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import Message, encode_attribute, encode_message
from roce_exporter.host.kernel.pyroute import open_route
from roce_exporter.host.kernel.rtnetlink import LinkAddresses, read_link_addresses

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


def link(*attributes: bytes) -> ifinfmsg:
    """A reply of the kernel to RTM_GETLINK (constructed from the headers), as pyroute2 decodes it."""
    header = struct.pack("=BxHiII", 0, 1, 7, 0x1043, 0)
    payload = header + encode_attribute(IFLA_IFNAME, b"eth0\0") + b"".join(attributes)
    message = ifinfmsg(encode_message(Message(RTM_NEWLINK, 0, 1, 0, payload)))
    message.decode()
    return message


def slave(kind: bytes, *data: bytes) -> bytes:
    return encode_attribute(
        IFLA_LINKINFO,
        encode_attribute(IFLA_INFO_SLAVE_KIND, kind + b"\0")
        + (encode_attribute(IFLA_INFO_SLAVE_DATA, b"".join(data)) if data else b""),
    )


class Route:
    """A socket of pyroute2 that returns these messages, or raises."""

    def __init__(self, answer: Callable[[bytes], list[Any]]) -> None:
        self.answer = answer
        self.closed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed += 1

    def link(self, command: str, *, ifname: bytes) -> list[Any]:
        assert command == "get"
        return self.answer(ifname)


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
def test_the_addresses_of_a_link(attributes: tuple[bytes, ...], expected: LinkAddresses) -> None:
    sent: list[bytes] = []
    route = Route(lambda ifname: sent.append(ifname) or [link(*attributes)])
    assert read_link_addresses(r"x\xff", lambda: route) == expected
    assert (sent, route.closed) == ([b"x\xff"], 1), "a name is sent with its own bytes"


def raising(error: Exception) -> Callable[[bytes], list[Any]]:
    def answer(_: bytes) -> list[Any]:
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "number", "absent"),
    [
        (NetlinkError(errno.ENODEV), errno.ENODEV, True),
        (NetlinkError(errno.EPERM), errno.EPERM, False),
        (NetlinkError(errno.ENOBUFS), errno.ENOBUFS, False),
        (NetlinkDumpInterrupted(), errno.EBADMSG, False),
        (NetlinkDecodeError(ValueError("cut off")), errno.EBADMSG, False),
        (struct.error("unpack requires a buffer of 4 bytes"), errno.EBADMSG, False),
        (KeyError("attrs"), errno.EBADMSG, False),
        (OSError(errno.EMFILE, "Too many open files"), errno.EMFILE, False),
    ],
)
def test_every_error_names_the_device_or_its_errno(error: Exception, number: int, absent: bool) -> None:
    route = Route(raising(error))
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is checked
        read_link_addresses("eth0", lambda: route)
    assert (caught.value.errno, isinstance(caught.value, Absent)) == (number, absent)
    assert isinstance(error, OSError) or caught.value.filename == "eth0"
    assert route.closed == 1


@pytest.mark.parametrize("count", [0, 2])
def test_a_reply_of_no_or_two_links_is_malformed(count: int) -> None:
    with pytest.raises(OSError, match="malformed reply to RTM_GETLINK") as caught:
        read_link_addresses("eth0", lambda: Route(lambda _: [link()] * count))
    assert caught.value.errno == errno.EBADMSG


def test_a_name_that_no_device_can_have_is_not_sent() -> None:
    with pytest.raises(OSError, match="No such device"):
        read_link_addresses("a-name-of-more-than-15-bytes", lambda: Route(raising(AssertionError())))


@pytest.mark.parametrize("error", [ImportError("No module named 'pyroute2'"), MemoryError()])
def test_a_broken_installation_is_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    whole = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name == "pyroute2":
            raise error
        return whole(name, *args)

    monkeypatch.delitem(sys.modules, "pyroute2")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        OSError, match=r"cannot be imported \(.+\); reinstall it or use --source.disable"
    ) as caught:
        open_route()
    assert caught.value.errno == errno.ELIBACC
