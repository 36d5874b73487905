"""What `devlink -j` of iproute2 prints: `health show`, `dev info`, and `health diagnose DEV reporter vnic`."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from roce_exporter.host.kernel import FIXED, RUNNING, STORED, VNIC, Absent, ComponentVersion, HealthReporter
from roce_exporter.host.kernel.netlink import Malformed
from roce_exporter.host.sources.devlink import instances_at, instances_of, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device


T = TypeVar("T")
S = TypeVar("S", tuple[HealthReporter, ...], tuple[ComponentVersion, ...])

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
        found = self._read(HEALTH, lambda document: tuple(_reporters(document["health"], instance)))
        return _or_absent(found, HEALTH, instance)

    def versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of an instance."""
        found = self._read(INFO, lambda document: tuple(_versions(document["info"].get(instance, {}))))
        return _or_absent(found, INFO, instance)

    def vnic(self, instance: str) -> Mapping[str, int]:
        """The numbers that the reporter `vnic` diagnosed."""
        file = vnic_file(instance)
        try:
            return self._read(file, lambda document: dict(_numbers(document)))
        except Absent as error:
            # The command failed: other parts of the recording list the reporter.
            raise PermissionError(errno.EPERM, str(error), instance) from None

    def _read(self, file: str, read: Callable[[Any], T]) -> T:
        text = self._text(file)
        try:
            return read(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            command = _COMMANDS.get(file, f"devlink -j health diagnose DEV reporter {VNIC}")
            raise Malformed(f"{file}: record it with `{command}`") from None


def print_reporters(found: Mapping[str, Sequence[HealthReporter]]) -> str:
    """The reporters by instance as `devlink` prints them, without what no series shows."""
    shown = {instance: list(map(_printed_reporter, reporters)) for instance, reporters in found.items()}
    return json.dumps({"health": shown}) + "\n"


def print_versions(found: Mapping[str, Sequence[ComponentVersion]]) -> str:
    """The versions by instance as `devlink` prints them, without serial numbers."""
    shown: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
    for instance, versions in found.items():
        stages = shown.setdefault(instance, {}).setdefault("versions", {})
        for one in versions:
            stages.setdefault(one.stage, {})[one.component] = one.version
    return json.dumps({"info": shown}) + "\n"


def print_numbers(found: Mapping[str, int]) -> str:
    """The numbers of the reporter `vnic` as mlx5 prints them."""
    return json.dumps({"vNIC env counters": dict(found)}) + "\n"


def _printed_reporter(one: HealthReporter) -> dict[str, Any]:
    state = "healthy" if one.is_healthy else "error"
    shown = {"reporter": one.name, "state": state, "error": one.errors, "recover": one.recoveries}
    if one.dumped is None:
        return shown
    dumped = datetime.fromtimestamp(one.dumped, UTC)
    return shown | {"last_dump_date": f"{dumped:%Y-%m-%d}", "last_dump_time": f"{dumped:%H:%M:%S}"}


def _reporters(health: Mapping[str, Any], instance: str) -> Iterator[HealthReporter]:
    for handle, reporters in health.items():
        # A port is `pci/0000:3b:00.0/1`.
        if handle == instance or handle.rpartition("/")[0] == instance:
            for one in reporters:
                yield HealthReporter(
                    str(one["reporter"]),
                    _STATES[one["state"]],
                    int(one["error"]),
                    int(one["recover"]),
                    _dumped(one),
                )


def _dumped(one: Mapping[str, Any]) -> float | None:
    if "last_dump_date" not in one:
        return None
    printed = f"{one['last_dump_date']}T{one['last_dump_time']}+00:00"
    return datetime.fromisoformat(printed).timestamp()


def _versions(info: Mapping[str, Any]) -> Iterator[ComponentVersion]:
    versions = info.get("versions", {})
    for stage in (FIXED, RUNNING, STORED):
        for component, version in versions.get(stage, {}).items():
            yield ComponentVersion(stage, str(component), str(version))


def _numbers(document: Any) -> Iterator[tuple[str, int]]:
    """Every number of a diagnosis by its name, from objects and lists at any depth."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in parts:
        if isinstance(value, (dict, list)):
            yield from _numbers(value)
        elif isinstance(name, str) and type(value) is int:
            yield name, value


def _or_absent(found: S, file: str, instance: str) -> S:
    if not found:
        raise Absent(errno.EOPNOTSUPP, f"not in {file}", instance)
    return found


class DevlinkFacts(NamedTuple):
    """What devlink reports of one device, by instance."""

    reporters: Mapping[str, tuple[HealthReporter, ...]]
    versions: Mapping[str, tuple[ComponentVersion, ...]]
    vnic: Mapping[str, Mapping[str, int]]
    links: Mapping[str, str]
    """Symbolic links below the recording, by which a reader finds the instances; path and target."""


def read_devlink(kernel: Kernel, device: Device) -> DevlinkFacts:
    """Read the instances of a device. Blocks. What cannot be read is left out."""
    instances = instances_of(kernel, device)
    reporters = _kept(instances, kernel.devlink_reporters)
    versions = _kept(instances, kernel.devlink_versions)
    known = {*reporters, *versions}
    links = _links(kernel, device, known) if known else {}
    return DevlinkFacts(reporters, versions, _kept(instances, kernel.devlink_vnic), links)


def devlink_files(facts: Sequence[DevlinkFacts]) -> dict[str, str]:
    """The files of one moment: each command of `devlink` prints all devices together."""
    files = {
        vnic_file(instance): print_numbers(numbers) for one in facts for instance, numbers in one.vnic.items()
    }
    reporters = {instance: found for one in facts for instance, found in one.reporters.items()}
    if reporters:
        files[HEALTH] = print_reporters(reporters)
    versions = {instance: found for one in facts for instance, found in one.versions.items()}
    if versions:
        files[INFO] = print_versions(versions)
    return files


def _kept(instances: Sequence[str], read: Callable[[str], T]) -> dict[str, T]:
    found = {}
    for instance in instances:
        try:
            found[instance] = read(instance)
        except OSError:
            continue
    return found


def _links(kernel: Kernel, device: Device, known: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in places_of(device):
        for instance in instances_at(kernel, place):
            if instance in known:
                function = kernel.link(place)
                found[f"sys/{place}"] = f"../../../devices/{function}"
                bus, _, name = instance.partition("/")
                below = f"sys/devices/{function}" + ("" if name == function else f"/{name}")
                found[f"{below}/subsystem"] = f"../../bus/{bus}"
    return found
