"""What devlink reports of the recorded devices, as files of the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from roce_exporter.host.recorded.devlink_text import (
    HEALTH,
    INFO,
    print_numbers,
    print_reporters,
    print_versions,
    vnic_file,
)
from roce_exporter.host.sources.devlink import instances_at, instances_of, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roce_exporter.host.kernel import ComponentVersion, HealthReporter, Kernel
    from roce_exporter.model import Device

T = TypeVar("T")


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
