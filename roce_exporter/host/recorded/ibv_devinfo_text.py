"""What `ibv_devinfo -v` of rdma-core prints about the limits of a device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.host.kernel.uverbs import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE = re.compile(rf"^\s*({'|'.join(LIMITS)}):\s+(\d+)\s*$", re.MULTILINE)


def parse_limits(text: str) -> dict[str, int]:
    """The limits by name; empty if the text has none. A limit of 0 is one that the driver does not report."""
    return {name: int(most) for name, most in _LINE.findall(text) if int(most)}


def print_limits(device: str, limits: Mapping[str, int]) -> str:
    """The lines that `parse_limits` reads, below the name of the device."""
    return f"hca_id:\t{device}\n" + "".join(f"\t{name}:\t\t\t{most}\n" for name, most in limits.items())
