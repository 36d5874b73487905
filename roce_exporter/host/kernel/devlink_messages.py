"""Messages of devlink for pyroute2 (include/uapi/linux/devlink.h): only the attributes that are used.

pyroute2's own message class drops the values of a diagnosis. This module imports pyroute2, so it is itself only imported by
the first query: see `kernel.pyroute` for what that costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST, genlmsg, nla  # type: ignore[import-untyped]
from pyroute2.netlink.generic import (  # type: ignore[import-untyped]
    AsyncGenericNetlinkSocket,
    GenericNetlinkSocket,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class VersionPart(nla):  # type: ignore[misc]
    """One version of DEVLINK_CMD_INFO_GET."""

    prefix = "DEVLINK_ATTR_"
    nla_map = (
        (103, "DEVLINK_ATTR_INFO_VERSION_NAME", "asciiz"),
        (104, "DEVLINK_ATTR_INFO_VERSION_VALUE", "asciiz"),
    )


class FormattedPart(nla):  # type: ignore[misc]
    """The marks and values of a diagnosis, in order (Documentation/networking/devlink/devlink-health.rst)."""

    prefix = "DEVLINK_ATTR_"
    nla_map = (
        (107, "DEVLINK_ATTR_FMSG_OBJ_NEST_START", "flag"),
        (108, "DEVLINK_ATTR_FMSG_PAIR_NEST_START", "flag"),
        (109, "DEVLINK_ATTR_FMSG_ARR_NEST_START", "flag"),
        (110, "DEVLINK_ATTR_FMSG_NEST_END", "flag"),
        (111, "DEVLINK_ATTR_FMSG_OBJ_NAME", "asciiz"),
        (112, "DEVLINK_ATTR_FMSG_OBJ_VALUE_TYPE", "uint8"),
        (113, "DEVLINK_ATTR_FMSG_OBJ_VALUE_DATA", "cdata"),
    )


class ReporterPart(nla):  # type: ignore[misc]
    """One health reporter."""

    prefix = "DEVLINK_ATTR_"
    nla_map = (
        (115, "DEVLINK_ATTR_HEALTH_REPORTER_NAME", "asciiz"),
        (116, "DEVLINK_ATTR_HEALTH_REPORTER_STATE", "uint8"),
        (117, "DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT", "uint64"),
        (118, "DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT", "uint64"),
        (137, "DEVLINK_ATTR_HEALTH_REPORTER_DUMP_TS_NS", "uint64"),
    )


class DevlinkMessage(genlmsg):  # type: ignore[misc]
    """A request or a reply."""

    prefix = "DEVLINK_ATTR_"
    nla_map = (
        (1, "DEVLINK_ATTR_BUS_NAME", "asciiz"),
        (2, "DEVLINK_ATTR_DEV_NAME", "asciiz"),
        (3, "DEVLINK_ATTR_PORT_INDEX", "uint32"),
        (100, "DEVLINK_ATTR_INFO_VERSION_FIXED", "VersionPart"),
        (101, "DEVLINK_ATTR_INFO_VERSION_RUNNING", "VersionPart"),
        (102, "DEVLINK_ATTR_INFO_VERSION_STORED", "VersionPart"),
        (106, "DEVLINK_ATTR_FMSG", "FormattedPart"),
        (114, "DEVLINK_ATTR_HEALTH_REPORTER", "ReporterPart"),
        (115, "DEVLINK_ATTR_HEALTH_REPORTER_NAME", "asciiz"),
    )
    VersionPart = VersionPart
    FormattedPart = FormattedPart
    ReporterPart = ReporterPart


class AsyncDevlink(AsyncGenericNetlinkSocket):  # type: ignore[misc]
    """A kernel without devlink is no error, so pyroute2 must not log one."""

    module_err_level = "debug"


class DevlinkSocket(GenericNetlinkSocket):  # type: ignore[misc]
    """A socket that exchanges `DevlinkMessage`."""

    async_class = AsyncDevlink

    def exchange(self, command: int, attributes: Sequence[tuple[str, Any]], *, dump: bool) -> Sequence[Any]:
        """The kernel's replies to one request. NetlinkError: the kernel replied with an error, its `code`."""
        message = DevlinkMessage()
        message["cmd"] = command
        message["version"] = 1
        message["attrs"] = [[name, value] for name, value in attributes]
        flags = NLM_F_REQUEST | NLM_F_DUMP if dump else NLM_F_REQUEST
        return tuple(self.nlm_request(message, msg_type=self.prid, msg_flags=flags))


def open_socket() -> DevlinkSocket:
    """A socket that is bound to devlink. NetlinkError: this kernel has no devlink. OSError: no such socket."""
    found = DevlinkSocket()
    try:
        found.bind("devlink", DevlinkMessage)
    except BaseException:
        found.close()
        raise
    return found
