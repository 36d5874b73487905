"""The recorded hosts and switches of `tests/recordings`: one text each, whose form `roce_exporter/host/recorded/archive.py` describes.

    python tests/recorded.py tests/recordings/bnxt.txt /tmp/bnxt               unpack one into a folder
    python tests/recorded.py /tmp/bnxt tests/recordings/bnxt.txt               and write it again
    python tests/recorded.py /tmp/new tests/recordings/new.txt audit-cable-100m    as what differs from another one

All bytes and links stay as they are; `roce-exporter capture` would replace addresses and names.
"""

import asyncio
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from roce_exporter.host.recorded.archive import SUFFIX, load_tree, write_tree
from roce_exporter.host.recorded.tree import RecordingError

RECORDINGS = Path(__file__).parent / "recordings"
HOSTS = sorted(place.stem for place in RECORDINGS.glob(f"*{SUFFIX}") if not place.name.startswith("switch-"))


def recording(name: str) -> str:
    """Where the recording is."""
    return str(RECORDINGS / f"{name}{SUFFIX}")


@cache
def files(name: str) -> Mapping[str, str]:
    """The text of every file of a recorded host or switch, by its path."""
    tree = load_tree(recording(name))
    return {path: content.decode(errors="surrogateescape") for path, content in tree.files.items()}


def convert(source: str, output: str, base: str = "") -> None:
    """Write a recording in another form: a text, a .tar.gz or else a folder."""
    if Path(output).is_dir():
        sys.exit(f"{output} exists already; remove it, or name another")
    try:
        tree = load_tree(source)
        Path(output).unlink(missing_ok=True)
        asyncio.run(write_tree(tree, output, base))
    except (RecordingError, OSError) as error:
        sys.exit(f"{output}: {error}")


if __name__ == "__main__":
    convert(*sys.argv[1:])
