"""Queue pairs that a test holds, connects and loses: `verbs_program.py` in processes of their own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = ("/usr/bin/python3", str(Path(__file__).with_name("verbs_program.py")))
"""Debian's own Python: pyverbs is a package of Debian."""


MOST_OF_A_PART = 128
"""Queue pairs that fit into a part of the kernel's list, with the buffer that the exporter has."""


@contextmanager
def running(*arguments: str, through: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """The program, through a command that starts it; at the end its input ends, and so does the program."""
    command = (*through, *PROGRAM, *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate()


@contextmanager
def holding(device: str, many: int, failed: int = 0, through: tuple[str, ...] = ()) -> Iterator[None]:
    """A process that holds queue pairs, some of them in state ERR."""
    with running("hold", device, str(many), str(failed), through=through) as process:
        assert read(process) == "ready"
        yield


@contextmanager
def talking(device: str, through: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """A process with one queue pair and one memory region, for `connect` and `write`."""
    with running("connect", device, through=through) as process:
        yield process


def connect(one: subprocess.Popen[str], other: subprocess.Popen[str]) -> None:
    """Connect the queue pairs of two processes, until both can send."""
    facts = read(one), read(other)
    order(one, facts[1])
    order(other, facts[0])
    assert (read(one), read(other)) == ("connected", "connected")


def write(process: subprocess.Popen[str]) -> str:
    """How a write to the peer's memory ended, as libibverbs calls it."""
    order(process, "write")
    return read(process)


def order(process: subprocess.Popen[str], line: str) -> None:
    """Send a line to the program."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def read(process: subprocess.Popen[str]) -> str:
    """The next line that the program prints; empty if it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
