"""devlink of the live kernel by generic netlink: health reporters, versions, diagnosis of `vnic`.

Every request names one instance, because the kernel takes the lock of each instance that it replies about, and a driver may
hold its own lock for as long as its firmware hangs. Linux before 6.6 ignores the name in a list of reporters and takes all
locks; there a list is only requested until the reporters of the instance are known, and then each of them by its name.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from roce_exporter.host.kernel import (
    FIXED,
    RUNNING,
    STORED,
    VNIC,
    Absent,
    ComponentVersion,
    HealthReporter,
    netlink,
)
from roce_exporter.host.kernel.names import decode_name, encode_name, keep

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

HEALTHY = 0  # DEVLINK_HEALTH_REPORTER_STATE_HEALTHY; 1 is the state of an error

_NUMBER_BYTES = {1: 1, 3: 4, 4: 8}
"""Bytes of the values of type NLA_U8, NLA_U32 and NLA_U64."""

BUS_NAME, DEVICE_NAME, PORT_INDEX = 1, 2, 3
STAGES = {FIXED: 100, RUNNING: 101, STORED: 102}
VERSION_NAME, VERSION_VALUE = 103, 104
FORMATTED, OBJECT_NAME, VALUE_TYPE, VALUE_DATA = 106, 111, 112, 113
REPORTER, REPORTER_NAME, STATE, ERRORS, RECOVERIES, DUMPED = 114, 115, 116, 117, 118, 137
"""Attributes. A diagnosis is a list of marks and values (Documentation/networking/devlink/devlink-health.rst)."""

_ABSENT = (errno.ENODEV, errno.EOPNOTSUPP, errno.ENOENT)
"""No such instance, no such function of the driver, no devlink in this kernel."""


class ReporterPlace(NamedTuple):
    """Where a reporter is: on a port of the instance, or on the instance itself, and its name."""

    port: int | None
    name: str


class DevlinkNetlink:
    """The reads, and what is known of the reporters where the kernel cannot list those of one instance.

    They raise what `Kernel` documents, and OSError where the kernel refuses or its reply is malformed.
    """

    def __init__(self, open_socket: netlink.OpenSocket = netlink.open_kernel_socket) -> None:
        self._open_socket = open_socket
        self._places: dict[str, tuple[ReporterPlace, ...]] = {}
        """By instance; only on a kernel that ignores the name of an instance in a list."""

    def reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance and of its ports."""
        found = self._call(instance, self._reporters)
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no health reporters", instance)
        return found[:MOST_REPORTERS]

    def versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of an instance."""
        found = self._call(instance, _versions)
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no versions", instance)
        return found[:MOST_VERSIONS]

    def diagnosis(self, instance: str, reporter: str = VNIC) -> Mapping[str, int]:
        """The numbers that a reporter diagnoses, by name; texts, flags and numbers without a name are left out."""
        return self._call(instance, partial(_diagnosis, reporter=reporter))

    def _reporters(self, query: netlink.GenericNetlink, instance: str) -> tuple[HealthReporter, ...]:
        if places := self._places.pop(instance, ()):
            try:
                found = tuple(
                    _read_reporter(netlink.decode_values(reply))
                    for place in places
                    for reply in query.request(HEALTH_REPORTER_GET, _named(instance, place))
                )
            except netlink.Refused as error:
                # The driver has removed one of them: list them again.
                if error.errno not in (errno.EINVAL, errno.ENODEV):
                    raise
            else:
                keep(self._places, instance, places)
                return found
        named = _named(instance)
        replies = [netlink.decode_values(one) for one in query.request(HEALTH_REPORTER_GET, named, dump=True)]
        names = [
            [decode_name(netlink.required(one, kind)) for kind in (BUS_NAME, DEVICE_NAME)] for one in replies
        ]
        own = [one for one, name in zip(replies, names, strict=True) if "/".join(name) == instance]
        found = tuple(map(_read_reporter, own))
        if len(own) < len(replies):
            listed = zip(own[:MOST_REPORTERS], found, strict=False)
            numbers = (
                (netlink.decode_number(one[PORT_INDEX]) if PORT_INDEX in one else None, of.name)
                for one, of in listed
            )
            keep(self._places, instance, tuple(ReporterPlace(*place) for place in numbers))
        return found

    def _call(self, instance: str, call: Callable[[netlink.GenericNetlink, str], T]) -> T:
        query = netlink.GenericNetlink("devlink", self._open_socket)
        try:
            with netlink.about(instance, _ABSENT):
                return call(query, instance)
        finally:
            query.close()


def _text(kind: int, value: str) -> bytes:
    return netlink.encode_attribute(kind, encode_name(value) + b"\0")


def _named(instance: str, reporter: ReporterPlace | None = None) -> bytes:
    bus, _, name = instance.partition("/")
    named = _text(BUS_NAME, bus) + _text(DEVICE_NAME, name)
    if reporter is None:
        return named
    port = b"" if reporter.port is None else netlink.encode_u32(PORT_INDEX, reporter.port)
    return named + port + _text(REPORTER_NAME, reporter.name)


def _read_reporter(reply: Mapping[int, bytes]) -> HealthReporter:
    part = netlink.decode_values(netlink.required(reply, REPORTER))
    return HealthReporter(
        decode_name(netlink.required(part, REPORTER_NAME)),
        netlink.decode_number(netlink.required(part, STATE)) == HEALTHY,
        netlink.decode_number(netlink.required(part, ERRORS)),
        netlink.decode_number(netlink.required(part, RECOVERIES)),
        netlink.decode_number(part[DUMPED]) / NANOSECONDS if DUMPED in part else None,
    )


def _versions(query: netlink.GenericNetlink, instance: str) -> tuple[ComponentVersion, ...]:
    replies = query.request(INFO_GET, _named(instance))
    return tuple(
        ComponentVersion(
            stage, *(decode_name(netlink.required(part, one)) for one in (VERSION_NAME, VERSION_VALUE))
        )
        for reply in replies
        for stage, attribute in STAGES.items()
        for kind, start, end in netlink.decode_attributes(reply)
        if kind == attribute
        for part in [netlink.decode_values(reply, start, end)]
    )


def _diagnosis(query: netlink.GenericNetlink, instance: str, reporter: str) -> Mapping[str, int]:
    try:
        replies = query.request(HEALTH_REPORTER_DIAGNOSE, _named(instance, ReporterPlace(None, reporter)))
    except netlink.Refused as error:
        # What the kernel replies for a name that it does not know.
        if error.errno == errno.EINVAL:
            raise Absent(errno.EOPNOTSUPP, f"no reporter {reporter}", instance) from None
        raise
    marks = [
        (kind, part[start:end])
        for reply in replies
        for part in [netlink.required(netlink.decode_values(reply), FORMATTED)]
        for kind, start, end in netlink.decode_attributes(part)
    ]
    return dict(list(_numbers(marks))[:MOST_NUMBERS])


def _numbers(marks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[str, int]]:
    """Names and numbers of a diagnosis: a name is followed by the type and the bytes of its value."""
    name, kind = "", 0
    for mark, value in marks:
        if mark == OBJECT_NAME:
            name = decode_name(value)
        elif mark == VALUE_TYPE:
            kind = netlink.decode_number(value)
        elif mark == VALUE_DATA and name and _NUMBER_BYTES.get(kind) == len(value):
            yield name, netlink.decode_number(value)
            name = ""
        else:
            name = ""
