"""The table of flags, `flags.txt`, and the lists that it names.

Defaults and choices are literals: a command must not import the engine of another one. `tests/unit/test_options.py` compares them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roce_exporter.cli import flag_types
from roce_exporter.cli.flag_types import DEFAULT_PORT, KEY, Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROBE_PORT = 10126
"""The port of `probe` for metrics; probes themselves are UDP, to port 10124."""

LOG_LEVELS = ("debug", "info", "warn", "error")
SOURCES = (
    *("port", "rdma_netlink", "hw_counters", "counters", "resources", "optional_counters", "pcie", "sensors"),
    *("delay_drop", "netdev", "ethtool", "dcb", "pause", "settings", "link", "fec", "ethernet"),
    *("transceiver", "mac_address", "virtual_functions", "addresses", "limits", "devlink", "devlink_info"),
    *("devlink_vnic", "configuration", "owners", "kernel_log", "health"),
)
"""Sources that can be disabled: those of a collection, and what works between collections."""
SCENARIOS = (
    *("quiet", "incast", "pfc-storm", "slow-receiver", "victim", "misconfigured", "flapping", "overheating"),
    *("lossy", "lossy-path", "dead-peer", "firmware", "broken"),
)
VENDORS = ("mlx5", "mlx5-lag", "bnxt", "ionic", "ice")
PROFILES = ("amd-pollara", "auto", "broadcom-thor2", "lossy", "nvidia-lossless", "pfc-only")
EXPORTERS = ("node_exporter", "rdma_exporter", "spiderpool")
"""Those whose names `translate` knows."""
JSON, PACKETS = "json", "packets"

CHOICES = {
    "LOG_LEVELS": LOG_LEVELS,
    "SOURCES": SOURCES,
    "SCENARIOS": ("", *SCENARIOS),
    "EXPORTERS": EXPORTERS,
}
PLACEHOLDERS = {
    "SOURCES": ", ".join(SOURCES),
    "SCENARIOS": ", ".join(SCENARIOS),
    "VENDORS": ", ".join(VENDORS),
    "PROFILES": ", ".join(PROFILES),
    "DEFAULT_PORT": str(DEFAULT_PORT),
    "PROBE_PORT": str(PROBE_PORT),
}


def read(text: str) -> Iterator[Flag]:
    """The rows of the table, in its order.

    Raises:
        ValueError: a row has an unknown option or type, or fewer than three fields.
    """
    for block in re.split(r"\n(?=[^ ])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        head, *more = block.strip().splitlines() or [""]
        if head:
            yield _flag(head, " ".join(line.strip() for line in more).format_map(PLACEHOLDERS))


def _flag(head: str, meaning: str) -> Flag:
    name, commands, metavar, *options = re.split(r" {2,}", head)
    given = {key: text for key, _, text in (option.partition("=") for option in options)}
    kind = _type(given.pop("type")) if "type" in given else None
    repeated, is_key = (given.pop(word, None) is not None for word in ("repeated", "key"))
    listed = given.pop("choices", "")
    choices = CHOICES.get(listed) or tuple(filter(None, listed.split(", ")))
    default: Any = () if repeated else None if kind else ""
    if "default" in given:
        default = (kind or str)(given.pop("default"))
    elif metavar == "-" and not choices:
        default = False
    if unknown := given.keys() - {"nargs", "short", "dest", "instead"}:
        raise ValueError(f"{name}: unknown option {', '.join(unknown)}")
    if is_key:
        given["instead"] = KEY
    groups = (getattr(flag_types, one, (one,)) for one in commands.split(", "))
    return Flag(
        name,
        tuple(command for group in groups for command in group),
        metavar.removeprefix("-"),
        meaning,
        default,
        kind,
        choices,
        repeated,
        **given,
    )


def _type(text: str) -> Callable[[str], Any]:
    """`pattern` is that function of `flag_types`, `seconds(0.05, 1)` what it returns for these arguments."""
    name, brackets, arguments = text.rstrip(")").partition("(")
    found: Callable[..., Any] = int if name == "int" else getattr(flag_types, name)
    if not brackets:
        return found
    numbers = (float(one) if name == "seconds" else int(one) for one in filter(None, arguments.split(", ")))
    made: Callable[[str], Any] = found(*numbers)
    return made


FLAGS = tuple(read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")))
KEYS = tuple(flag for flag in FLAGS if flag.instead == KEY)
"""What is rarely set: keys of the configuration file and no flags. As flags they work for one minor release, with one line on standard error."""
