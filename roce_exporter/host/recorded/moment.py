"""One moment of a recorded host: its files, and what the standard tools printed, parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from roce_exporter.host.recorded.dcb_text import KINDS, PEER_PFC, read_dcb
from roce_exporter.host.recorded.rdma_text import read_json, read_rdma
from roce_exporter.host.recorded.recorded_ip import RecordedIp, read_recorded_ip
from roce_exporter.host.recorded.recorded_objects import RecordedObjects, read_recorded_objects
from roce_exporter.host.recorded.tree import RecordingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.host.kernel.dcb_netlink import Dcb
    from roce_exporter.host.recorded.rdma_text import Rows
    from roce_exporter.host.recorded.tree import Tree


TIME = "time"
"""The name of the file."""

APART = 15.0
"""Seconds between the moments of a recording without times."""

_SECONDS = re.compile(rb"[0-9]{1,11}(\.[0-9]{1,9})?")


def print_time(seconds: float) -> str:
    """The content of the file."""
    return f"{seconds:.6f}\n"


def moment_times(trees: Sequence[Tree], path: str) -> tuple[float, ...]:
    """The time of each moment, increasing; without files the first is 0 and the others follow 15 s apart."""
    named = [tree.files.get(TIME) for tree in trees]
    if all(content is None for content in named):
        return tuple(APART * number for number in range(len(trees)))
    times = tuple(_time(content, number, path) for number, content in enumerate(named))
    for number, (before, after) in enumerate(pairwise(times), 1):
        if after <= before:
            raise RecordingError(
                f"recording {path}: moment {number}: its time {after:.3f} is not after {before:.3f}, the one before; "
                f"correct the files `{TIME}`"
            )
    return times


def _time(content: bytes | None, number: int, path: str) -> float:
    if content is None:
        raise RecordingError(
            f"recording {path}: moment {number} has no file `{TIME}`, but others have; add it, or remove the others"
        )
    text = content.strip()
    if not _SECONDS.fullmatch(text):
        shown = ascii(text[:20].decode("utf-8", "replace"))
        raise RecordingError(
            f"recording {path}: moment {number}: `{TIME}` is {shown}; write seconds since 1970, as `date +%s.%N` prints them"
        )
    return float(text)


PARTS = frozenset({"sys", "rdma", "ethtool", "dcb", "debugfs", "proc", "ibv_devinfo", "ip", "devlink", "dev"})
"""The folders of a recording; one without any of them is refused."""


FAILING = re.compile(r"(sys|proc/sys|ethtool|devlink|ibv_devinfo)/.*|ip/.*\.link\.json")
"""Where a recorded host plays a read that fails: what is read when it is needed, not when the recording is opened."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a recorded host. `rdma` contains the parsed output of each recorded rdma command."""

    tree: Tree
    rdma: Mapping[str, Rows]
    dcb: Mapping[str, Dcb] = field(default_factory=dict)
    """By network device."""
    held: RecordedObjects = field(default_factory=RecordedObjects)
    ip: RecordedIp = field(default_factory=RecordedIp)


def read_moment(tree: Tree, path: str) -> Moment:
    """The moment in this tree, of the recording that came from `path`."""
    for place in tree.errors:
        if not FAILING.fullmatch(place):
            raise RecordingError(
                f"recording {path}: {place}: only reads below sys/, proc/sys/ and ethtool/ can fail; remove it"
            )
    return Moment(
        tree,
        read_rdma(tree, path),
        _parse_dcb(tree, path),
        read_recorded_objects(tree, path),
        read_recorded_ip(tree, path),
    )


def without_wrapper(tree: Tree) -> Tree:
    """The recording itself: `tar czf host.tar.gz host/` puts everything below one folder."""
    names = tree.folders[""]
    if len(names) == 1 and not names & PARTS:
        (name,) = names
        if not name.isdecimal() and name in tree.folders:
            return tree.below(name)
    return tree


def _parse_dcb(tree: Tree, path: str) -> dict[str, Dcb]:
    documents: dict[str, dict[str, object]] = {}
    for name in sorted(tree.folders.get("dcb", ())):
        netdev, _, kind = name.removesuffix(".json").rpartition(".")
        text = tree.files.get(f"dcb/{name}", b"")
        # dcb prints an empty line if the driver does not have the requested part.
        if name.endswith(".json") and netdev and kind in (*KINDS, PEER_PFC) and text.strip():
            documents.setdefault(netdev, {})[kind] = read_json(
                text, f"recording {path}: dcb/{name}", "dcb -j"
            )
    return {netdev: read_dcb(found, netdev, path) for netdev, found in documents.items()}
