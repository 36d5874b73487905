"""One PromQL expression in, the same expression by our names out, or the reason why not; and what was done to a file.

The report of a file, as text and as JSON, has every place that was left, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.row import FULL
from roce_exporter.migrate import promql, promql_names
from roce_exporter.migrate.promql_rewrite import Rewrite, metric_of
from roce_exporter.migrate.target_labels import REMEDY, TargetLabels, faults, mapped
from roce_exporter.words import wrapped

if TYPE_CHECKING:
    from roce_exporter.migrate.foreign import Foreign
    from roce_exporter.migrate.places import Place


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated expression."""

    text: str
    flow: promql_names.Flow
    """Whose labels its result has."""
    used: tuple[Foreign, ...]
    """What its selectors were."""

    def label(self, label: str) -> str:
        """What a label of the result is called now. Raises UntranslatedError: the result has no such label, or it depends on the series."""
        return promql_names.target_of(label, self.flow)


def translate(text: str, names: promql_names.Names, *, only_series: bool = False) -> Translation | None:
    """An expression by our names; None if it has no name of another exporter. `only_series`: a selector whose values do not matter.

    Raises:
        UntranslatedError: it has one, and cannot be translated without a guess.
    """
    found = names.mentioned(text)
    recorded = set(promql_names.WORD.findall(text)) & set(names.recorded)
    if not found and not recorded and promql_names.NAME_LABEL not in text:
        return None
    try:
        tree = promql.parse(text)
    except promql.PromqlError as error:
        if not (sure := set(filter(names.certain, found))):
            return None  # another language, with a word such as job="rdma_exporter"
        found = sure
        raise promql_names.UntranslatedError(f"{', '.join(sorted(found))}: {error}") from None
    selected = set(_selected(tree, names))
    if not selected & (found | recorded):
        return None
    if only_series and tree.kind != promql.SELECTOR:
        raise promql_names.UntranslatedError("only a selector can be here")
    exporters = promql_names.exporters_of(selected & found, names)
    try:
        translations = [_translated(text, tree, Rewrite(names, one, only_series)) for one in exporters]
    except promql_names.UntranslatedError as error:
        if len(exporters) == 1:
            raise
        name = min(name for name in found if len(names.known[name]) > 1)
        owners = " and of ".join(exporters)
        raise promql_names.UntranslatedError(
            f"{name} is a name of {owners}: name one by --from ({error})"
        ) from None
    views = {
        (one.text, frozenset(pair for source in one.flow for pair in source.seen)) for one in translations
    }
    if len(views) > 1:
        differing = sorted({one.exporter for each in translations for one in each.used})
        raise promql_names.UntranslatedError(
            f"{min(selected & found)} means something else in {' and '.join(differing)}: name one by --from"
        )
    return translations[0]


def _selected(tree: promql.Node, names: promql_names.Names) -> Iterator[str]:
    """The metrics that an expression selects.

    Raises:
        UntranslatedError: it selects some by a pattern or a variable that includes other exporters' names.
    """
    for node in promql.nodes_of(tree):
        if node.kind != promql.SELECTOR:
            continue
        if node.name:
            yield _whole_name(promql.plain(node.name), names)
        for one in node.matchers:
            if promql.plain(one.label) != promql_names.NAME_LABEL or one.value is None:
                continue
            if one.sign == "=":
                yield _whole_name(promql.plain(one.value), names)
            else:
                _refuse_pattern(promql.plain(one.value), one.sign, names)


def _whole_name(name: str, names: promql_names.Names) -> str:
    if re.search(promql.VARIABLE, name) and (found := names.mentioned(name)):
        raise promql_names.UntranslatedError(
            f"{name}: a part of the name is a variable ({', '.join(sorted(found))})"
        )
    return name


def _refuse_pattern(pattern: str, sign: str, names: promql_names.Names) -> None:
    """Raise for a pattern of names, unless it is about all metrics or about none of other exporters."""
    literal = pattern.replace("\\\\", "\\")
    if sign == "!=":
        found = [literal] if names.foreign(literal) else []
    else:
        found = promql_names.matching_names(literal, names, whole=True)
    if found:
        raise promql_names.UntranslatedError(
            f"{found[0]}: metrics are selected by `{promql_names.NAME_LABEL}{sign}`, and ours have other names in common"
        )


