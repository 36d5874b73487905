"""The texts of a Grafana dashboard while it is translated: what changes, and what is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roce_exporter.migrate.label_texts import legend_of
from roce_exporter.migrate.promql_labels import UntranslatedError

if TYPE_CHECKING:
    from roce_exporter.migrate.document_places import JsonDocument, Place
    from roce_exporter.migrate.promql_translation import Translation
    from roce_exporter.migrate.translation_report import FileReport


@dataclass(slots=True)
class DashboardTexts:
    """One dashboard while it is translated."""

    document: JsonDocument
    report: FileReport
    new: dict[Place, str] = field(default_factory=dict)
    """The texts that change."""
    renamed: set[str] = field(default_factory=set)
    """Labels that are renamed, or lost, anywhere in the dashboard."""

    def query(self, place: Place, text: Any, title: str, *, only_series: bool = False) -> Translation | None:
        """Translate an expression, if there is one."""
        if not isinstance(text, str):
            return None
        found = self.report.expression(text, place, title, only_series=only_series)
        if found:
            self.change(place, text, found.text)
            self.renamed |= {old for source in found.flow for old, _ in source.seen}
        return found

    def change(self, place: Place, old: str, new: str) -> None:
        """Replace a text."""
        self.report.seen.add(place)
        if new != old:
            self.new[place] = new
            self.report.translated += 1

    def legend(self, place: Place, text: Any, title: str, found: Translation) -> None:
        """A text in which `{{label}}` refers to the labels of a query."""
        if not isinstance(text, str):
            return
        try:
            self.change(place, text, legend_of(text, found))
        except UntranslatedError as error:
            self.report.leave(place, title, str(error))
