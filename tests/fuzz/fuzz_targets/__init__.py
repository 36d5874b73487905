"""One module per decoder: `decode` accepts any bytes and raises only if the decoder is wrong.

Each module names in `ALLOWED` the exceptions that its decoder may raise for bad input, in `CORE` the modules whose
lines count as covered, and in `WORDS` texts that random bytes would rarely contain.
"""

from base64 import b64decode
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

NAMES = (
    "rdma_netlink",
    "object_netlink",
    "ethtool_netlink",
    "dcb_netlink",
    "rtnetlink_devlink",
    "ethtool_ioctl",
    "transceiver",
    "archive",
    "recording",
    "recording_text",
    "http_head",
    "config_file",
    "web_config_file",
    "wire_packets",
    "kernel_log",
    "link_frames",
    "cgroups",
    "redis_replies",
    "gnmi_replies",
    "translate",
)


CORPUS = Path(__file__).parents[1] / "corpus"


class Target(NamedTuple):
    """One decoder under test."""

    decode: Callable[[bytes], None]
    core: tuple[str, ...]
    words: tuple[bytes, ...]


def load(name: str) -> Target:
    """The target of this name."""
    module = import_module(f"fuzz_targets.{name}")
    return Target(module.decode, module.CORE, getattr(module, "WORDS", ()))


def corpus(name: str) -> dict[str, bytes]:
    """The kept inputs of a target: a line for each, its name and the bytes in base64."""
    lines = (CORPUS / f"{name}.txt").read_text().splitlines()
    return {word: b64decode(text) for word, text in (line.split(" ") for line in lines)}
