"""Queue pairs of a process without libibverbs, which has no provider for rocelab's devices: written to /dev/infiniband/uverbsN.

Follows include/uapi/rdma/ib_user_verbs.h. As a program it makes queue pairs, prints `ready`, and obeys lines of its input:
`TYPE NUMBER` makes more of them in state INIT, `destroy` destroys all. It ends, without any destroy, with its input.
"""

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GET_CONTEXT, ALLOC_PD, CREATE_CQ, CREATE_QP, MODIFY_QP, DESTROY_QP = 0, 3, 18, 24, 26, 27
HEADER = struct.Struct("=IHH")
ADDRESS = struct.Struct("=Q")
WORD = 4
RESPONSE_BYTES = 32
"""Size of the longest response used here, that to CREATE_QP."""

TYPES = {"RC": 2, "UC": 3, "UD": 4}
INIT = 1
STATE, ACCESS_FLAGS, PKEY_INDEX, PORT, QKEY = 1, 8, 16, 32, 64
TO_INIT = {
    "RC": STATE | PKEY_INDEX | PORT | ACCESS_FLAGS,
    "UC": STATE | PKEY_INDEX | PORT | ACCESS_FLAGS,
    "UD": STATE | PKEY_INDEX | PORT | QKEY,
}
"""What the InfiniBand specification requires in the transition from RESET to INIT."""


class Context:
    """A user context with a protection domain and a completion queue."""

    def __init__(self, uverbs: str) -> None:
        self.file = os.open(f"/dev/infiniband/{uverbs}", os.O_RDWR)
        self._exchange(GET_CONTEXT, b"", 8)
        (self.domain,) = struct.unpack_from("=I", self._exchange(ALLOC_PD, b"", 4))
        queue = struct.pack("=QIIiI", 0, 1, 0, -1, 0)
        (self.queue,) = struct.unpack_from("=I", self._exchange(CREATE_CQ, queue, 8))
        self.pairs: list[int] = []

    def make(self, kind: str, number: int) -> None:
        """Make queue pairs and set them to INIT, where the kernel binds them to counter sets."""
        for _ in range(number):
            wanted = struct.pack(
                "=Q9I4B", 0, self.domain, self.queue, self.queue, 0, 1, 1, 1, 1, 0, 0, TYPES[kind], 0, 0
            )
            (pair,) = struct.unpack_from("=I", self._exchange(CREATE_QP, wanted, 32))
            self.pairs.append(pair)
            change = struct.pack("=64x7IHH8B8B", pair, TO_INIT[kind], *[0] * 7, INIT, *[0] * 7, 1, *[0] * 7)
            self._write(MODIFY_QP, change, 0)

    def destroy(self) -> None:
        """Destroy all queue pairs. The context stays."""
        for pair in self.pairs:
            self._exchange(DESTROY_QP, struct.pack("=II", pair, 0), 4)
        self.pairs.clear()

    def _exchange(self, command: int, request: bytes, size: int) -> bytes:
        response = ctypes.create_string_buffer(RESPONSE_BYTES)
        self._write(command, ADDRESS.pack(ctypes.addressof(response)) + request, size)
        return response.raw

    def _write(self, command: int, request: bytes, size: int) -> None:
        length = HEADER.size + len(request)
        os.write(self.file, HEADER.pack(command, length // WORD, size // WORD) + request)


def obey(context: Context, order: str) -> None:
    """One line of the input."""
    kind, _, number = order.partition(" ")
    if kind == "destroy":
        context.destroy()
    else:
        context.make(kind, int(number))


def uverbs_of(device: str) -> str:
    """The name of the uverbs device of an RDMA device."""
    (found,) = [
        place.name
        for place in Path("/sys/class/infiniband_verbs").glob("uverbs*")
        if (place / "ibdev").read_text().strip() == device
    ]
    return found


class Tenant:
    """A process in a cgroup that has queue pairs. Sets are found by its process ID: it has one thread."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def does(self, order: str) -> None:
        """Have it obey one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(order, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n", order

    def end(self) -> None:
        """Let it end; the kernel destroys what it has."""
        self._process.communicate()
        assert self._process.returncode == 0


@contextmanager
def tenant(device: str, cgroup: Path, *orders: str) -> Iterator[Tenant]:
    """A process in a cgroup that has obeyed these lines. It ends with the block, if it has not ended before."""
    enter = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup))
    command = (*enter, sys.executable, __file__, uverbs_of(device))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        made = Tenant(process)
        for order in orders:
            made.does(order)
        yield made
        if process.poll() is None:
            made.end()


if __name__ == "__main__":
    opened = Context(sys.argv[1])
    for line in sys.stdin:
        obey(opened, line.strip())
        sys.stdout.write("done\n")
        sys.stdout.flush()
