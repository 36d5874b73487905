"""devlink of the live kernel by generic netlink, through pyroute2: health reporters, versions, diagnosis of `vnic`.

Every request names one instance, because the kernel takes the lock of each instance that it replies about, and a driver may
hold its own lock for as long as its firmware hangs. Linux before 6.6 ignores the name in a list of reporters and takes all
locks; there a list is only requested until the reporters of the instance are known, and then each of them by its name.
"""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from roce_exporter.host.kernel import FIXED, RUNNING, STORED, VNIC, Absent, ComponentVersion, HealthReporter
from roce_exporter.host.kernel.pyroute import open_devlink, os_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

T = TypeVar("T")

INFO_GET = 51
HEALTH_REPORTER_GET = 52
HEALTH_REPORTER_DIAGNOSE = 55
"""The commands that this exporter sends (include/uapi/linux/devlink.h). All of them only read."""

MOST_REPORTERS = 64
MOST_VERSIONS = 32
MOST_NUMBERS = 64
"""Reporters, versions and diagnosed numbers of one instance that are read. mlx5 has 3, 5 and 14."""

NANOSECONDS = 10**9

HEALTHY = 0
"""DEVLINK_HEALTH_REPORTER_STATE_HEALTHY; 1 is the state of an error."""

_NUMBER_BYTES = {1: 1, 3: 4, 4: 8}
"""Bytes of the values of type NLA_U8, NLA_U32 and NLA_U64."""

_STAGES = tuple((stage, f"DEVLINK_ATTR_INFO_VERSION_{stage.upper()}") for stage in (FIXED, RUNNING, STORED))

_ABSENT = (errno.ENODEV, errno.EOPNOTSUPP, errno.ENOENT)
"""No such instance, no such function of the driver, no devlink in this kernel."""


DevlinkQuery = Any
"""`devlink_messages.DevlinkSocket`: pyroute2 has no types."""
DevlinkReply = Any
"""A message of pyroute2; a nested attribute is one as well."""


class ReporterPlace(NamedTuple):
    """Where a reporter is: on a port of the instance, or on the instance itself, and its name."""

    port: int | None
    name: str


class DevlinkNetlink:
    """The reads, and what is known of the reporters where the kernel cannot list those of one instance.

    They raise what `DevlinkKernel` documents, and OSError where the kernel refuses or its reply is malformed.
    """

    def __init__(self, open_query: Callable[[], AbstractContextManager[DevlinkQuery]] = open_devlink) -> None:
        self._open = open_query
        self._places: dict[str, tuple[ReporterPlace, ...]] = {}
        """By instance; only on a kernel that ignores the name of an instance in a list."""

    def reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance and of its ports."""
        found = self._call(instance, lambda query: self._reporters(query, instance))
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no health reporters", instance)
        return found[:MOST_REPORTERS]

    def versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of an instance."""
        found = self._call(instance, lambda query: tuple(_versions(query, instance)))
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no versions", instance)
        return found[:MOST_VERSIONS]

    def diagnosis(self, instance: str, reporter: str = VNIC) -> Mapping[str, int]:
        """The numbers that a reporter diagnoses, by name; texts, flags and numbers without a name are left out."""
        return self._call(instance, lambda query: _diagnosis(query, instance, reporter))

    def _reporters(self, query: DevlinkQuery, instance: str) -> tuple[HealthReporter, ...]:
        if places := self._places.pop(instance, ()):
            try:
                found = tuple(reporter for place in places for reporter in _reporter(query, instance, place))
            except Exception as error:
                # The driver has removed one of them: list them again.
                if getattr(error, "code", None) not in (errno.EINVAL, errno.ENODEV):
                    raise
            else:
                self._places[instance] = places
                return found
        replies = query.exchange(HEALTH_REPORTER_GET, _named(instance), dump=True)
        own = [
            reply
            for reply in replies
            if f"{reply.get_attr('DEVLINK_ATTR_BUS_NAME')}/{reply.get_attr('DEVLINK_ATTR_DEV_NAME')}"
            == instance
        ]
        if len(own) < len(replies):
            self._places[instance] = tuple(
                ReporterPlace(reply.get_attr("DEVLINK_ATTR_PORT_INDEX"), _read_reporter(reply).name)
                for reply in own[:MOST_REPORTERS]
            )
        return tuple(map(_read_reporter, own))

    def _call(self, instance: str, call: Callable[[DevlinkQuery], T]) -> T:
        with os_errors(instance, "of devlink", _ABSENT), self._open() as query:
            return call(query)


