"""A recording as a text. What is read is the same after it is written and read again."""

import contextlib
import io

from fuzz_targets.host import visit
from roce_exporter.host.recorded.archive import print_tree, read_text
from roce_exporter.host.recorded.recorded import play_recording
from roce_exporter.host.recorded.tree import RecordingError, Tree

ALLOWED = (RecordingError,)
CORE = ("host/recorded/archive.py", "host/recorded/archive.py")
WORDS = (
    b"recording 1\n",
    b"base other\n",
    b"sys/class/infiniband/mlx5_0/ports/1/state",
    b"ethtool/eth0.stats",
    b" =\n|",
    b" ~\n|     rx_bytes: 7\n",
    b" = base64\n|",
    b" -> ",
    b" ! EINVAL\n",
    b"- ",
    b"\n\\",
    b"\n@ 1\n",
    b"\nend\n",
    b'"sys/a b": 5\n',
)
BASE = b"recording 1\nethtool/eth0.stats =\n|NIC statistics:\n|     rx_bytes: 5\n|     tx_bytes: 6\nsys/a: 1\nend\n"


def read_base(name: str) -> Tree:
    def refuse(_: str) -> Tree:
        raise RecordingError("a base with a base; remove it")

    return read_text(io.BytesIO(BASE), refuse)


def decode(data: bytes) -> None:
    try:
        tree = read_text(io.BytesIO(data), read_base)
    except ALLOWED as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - the message is under test
        return
    for text in (print_tree(tree), print_tree(tree, "other", read_base("other"))):
        again = read_text(io.BytesIO(text.encode()), read_base)
        assert (again.content(), again.folders) == (tree.content(), tree.folders)
    with contextlib.suppress(RecordingError):
        visit(play_recording(tree, "FILE"))
