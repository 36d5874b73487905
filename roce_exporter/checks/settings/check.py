"""What a check of settings is: a row with the expected value, why it matters and how to fix it; and what its judge returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import ANY
from roce_exporter.checks.finding import Finding, Side, Status, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roce_exporter.checks.settings.profile import Profile

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
        *,
        dialect: str = ANY,
        fill: Callable[[], Mapping[str, object]] | None = None,
    ) -> Finding:
        """What this result means.

        Args:
            topic: SETTINGS or SWITCHES.
            place: device, port and network device.
            result: of `judge`.
            dialect: of the driver or the operating system.
            fill: the values that commands may contain; None: there are no commands.
        """
        texts: dict[str, str] = {}
        if result.ok is False and fill is not None:
            values = fill()
            texts = {system: command.format(**values) for system, command in self.fix.items()}
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
