"""The addresses of a network device by rtnetlink (RTM_GETLINK, include/uapi/linux/rtnetlink.h), through pyroute2.

Needs no privilege. pyroute2 is imported by the first read and not before: the import takes a tenth of a second and 9 MB,
whichever of its modules is imported, because its package imports them all. So this is only called by a source of the slow
chain, in a worker thread. One request per network device instead of a list of all: a host may have hundreds of virtual
ones, and a list may change while it is read.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Protocol

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.mac_address import LinkAddresses
from roce_exporter.host.kernel.names import encode_netdev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

_SHARES_ADDRESS = ("bond", "team")
"""Kinds of masters that give their own address to their members. A bridge and a VRF do not."""

_SLAVE = ("IFLA_LINKINFO", "IFLA_INFO_SLAVE_KIND")
_BEFORE_BOND = ("IFLA_LINKINFO", "IFLA_INFO_SLAVE_DATA", "IFLA_BOND_SLAVE_PERM_HWADDR")


class LinkMessage(Protocol):
    """The methods of pyroute2's `ifinfmsg` that are used here."""

    def get_attr(self, name: str) -> Any:
        """The value of an attribute, or None."""

    def get_nested(self, *names: str) -> Any:
        """The value of an attribute of attributes, or None."""


class LinkQuery(Protocol):
    """The method of pyroute2's `IPRoute` that is used here."""

    def link(self, command: str, *, ifname: bytes) -> Sequence[LinkMessage]:
        """The kernel's reply to RTM_GETLINK.

        Raises:
            NetlinkError: the kernel replied with an error, its `code`.
        """


def open_route() -> AbstractContextManager[LinkQuery]:
    """A socket of pyroute2.

    Raises:
        OSError: no such socket, or pyroute2 cannot be imported.
    """
    try:
        from pyroute2 import IPRoute  # type: ignore[import-untyped]  # noqa: PLC0415 - see the module
    except (ImportError, MemoryError) as error:
        # MemoryError: the ctypes module where a security policy forbids writable and executable memory.
        why = f"pyroute2 cannot be imported ({str(error) or 'no memory'}); reinstall it or use --source.disable=mac_address (and =virtual_functions)"
        raise OSError(errno.ELIBACC, why) from None
    return IPRoute()  # type: ignore[no-any-return]


def read_link_addresses(
    netdev: str, open_query: Callable[[], AbstractContextManager[LinkQuery]] = open_route
) -> LinkAddresses:
    """The addresses of one network device of this network namespace.

    Raises:
        Absent: there is no such network device, also when it was removed just now.
        OSError: the kernel refuses, or its reply is malformed.
    """
    name = encode_netdev(netdev)
    try:
        with open_query() as query:
            (message,) = query.link("get", ifname=name)
            return _addresses(message)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - pyroute2's errors have no common class, and none is an OSError
        raise _as_os_error(error, netdev) from None


def _addresses(message: LinkMessage) -> LinkAddresses:
    return LinkAddresses(
        message.get_attr("IFLA_PERM_ADDRESS") or "",
        message.get_nested(*_BEFORE_BOND) or "",
        message.get_attr("IFLA_ADDRESS") or "",
        message.get_nested(*_SLAVE) in _SHARES_ADDRESS,
    )


def _as_os_error(error: Exception, netdev: str) -> OSError:
    code = getattr(error, "code", -1)
    if code not in errno.errorcode:
        return OSError(errno.EBADMSG, f"malformed reply to RTM_GETLINK: {error!r}", netdev)
    return (Absent if code == errno.ENODEV else OSError)(code, os.strerror(code), netdev)
