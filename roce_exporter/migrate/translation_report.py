"""What a translation did to one file, as text and as JSON: every place that was left, with the reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import FULL
from roce_exporter.migrate.promql_names import UntranslatedError
from roce_exporter.migrate.promql_translation import Translation, mentioned, translate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.migrate.foreign import Foreign
    from roce_exporter.migrate.places import Place
    from roce_exporter.migrate.promql_names import Names

OF_FULL_SET = frozenset(row.name for row in CATALOG if row.metric_set is FULL)
"""Metrics that the exporter serves only if it is started with --metrics.set=full."""


class UnreadableError(Exception):
    """A file that cannot be translated at all: one phrase that says why."""


class Remark(NamedTuple):
    """A place of a file, and what is to be known of it."""

    path: str
    title: str
    """Of the panel or rule that the place is in; may be empty."""
    text: str


@dataclass(slots=True)
class FileReport:
    """The account of one file while it is translated."""

    file: str
    names: Names
    translated: int = 0
    """Texts that were changed."""
    left: list[Remark] = field(default_factory=list)
    """Places that were not translated although they should be."""
    notes: list[Remark] = field(default_factory=list)
    """Places that are translated, or need no translation, with something to know."""
    seen: set[Place] = field(default_factory=set)
    """Places that are dealt with."""
    used: dict[str, Foreign] = field(default_factory=dict)

    def expression(
        self, text: str, place: Place, title: str, *, only_series: bool = False
    ) -> Translation | None:
        """The translation of an expression; None if there is nothing to translate, or it is reported as left."""
        self.seen.add(place)
        try:
            found = translate(text, self.names, only_series=only_series)
        except UntranslatedError as error:
            self.leave(place, title, str(error))
            return None
        for one in found.used if found else ():
            self.used.setdefault(one.name, one)
        return found

    def leave(self, place: Place, title: str, why: str) -> None:
        """Report a place that stays as it was."""
        self.seen.add(place)
        self.left.append(Remark(path_text(place), title, why))

    def note(self, place: Place, title: str, text: str) -> None:
        """Report something to know of a place."""
        self.seen.add(place)
        self.notes.append(Remark(path_text(place), title, text))

    def named(self, text: str) -> list[str]:
        """The other exporters' metrics that a text which is no expression mentions."""
        return sorted(filter(self.names.certain, mentioned(text, self.names)))


def path_text(place: Place) -> str:
    """A place as users write it: `panels[3].targets[0].expr`. A number in front is that of a YAML document."""
    document = ""
    if place and isinstance(place[0], int):
        document = f"document {place[0] + 1}: " if place[0] else ""
        place = place[1:]
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return document + text.removeprefix(".")


def report_text(reports: Iterable[FileReport]) -> str:
    """The reports for people: a line per file, and one per place."""
    lines = []
    for one in reports:
        lines.append(f"{one.file}: {one.translated} translated, {len(one.left)} left")
        lines += [f"  left  {_line(found)}" for found in one.left]
        lines += [f"  note  {_line(found)}" for found in one.notes]
        used = sorted(one.used.items())
        lines += [f"  note  {name} is {ours.ours} here: {ours.loss}" for name, ours in used if ours.loss]
        if full := sorted({ours.ours for _, ours in used} & OF_FULL_SET):
            lines.append(f"  note  in the set full only (--metrics.set=full): {', '.join(full)}")
    return "".join(f"{line}\n" for line in lines)


def _line(found: Remark) -> str:
    title = f" ({found.title})" if found.title else ""
    return " ".join(f"{found.path}{title}: {found.text}".lstrip(": ").split())


def report_json(reports: Iterable[FileReport]) -> str:
    """The reports for programs: a JSON object with a list of files."""
    files = [
        {
            "file": one.file,
            "translated": one.translated,
            "left": [found._asdict() for found in one.left],
            "notes": [found._asdict() for found in one.notes],
            "needs_full_set": sorted({used.ours for used in one.used.values()} & OF_FULL_SET),
            "metrics": [
                {"from": name, "to": used.ours, "exporter": used.exporter, "loss": used.loss}
                for name, used in sorted(one.used.items())
            ],
        }
        for one in reports
    ]
    return json.dumps({"files": files}, indent=2) + "\n"