def _named(instance: str, *more: tuple[str, Any]) -> tuple[tuple[str, Any], ...]:
    bus, _, name = instance.partition("/")
    return (("DEVLINK_ATTR_BUS_NAME", bus), ("DEVLINK_ATTR_DEV_NAME", name), *more)


def _reporter(query: DevlinkQuery, instance: str, place: ReporterPlace) -> Iterator[HealthReporter]:
    port = () if place.port is None else (("DEVLINK_ATTR_PORT_INDEX", place.port),)
    named = _named(instance, *port, ("DEVLINK_ATTR_HEALTH_REPORTER_NAME", place.name))
    yield from map(_read_reporter, query.exchange(HEALTH_REPORTER_GET, named, dump=False))


def _read_reporter(reply: DevlinkReply) -> HealthReporter:
    part = reply.get_attr("DEVLINK_ATTR_HEALTH_REPORTER")
    dumped = part.get_attr("DEVLINK_ATTR_HEALTH_REPORTER_DUMP_TS_NS")
    return HealthReporter(
        str(part.get_attr("DEVLINK_ATTR_HEALTH_REPORTER_NAME")),
        int(part.get_attr("DEVLINK_ATTR_HEALTH_REPORTER_STATE")) == HEALTHY,
        int(part.get_attr("DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT")),
        int(part.get_attr("DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT")),
        None if dumped is None else dumped / NANOSECONDS,
    )


def _versions(query: DevlinkQuery, instance: str) -> Iterator[ComponentVersion]:
    for reply in query.exchange(INFO_GET, _named(instance), dump=False):
        for stage, attribute in _STAGES:
            for part in reply.get_attrs(attribute):
                component, version = (
                    part.get_attr(f"DEVLINK_ATTR_INFO_VERSION_{what}") for what in ("NAME", "VALUE")
                )
                yield ComponentVersion(stage, str(component), str(version))


def _diagnosis(query: DevlinkQuery, instance: str, reporter: str) -> Mapping[str, int]:
    named = _named(instance, ("DEVLINK_ATTR_HEALTH_REPORTER_NAME", reporter))
    try:
        replies = query.exchange(HEALTH_REPORTER_DIAGNOSE, named, dump=False)
    except Exception as error:
        if (
            getattr(error, "code", None) == errno.EINVAL
        ):  # what the kernel replies for a name that it does not know
            raise Absent(errno.EOPNOTSUPP, f"no reporter {reporter}", instance) from None
        raise
    marks = [mark for reply in replies for mark in reply.get_attr("DEVLINK_ATTR_FMSG")["attrs"]]
    return dict(list(_numbers(marks))[:MOST_NUMBERS])


def _numbers(marks: Sequence[Sequence[Any]]) -> Iterator[tuple[str, int]]:
    """Names and numbers of a diagnosis: a name is followed by the type and the bytes of its value."""
    name, kind = "", 0
    for mark, value, *_ in marks:
        if mark.endswith("_OBJ_NAME"):
            name = value
        elif mark.endswith("_VALUE_TYPE"):
            kind = value
        elif mark.endswith("_VALUE_DATA") and name and _NUMBER_BYTES.get(kind) == len(value):
            yield name, int.from_bytes(value, sys.byteorder)
            name = ""
        else:
            name = ""