def _translated(text: str, tree: promql.Node, rewrite: Rewrite) -> Translation:
    whole = rewrite.whole(tree)
    new = promql.replaced(text, rewrite.edits)
    try:
        exact = promql.outline(promql.parse(new)) == promql.outline(whole.node)
    except promql.PromqlError:
        exact = False
    if not exact:
        raise promql_names.UntranslatedError(
            "the translated text does not read as intended; please report this expression"
        )
    return Translation(new, whole.flow, tuple(rewrite.used))


_IN_LEGEND = re.compile(r"(\{\{\s*)([a-zA-Z_]\w*)(\s*\}\})")
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_IN_TEMPLATE = re.compile(
    r"((?:\$labels|\.Labels)\.)([a-zA-Z_]\w*)|(index\s+(?:\$labels|\.Labels)\s+\")([a-zA-Z_]\w*)(?=\")"
)


def legend_of(text: str, found: Translation) -> str:
    """A legend, `{{device}}`, with the labels of a translated query. Raises UntranslatedError: a label has no equal."""

    def renamed(match: re.Match[str]) -> str:
        label = match[2]
        if label == promql_names.NAME_LABEL:
            return match[0]
        values = {dict(source.fixed).get(label) for source in found.flow if source.may_have(label)}
        if len(values) == 1 and (value := next(iter(values))) is not None:
            return value
        return f"{match[1]}{found.label(label)}{match[3]}"

    return _IN_LEGEND.sub(renamed, text)


def template_of(text: str, found: Translation) -> str:
    """A template of an alert, `{{ $labels.device }}`, with the labels of a translated expression. Raises UntranslatedError: a label has no equal."""

    def renamed(match: re.Match[str]) -> str:
        before, label = (match[1], match[2]) if match[1] else (match[3], match[4])
        return f"{before}{found.label(label)}" if label != promql_names.NAME_LABEL else match[0]

    return _TEMPLATE.sub(lambda match: _IN_TEMPLATE.sub(renamed, match[0]), text)


def mentions_label(text: str, label: str) -> bool:
    """Whether a text is the label, or refers to it as Grafana's fields, links and templates do."""
    if text == label:
        return True
    name = re.escape(label)
    # ${__field.labels.device}, {{device}}, {device="x"}, labels["device"]
    forms = (rf"labels\.{name}\b", rf"[{{,]\s*{name}\s*[=!}},]", rf"labels\[[\"']{name}[\"']\]")
    return any(re.search(form, text) for form in forms)


_FABRIC = re.compile(
    r"(?:^|[_:])(?:infiniband|rdma|roce(?:v2)?|(?:amazon)?efa|pfc|cnps?|dcqcn|hca|mlx\d*)(?:[_:]|$)"
)
"""Words in the names of metrics about RDMA."""


