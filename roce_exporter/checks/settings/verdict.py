"""What a check is, and what it finds: the expected and the actual value, whether that is right, why it matters, how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roce_exporter.checks.settings.port_settings import PortSettings
from roce_exporter.checks.settings.profile import Profile


class CheckResult(NamedTuple):
    """What one check finds on one port. `ok` is None if a value that the check needs cannot be read."""

    ok: bool | None
    expected: str
    found: str = ""


def judged(ok: bool, expected: object, found: object) -> CheckResult:
    """The result of a check whose values were read."""
    return CheckResult(ok, str(expected), str(found))


def unreadable(expected: object) -> CheckResult:
    """The result of a check that lacks a value."""
    return CheckResult(None, str(expected))


Judge = Callable[[PortSettings, Profile], CheckResult | None]
"""Returns None if the profile does not set the value, or the hardware does not have it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a port or of one network device of it."""

    id: str
    title: str
    why: str
    judge: Judge
    fix: Mapping[str, str]
    """Commands by dialect; `ANY` is the command for all other drivers. They may contain the names of `commands.fill`."""
    only: tuple[str, ...] = ()
    """The dialects to which the check applies; empty for all."""

    def applies_to(self, dialect: str) -> bool:
        """Whether a port of this dialect is checked."""
        return not self.only or dialect in self.only


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check on one port or network device."""

    check: Check
    settings: PortSettings
    result: CheckResult
