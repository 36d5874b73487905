"""What a check of settings is: a row with the expected value, why it matters and how to fix it; and what its judge returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.table import parts, sections
from roce_exporter.checks.finding import Finding, Side, Status, Topic

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.checks.settings.profile import Profile

Value = TypeVar("Value")
STATUS = {True: Status.OK, False: Status.DEGRADED, None: Status.UNKNOWN}


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


def within(
    expected: str, found: Value | None, is_right: Callable[[Value], bool], shown: Callable[[Value], str]
) -> CheckResult:
    """The result for a value that has to fulfil a condition, which `expected` says in words; None: it was not read."""
    return unreadable(expected) if found is None else judged(is_right(found), expected, shown(found))


def equal(expected: object, found: object, shown: str = "{}") -> CheckResult | None:
    """The result for a value that has to be the expected one, both shown so; None: not set, or not read."""
    if expected is None:
        return None
    text = shown.format(expected)
    return unreadable(text) if found is None else judged(found == expected, text, shown.format(found))


def on_or_off(value: int | None) -> str | None:
    """`on` or `off`; None for None."""
    return None if value is None else "on" if value else "off"


def not_alone(settings: Any, profile: Profile) -> None:
    """The judge of a check that compares ports: it returns None for each of them."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a port of a host or a switch."""

    id: str
    title: str
    why: str
    judge: Callable[[Any, Profile], CheckResult | None]
    """Returns None if the profile does not set the value, or the hardware does not have it."""
    fix: Mapping[str, str]
    """Commands by driver or operating system; `ANY` is the one for all others. They may contain the names of `fill`."""
    only: tuple[str, ...] = ()
    """The drivers to which the check applies; empty for all."""
    whole: bool = False
    """Whether it is about a switch as a whole."""

    def applies_to(self, dialect: str) -> bool:
        """Whether a port of this dialect is checked."""
        return not self.only or dialect in self.only

    def finding(
        self,
        topic: Topic,
        place: tuple[str, str, str],
        result: CheckResult,
        dialect: str = ANY,
        values: Mapping[str, object] | None = None,
    ) -> Finding:
        """What this result means at a place: device, port and network device; with the commands of a driver or operating system, which may contain `values`."""
        texts = {system: command.format(**values) for system, command in self.fix.items()} if values else {}
        fix = texts.get(dialect) or texts.get(ANY, "")
        return Finding(
            topic,
            self.id,
            self.title,
            STATUS[result.ok],
            *place,
            side=Side.HOST if topic is Topic.SETTINGS else Side.FABRIC,
            expected=result.expected,
            found=result.found,
            why=self.why,
            fix=(fix,) if fix else (),
            fixes={
                "generic" if system == ANY else family_of(system).json_name or system: command
                for system, command in texts.items()
            },
        )


PARTS = ("why", "fix", *(f"fix {name}" for name in ["mlx5", "bnxt_re", "sonic", "nxos", "eos", "cumulus"]))


def read_checks(place: Path, judges: Mapping[str, Any]) -> Iterator[Check]:
    """The checks of a file `checks.txt`, whose head has its form; `judges` by name."""
    every = dict(sections(place.name, place.read_text(encoding="utf-8")))
    texts = dict(
        " ".join([entry.head, *(line.strip() for _, line in entry.more)]).split(": ", 1)
        for entry in every.pop("texts")
    )
    for heading, entries in every.items():
        for entry in entries:
            head, _, title = entry.head.partition(": ")
            name, _, only = head.partition(" of ")
            found = {part: " ".join(lines) for part, lines in parts(entry, PARTS).items() if lines}
            yield Check(
                name,
                title,
                found.pop("why"),
                not_alone if heading == "compared" else judges[name],
                {
                    part.removeprefix("fix").strip() or ANY: re.sub(
                        r"[A-Z]+(_[A-Z]+)?", lambda word: texts.get(word[0], word[0]), fix
                    )
                    for part, fix in found.items()
                },
                tuple(only.split(",")) if only else (),
                heading == "switch",
            )


def findings_of(
    topic: Topic,
    judged_ports: Iterable[tuple[Check, Any, CheckResult]],
    profile: Profile,
    fill: Callable[[Any, Profile], Mapping[str, object]],
) -> tuple[Finding, ...]:
    """The findings of results of ports of hosts or switches, whose commands `fill` completes."""
    return tuple(
        check.finding(
            topic,
            (one.device, str(one.port), one.netdev),
            result,
            one.dialect,
            fill(one, profile) if result.ok is False else None,
        )
        for check, one, result in judged_ports
    )