def unknown_metrics(text: str, names: promql_names.Names) -> list[str]:
    """The metrics about RDMA that an expression selects and that no exporter known here has; with ours where the raw name says it."""
    if not re.search("infiniband|rdma|roce|efa|pfc|cnp|dcqcn|hca|mlx", text):
        return []
    try:
        tree = promql.parse(text)
    except promql.PromqlError:
        return []
    selected = {metric_of(node) for node in promql.nodes_of(tree) if node.kind == promql.SELECTOR}
    unknown = {
        name
        for name in selected
        if _FABRIC.search(name) and not name.startswith("roce_exporter_") and not re.search(":.*roce_", name)
        if name not in names.own and name not in INDEX.named and not names.foreign(name)
    }
    return [
        f"{name}: recorded by a rule that is in none of these files: translate them together"
        if ":" in name
        else f"{name}: not a metric of an exporter that this version knows{promql_names.ours_of(name)}"
        for name in sorted(unknown)
    ]


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
    names: promql_names.Names
    translated: int = 0
    """Texts that were changed."""
    left: list[Remark] = field(default_factory=list)
    """Places that were not translated although they should be."""
    notes: list[Remark] = field(default_factory=list)
    """Places that are translated, or need no translation, with something to know."""
    seen: set[Place] = field(default_factory=set)
    """Places that are dealt with."""
    used: dict[str, Foreign] = field(default_factory=dict)
    labels: TargetLabels = field(default_factory=TargetLabels)
    full_set: bool = False
    """Whether the exporter serves all metrics."""
    unmapped: bool = False
    """Whether a place was left for a label of its target."""

    def expression(
        self, text: str, place: Place, title: str, *, only_series: bool = False
    ) -> Translation | None:
        """The translation of an expression; None if there is nothing to translate, or it is reported as left."""
        self.seen.add(place)
        try:
            found = translate(mapped(text, self.names, self.labels), self.names, only_series=only_series)
        except promql_names.UntranslatedError as error:
            self.leave(place, title, str(error))
            return None
        unknown = unknown_metrics(text, self.names)
        unmapped = faults(text, self.names, self.labels) if found else []
        self.unmapped = self.unmapped or bool(unmapped)
        if why := unknown + unmapped:
            self.leave(place, title, "; ".join(why))
            return None
        for one in found.used if found else ():
            self.used.setdefault(one.name, one)
        return found

    @property
    def not_served(self) -> list[str]:
        """The metrics of translated places that the exporter serves only with --metrics.set=full."""
        return [] if self.full_set else sorted({one.ours for one in self.used.values()} & OF_FULL_SET)

    @property
    def complete(self) -> bool:
        """Whether every place has what it had before."""
        return not self.left and not self.not_served

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
        return sorted(filter(self.names.certain, self.names.mentioned(text)))


def path_text(place: Place) -> str:
    """A place as users write it: `panels[3].targets[0].expr`. A number in front is that of a YAML document."""
    document = ""
    if place and isinstance(place[0], int):
        document = f"document {place[0] + 1}: " if place[0] else ""
        place = place[1:]
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return document + text.removeprefix(".")


def report_text(reports: Iterable[FileReport], width: int | None = None) -> str:
    """The reports for people: a line per file, and one per place, which on a terminal are wrapped to its width."""
    lines: list[str] = []
    for one in reports:
        none = "" if one.translated or one.left else ": no name of an exporter that is translated"
        lines.append(f"{one.file}: {one.translated} translated, {len(one.left)} left{none}")
        lines += [f"  left  {_line(found)}" for found in one.left]
        lines += [f"  map   {REMEDY}"] * one.unmapped
        lines += [f"  note  {_line(found)}" for found in one.notes]
        used = sorted(one.used.items())
        lines += [f"  note  {name} is {ours.ours} here: {ours.loss}" for name, ours in used if ours.loss]
        if one.not_served:
            names = ", ".join(one.not_served)
            lines.append(
                f"  set   need --metrics.set=full, here and of the exporter, or alerts never fire: {names}"
            )
    return "".join(f"{part}\n" for line in lines for part in wrapped(line, width, " " * 8))


def _line(found: Remark) -> str:
    title = f" ({found.title})" if found.title else ""
    return " ".join(f"{found.path}{title}: {found.text}".lstrip(": ").split())


def report_json(reports: Sequence[FileReport]) -> str:
    """The reports for programs: a JSON object with a list of files."""
    files = [
        {
            "file": one.file,
            "translated": one.translated,
            "left": [found._asdict() for found in one.left],
            "notes": [found._asdict() for found in one.notes],
            "needs_full_set": one.not_served,
            "metrics": [
                {"from": name, "to": used.ours, "exporter": used.exporter, "loss": used.loss}
                for name, used in sorted(one.used.items())
            ],
        }
        for one in reports
    ]
    left = [f"{one.file}: {_line(found)}" for one in reports for found in one.left]
    left += [f"{one.file}: {name} needs --metrics.set=full" for one in reports for name in one.not_served]
    unseen = [{"what": what, "needed": True} for what in left]
    return json.dumps({"version": 1, "files": files, "not_checked": unseen}, indent=2) + "\n"
