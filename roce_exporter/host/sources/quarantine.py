"""Read files that keep failing less and less often: some firmware floods the kernel log at every attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.sources.values import NOT_ERRORS

if TYPE_CHECKING:
    from collections.abc import Collection

PATIENCE = 3
"""Failures in a row before a file is put in quarantine."""
FIRST_SECONDS = 30.0
LONGEST_SECONDS = 3600.0


class Quarantine:
    """The positions of files that are not read, and until when (monotonic seconds)."""

    def __init__(self) -> None:
        self._failures: dict[int, int] = {}
        self._until: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def __bool__(self) -> bool:
        """Whether any file failed recently, in quarantine or not."""
        return bool(self._failures)

    def skipped(self, now: float) -> Collection[int]:
        """The positions of the files not to be read at `now`."""
        return [position for position, until in self._until.items() if now < until]

    def failed(self, position: int, reason: str, now: float) -> None:
        """Enter a failure of this file at `now`; the driver's own `not available` does not count."""
        if reason in NOT_ERRORS:
            return
        failures = self._failures[position] = self._failures.get(position, 0) + 1
        if failures >= PATIENCE:
            rounds = min(failures - PATIENCE, 20)
            self._until[position] = now + min(FIRST_SECONDS * 2**rounds, LONGEST_SECONDS)

    def recovered(self, position: int) -> None:
        """Enter a successful read of this file."""
        self._failures.pop(position, None)
        self._until.pop(position, None)
