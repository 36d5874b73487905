"""Prometheus and Alertmanager as child processes: begun, watched, and ended for certain.

Nothing else in this package starts a process, and these two are never asked for a counter.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

PATIENCE = 5.0
"""Seconds from SIGTERM to SIGKILL."""

PR_SET_PDEATHSIG = 1
"""What prctl(2) does: a signal to this process when its parent dies."""

LIBC = ctypes.CDLL(None)

SHOWN = 200
"""Characters of a child's last words that are shown."""


@dataclass(frozen=True, slots=True)
class Child:
    """One child process and where its output goes."""

    name: str
    process: Process
    log: Path

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.returncode is None


@contextlib.asynccontextmanager
async def running(
    name: str, argv: Sequence[str], log: Path, patience: float = PATIENCE
) -> AsyncIterator[Child]:
    """A child process; at the end of the block it is gone.

    Raises:
        OSError: it cannot be begun.
    """
    child = Child(name, await _begin(argv, log), log)
    try:
        yield child
    finally:
        await _end(child.process, patience)


async def _begin(argv: Sequence[str], log: Path) -> Process:
    with log.open("wb") as output:
        # A session of its own: the terminal's Ctrl-C is for the demo, which then ends its children in order.
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_the_parent,
        )


def _end_with_the_parent() -> None:
    # In the child: a demo that is killed can end nobody in order.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def _end(process: Process, patience: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), patience)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def obituary(child: Child) -> str:
    """One line: how a child ended that nobody asked to, and, if it ended by itself, its last words."""
    code = child.process.returncode or 0
    if code < 0:
        return f"{child.name} was ended by {signal.Signals(-code).name}; the rest goes on"
    words = child.log.read_text(errors="replace").strip().splitlines()[-1:]
    return f"{child.name} ended with code {code}; the rest goes on{''.join(f': {line[-SHOWN:]}' for line in words)}"
