"""What `devlink -j` of iproute2 prints: `health show`, `dev info`, and `health diagnose DEV reporter vnic`."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from roce_exporter.host.kernel import (
    FIXED,
    RUNNING,
    STORED,
    VNIC,
    Absent,
    ComponentVersion,
    HealthReporter,
    Kernel,
)
from roce_exporter.host.kernel.netlink import Malformed
from roce_exporter.host.recorded.dcb_text import is_count
from roce_exporter.host.sources.devlink import instances_at, instances_of, places_of
from roce_exporter.model import Device

T = TypeVar("T")
Documents = dict[str, dict[str, dict[str, Any]]]
"""By file; the values of the one key that a document has are of instances, or of counters."""
HEALTH, INFO = "devlink/health.json", "devlink/info.json"
_COMMANDS = {HEALTH: "TZ=UTC devlink -j health show", INFO: "devlink -j dev info"}
_STATES = {"healthy": True, "error": False}


def vnic_file(instance: str) -> str:
    """The file with the diagnosis of an instance: `devlink/pci_0000:3b:00.0.vnic.json`."""
    return f"devlink/{instance.replace('/', '_')}.{VNIC}.json"


class RecordedDevlink:
    """The part of a recorded host that devlink describes: `Absent` if not recorded, `Malformed` if it is not the JSON of `devlink`.

    `text` returns the content of a file of the recording.
    """

    def __init__(self, text: Callable[[str], str]) -> None:
        self._text = text

    def reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance and of its ports."""
        return self._read(HEALTH, instance, lambda found: tuple(_reporters(found["health"], instance)))

    def versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of an instance."""
        return self._read(INFO, instance, lambda found: tuple(_versions(found["info"].get(instance, {}))))

    def vnic(self, instance: str) -> Mapping[str, int]:
        """The numbers that the reporter `vnic` diagnosed."""
        try:
            return self._read(vnic_file(instance), instance, lambda document: dict(_numbers(document)))
        except Absent as error:
            # The command failed: other parts of the recording list the reporter.
            raise PermissionError(errno.EPERM, str(error), instance) from None

    def _read(self, file: str, instance: str, read: Callable[[Any], T]) -> T:
        text = self._text(file)
        try:
            found = read(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            command = _COMMANDS.get(file, f"devlink -j health diagnose DEV reporter {VNIC}")
            raise Malformed(f"{file}: record it with `{command}`") from None
        if found == ():
            raise Absent(errno.EOPNOTSUPP, f"not in {file}", instance)
        return found


def _reporters(health: Mapping[str, Any], instance: str) -> Iterator[HealthReporter]:
    for handle, reporters in health.items():
        # A port is `pci/0000:3b:00.0/1`.
        if handle == instance or handle.rpartition("/")[0] == instance:
            for one in reporters:
                dumped = None
                if "last_dump_date" in one:
                    printed = f"{one['last_dump_date']}T{one['last_dump_time']}+00:00"
                    dumped = datetime.fromisoformat(printed).timestamp()
                errors, recoveries = filter(is_count, (one["error"], one["recover"]))
                yield HealthReporter(str(one["reporter"]), _STATES[one["state"]], errors, recoveries, dumped)


def _versions(info: Mapping[str, Any]) -> Iterator[ComponentVersion]:
    for stage in (FIXED, RUNNING, STORED):
        for component, version in info.get("versions", {}).get(stage, {}).items():
            yield ComponentVersion(stage, str(component), str(version))


def _numbers(document: Any) -> Iterator[tuple[str, int]]:
    """Every number of a diagnosis by its name, from objects and lists at any depth."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in parts:
        if isinstance(value, (dict, list)):
            yield from _numbers(value)
        elif isinstance(name, str) and is_count(value):
            yield name, value


def print_reporter(one: HealthReporter) -> dict[str, Any]:
    """A reporter as `devlink` prints it, without what no series shows."""
    state = "healthy" if one.is_healthy else "error"
    shown = {"reporter": one.name, "state": state, "error": one.errors, "recover": one.recoveries}
    if one.dumped is None:
        return shown
    dumped = datetime.fromtimestamp(one.dumped, UTC)
    return shown | {"last_dump_date": f"{dumped:%Y-%m-%d}", "last_dump_time": f"{dumped:%H:%M:%S}"}


def print_versions(versions: Iterable[ComponentVersion]) -> dict[str, dict[str, dict[str, str]]]:
    """The versions of an instance as `devlink` prints them, without serial numbers."""
    stages: dict[str, dict[str, str]] = {}
    for one in versions:
        stages.setdefault(one.stage, {})[one.component] = one.version
    return {"versions": stages}


def read_devlink(kernel: Kernel, device: Device) -> tuple[Documents, dict[str, str]]:
    """What devlink reports of one device, and the links of the recording by which a reader finds its instances. Blocks.

    What cannot be read is left out.
    """
    instances = instances_of(kernel, device)
    reporters = _kept(instances, kernel.devlink_reporters)
    versions = _kept(instances, kernel.devlink_versions)
    documents: Documents = {
        vnic_file(instance): {"vNIC env counters": dict(numbers)}
        for instance, numbers in _kept(instances, kernel.devlink_vnic).items()
    }
    if reporters:
        printed = {instance: list(map(print_reporter, found)) for instance, found in reporters.items()}
        documents[HEALTH] = {"health": printed}
    if versions:
        documents[INFO] = {"info": {instance: print_versions(found) for instance, found in versions.items()}}
    return documents, _links(kernel, device, {*reporters, *versions})


def devlink_files(of_devices: Iterable[Documents]) -> dict[str, str]:
    """The files of one moment: each command of `devlink` prints all devices together."""
    whole: Documents = {}
    for documents in of_devices:
        for file, document in documents.items():
            for key, found in document.items():
                whole.setdefault(file, {}).setdefault(key, {}).update(found)
    return {file: json.dumps(document) + "\n" for file, document in whole.items()}


def _kept(instances: Sequence[str], read: Callable[[str], T]) -> dict[str, T]:
    found = {}
    for instance in instances:
        with contextlib.suppress(OSError):
            found[instance] = read(instance)
    return found


def _links(kernel: Kernel, device: Device, known: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in places_of(device) if known else ():
        for instance in instances_at(kernel, place):
            if instance in known:
                function = kernel.link(place)
                found[f"sys/{place}"] = f"../../../devices/{function}"
                bus, _, name = instance.partition("/")
                below = f"sys/devices/{function}" + ("" if name == function else f"/{name}")
                found[f"{below}/subsystem"] = f"../../bus/{bus}"
    return found
