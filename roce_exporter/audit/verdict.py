"""What a check says: the expected and the found, whether that is right, why it matters and what would mend it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from roce_exporter.audit.facts import Facts
from roce_exporter.audit.profile import Profile


class Answer(NamedTuple):
    """What one check finds on one port. `ok` None: what it needs cannot be read."""

    ok: bool | None
    expected: str
    found: str = ""


def judged(ok: bool, expected: object, found: object) -> Answer:
    """The answer of a check that could be made."""
    return Answer(ok, str(expected), str(found))


def unreadable(expected: object) -> Answer:
    """The answer of a check whose fact is not told."""
    return Answer(None, str(expected))


class Mend(NamedTuple):
    """Commands that would mend it; printed, never run. Each may hold the names that `commands.fill` knows."""

    generic: str
    mlx5: str = ""
    bnxt: str = ""


Judge = Callable[[Facts, Profile], Answer | None]
"""None: the profile does not ask, or the hardware has no such thing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a port or of one network device of it."""

    id: str
    title: str
    why: str
    judge: Judge
    mend: Mend


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says of one place."""

    check: Check
    facts: Facts
    answer: Answer
