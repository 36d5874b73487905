"""Which event a message of the kernel log is, and which names of a device it contains.

`dev_printk` writes `DRIVER DEVICE: TEXT`, `netdev_printk` and `ibdev_printk` write `DRIVER DEVICE NAME: TEXT` (drivers/base/core.c,
net/core/dev.c, drivers/infiniband/core/device.c). mlx4_en, qed and the transmit watchdog of older kernels have forms of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.kernel_events import MESSAGES, KernelMessage

if TYPE_CHECKING:
    from roce_exporter.model import LogRecord

Rules = tuple[tuple["re.Pattern[str]", str, range], ...]
"""Pattern, event, and the levels at which it counts, in order."""


class LogLine(NamedTuple):
    """A message about a device."""

    driver: str
    """The first word; empty without one."""
    names: tuple[str, ...]
    """What may name the device, the most precise first: a network or RDMA device, an address on its bus; its driver in parentheses."""
    text: str
    level: int = 6
    """Severity of syslog: 3 is an error."""


ERROR, WARNING, DEBUG = 3, 4, 7
LEVELS = {"(errors only": range(WARNING), "(warnings": range(WARNING, 5), "(to warnings": range(5)}
"""By words in the source of a row, the levels at which it counts: newer kernels have some texts at lower levels as well, where they mean less."""
HOST, EVERY_DEVICE = "host", "every device"
"""Driver and name of messages about the whole host. No device has a name with a space."""
UNKNOWN_ERROR = "unknown_error"
"""The event of an error without a row: a text of another kernel or of another driver below an RDMA device is not silent."""

_STATE = r"(?: \([a-z ]{1,32}\))?"
"""`(unregistering)`: the state of a network device that is not registered."""

_FORMS = (
    # [qede_link_update:2631(eth0)]Link is down: the name may have the number of a hardware function
    re.compile(
        r"\[_{0,2}(?P<driver>[a-z]{1,8})_?\w{0,64}:[0-9]{1,6}\((?P<name>[^\s()]{1,64}?)(?:-[0-9]{1,3})?\)\](?P<text>.*)",
        re.DOTALL,
    ),
    # NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out, before Linux 2.6.27 eth0: transmit timed out
    re.compile(
        r"(?P<driver>NETDEV WATCHDOG): (?P<name>[^\s:]{1,64})(?: \((?P<parent>[^\s()]{0,64})\))?: (?P<text>.*)",
        re.DOTALL,
    ),
    # mlx5_core: probe of 0000:3b:00.0 failed with error -12, before Linux 6.6
    re.compile(r"(?P<driver>[^\s:]{1,64}): probe of (?P<bus>[^\s]{1,64}) (?P<text>.*)", re.DOTALL),
    # ICMPv6: NA: 02:16:3e:00:00:77 advertised our address fe80::1 on eth0!
    re.compile(
        r"(?P<driver>ICMPv6): NA: (?=\S{17} advertised our address \S{2,39} on (?P<name>[^\s!]{1,64})!)(?P<text>.*)",
        re.DOTALL,
    ),
    # mlx4_en: eth0: Link Down
    re.compile(r"(?P<driver>mlx4_en|IPv6): (?P<name>[^\s:]{1,64}): (?P<text>.*)", re.DOTALL),
    # What an IOMMU reports of a device: DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x7ebb0000
    # AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:3b:00.0 domain=0x0a, arm-smmu-v3 arm-smmu-v3.0.auto: event: F_TRANSLATION client: 0000:3b:00.0 sid: 0x100
    re.compile(
        r"(?:iommu \w{1,16}: )?(?P<driver>DMAR|AMD-Vi|arm-smmu-v3)(?: [^\s:]{1,64})?: (?:\[[^]]{1,32}\] Request device \[|"
        r"Event logged \[\w{1,32} device=|event: \S{1,32} client: )(?P<name>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?P<text>.*)",
        re.DOTALL,
    ),
    # DRIVER_wait_mqe_cmpl(0) mailbox timeout: fw not responding, with the number of the driver's device
    re.compile(r"(?P<driver>[a-z0-9]{1,16})_\w{1,64}\((?P<name>[0-9]{1,3})\) (?P<text>.*)", re.DOTALL),
    # mlx5_core 0000:3b:00.0 eth0: Link down
    re.compile(
        r"(?P<driver>[^\s:]{1,64}) (?P<bus>[^\s]{1,64}?)(?: (?P<name>[^\s:()]{1,64}))?"
        + _STATE
        + ": (?P<text>.*)",
        re.DOTALL,
    ),
    # eth0: NETDEV WATCHDOG: ..., a network device without a parent
    re.compile(r"(?P<name>[^\s:]{1,64})" + _STATE + ": (?P<text>.*)", re.DOTALL),
)

_POSITION = re.compile(r"\w{1,64}:[0-9]{1,6}:\(pid [0-9]{1,10}\): ")
"""The position in the code, as mlx5 writes it."""

_OLDER = re.compile(
    r"(?:<\w{1,16}> )?([^\s:/]{1,64})(?:/[0-9]{1,3}: |: ?)(?=\w{1,64}:[0-9]{1,6}:\(pid |QP [0-9]{1,8} error: )"
)
"""What an RDMA driver writes of its device by itself, mlx5_0:mr_umem_get:859:(pid 77): or mlx5_0/1: QP 4521 error: `ibdev_printk` puts a word before it."""

_SLOW_PATH = re.compile(r"(?:sp-[0-9]{1,2}-)?([0-9a-f]{2}:[0-9a-f]{2})\.([0-9a-f]{1,2})")
"""The name of qed's hardware function as soon as it has its interrupts (qed_int.c), and an IOMMU's of a function: bus, slot and function, without the domain."""


def read_line(record: LogRecord) -> LogLine | None:
    """The parts of a message; None if it names nothing that may be a device, and is not about the host."""
    if any(pattern.match(record.text) for pattern in _OF_HOST):
        return LogLine(HOST, (EVERY_DEVICE,), record.text, record.level)
    said = _OLDER.sub(rf"{WITHOUT_PARENT} \1: ", record.text, 1) if _OLDER.match(record.text) else record.text
    for form in _FORMS:
        if found := form.match(said):
            parts = found.groupdict()
            parent = parts.get("parent")
            name = parts.get("name")
            if function := _SLOW_PATH.fullmatch(name or ""):
                name = f"0000:{function[1]}.{int(function[2], 16)}"
            elif name and name.isdecimal() and "driver" in parts:
                name = f"{parts['driver']}#{name}"
            names = (name, parts.get("bus"), record.device, f"({parent})" if parent else None)
            text = parts["text"]
            if position := _POSITION.match(text):
                text = text[position.end() :]
            return LogLine(
                parts.get("driver") or "", tuple(dict.fromkeys(filter(None, names))), text, record.level
            )
    return None


def event_of(line: LogLine) -> str:
    """The event that a message about an RDMA device means; empty for messages without a row that are no errors."""
    driver = line.driver.partition(".")[0]
    for pattern, event, levels in _RULES.get(driver, _ANY):
        if line.level in levels and pattern.match(line.text):
            return event
    return UNKNOWN_ERROR if line.level <= ERROR else ""


def _rules(messages: Iterable[KernelMessage]) -> Rules:
    return tuple(
        (
            re.compile(one.pattern),
            one.event,
            next((levels for mark, levels in LEVELS.items() if mark in one.source), range(DEBUG + 1)),
        )
        for one in messages
    )


WITHOUT_PARENT = "infiniband"
"""The first word of what any RDMA driver writes of a device without a parent (drivers/infiniband/core/device.c ibdev_printk)."""
_RULES = {
    driver: _rules(one for one in MESSAGES if driver in one.drivers or not one.drivers)
    for driver in {driver for one in MESSAGES for driver in one.drivers}
}
_ANY = _rules(one for one in MESSAGES if not one.drivers)
_OF_HOST = [re.compile(one.pattern) for one in MESSAGES if HOST in one.drivers]
_RULES[WITHOUT_PARENT] = _rules(
    one
    for one in MESSAGES
    if not one.drivers or WITHOUT_PARENT in one.drivers or one.source.startswith("drivers/infiniband/")
)


def events_of(driver: str) -> frozenset[str]:
    """The events that messages of a driver can mean."""
    return frozenset(event for _, event, _ in _RULES.get(driver.partition(".")[0], _ANY))
