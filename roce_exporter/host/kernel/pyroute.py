"""pyroute2, for what is read off the scrape path: the sockets, and its errors as `OSError`.

pyroute2 is imported by the first read and not before: the import takes a tenth of a second and 9 MB, whichever of its modules is
imported, because its package imports them all. So a socket is only opened by a source of the slow chain, in a worker thread. Each
`open_...` raises OSError without such a socket, or if pyroute2 cannot be imported, and `open_devlink` also a NetlinkError.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from roce_exporter.host.kernel import Absent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager


def open_route() -> AbstractContextManager[Any]:
    """A blocking socket of rtnetlink."""
    with _imports("mac_address (and =virtual_functions)"):
        from pyroute2 import IPRoute  # type: ignore[import-untyped]  # noqa: PLC0415 - see the module
    return IPRoute()  # type: ignore[no-any-return]


def open_route_socket() -> AbstractAsyncContextManager[Any]:
    """An asynchronous socket of rtnetlink: only this one reads a list in parts."""
    with _imports("addresses"):
        from pyroute2 import AsyncIPRoute  # noqa: PLC0415 - see the module
    return AsyncIPRoute(strict_check=True)  # type: ignore[no-any-return]


def open_devlink() -> AbstractContextManager[Any]:
    """A socket of devlink: `devlink_messages.DevlinkSocket`."""
    with _imports("devlink (and =devlink_info, =devlink_vnic)"):
        from roce_exporter.host.kernel.devlink_messages import open_socket  # noqa: PLC0415 - see the module
    return open_socket()


@contextmanager
def _imports(sources: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, MemoryError) as error:
        # MemoryError: the ctypes module where a security policy forbids writable and executable memory.
        why = f"pyroute2 cannot be imported ({str(error) or 'no memory'}); reinstall it or use --source.disable={sources}"
        raise OSError(errno.ELIBACC, why) from None


@contextmanager
def os_errors(what: str, request: str, absent: Collection[int] = ()) -> Iterator[None]:
    """Raise the errors of pyroute2 as `OSError`, as `Absent` if the kernel's number is in `absent`.

    Raises:
        Absent: the kernel replied that it does not have this.
        OSError: the kernel refuses, or (EBADMSG) its reply is malformed.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - pyroute2's errors have no common class, and none is an OSError
        code = getattr(error, "code", -1)
        if code not in errno.errorcode:
            raise OSError(errno.EBADMSG, f"malformed reply {request}: {error!r}", what) from None
        raise (Absent if code in absent else OSError)(code, os.strerror(code), what) from None
