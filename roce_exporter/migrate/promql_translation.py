"""One PromQL expression in, the same expression by our names out, or the reason why not; and texts that refer to its labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.migrate.promql import (
    SELECTOR,
    VARIABLE,
    Node,
    PromqlError,
    nodes_of,
    outline,
    parse,
    plain,
    replaced,
)
from roce_exporter.migrate.promql_names import (
    NAME_LABEL,
    WORD,
    Flow,
    UntranslatedError,
    exporters_of,
    matching_names,
    target_of,
)
from roce_exporter.migrate.promql_rewrite import Rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.migrate.foreign import Foreign
    from roce_exporter.migrate.promql_names import Names


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated expression."""

    text: str
    flow: Flow
    """Whose labels its result has."""
    used: tuple[Foreign, ...]
    """What its selectors were."""

    def label(self, label: str) -> str:
        """What a label of the result is called now.

        Raises:
            UntranslatedError: the result has no such label, or it depends on the series.
        """
        return target_of(label, self.flow)


def mentioned(text: str, names: Names) -> set[str]:
    """The names of other exporters in a text of any kind."""
    return names.of(WORD.findall(text))


def translate(text: str, names: Names, *, only_series: bool = False) -> Translation | None:
    """An expression by our names; None if it has no name of another exporter. `only_series`: a selector whose values do not matter.

    Raises:
        UntranslatedError: it has one, and cannot be translated without a guess.
    """
    found = mentioned(text, names)
    recorded = set(WORD.findall(text)) & set(names.recorded)
    if not found and not recorded and NAME_LABEL not in text:
        return None
    try:
        tree = parse(text)
    except PromqlError as error:
        if not (sure := set(filter(names.certain, found))):
            return None  # another language, with a word such as job="rdma_exporter"
        found = sure
        raise UntranslatedError(f"{', '.join(sorted(found))}: {error}") from None
    selected = set(_selected(tree, names))
    if not selected & (found | recorded):
        return None
    if only_series and tree.kind != SELECTOR:
        raise UntranslatedError("only a selector can be here")
    exporters = exporters_of(selected & found, names)
    translations = [_translated(text, tree, Rewrite(names, one, only_series)) for one in exporters]
    views = {
        (one.text, frozenset(pair for source in one.flow for pair in source.seen)) for one in translations
    }
    if len(views) > 1:
        differing = sorted({one.exporter for each in translations for one in each.used})
        raise UntranslatedError(f"it differs by exporter: name one by --from ({', '.join(differing)})")
    return translations[0]


def _selected(tree: Node, names: Names) -> Iterator[str]:
    """The metrics that an expression selects.

    Raises:
        UntranslatedError: it selects some by a pattern or a variable that includes other exporters' names.
    """
    for node in nodes_of(tree):
        if node.kind != SELECTOR:
            continue
        if node.name:
            yield _whole_name(plain(node.name), names)
        for one in node.matchers:
            if plain(one.label) != NAME_LABEL or one.value is None:
                continue
            if one.sign == "=":
                yield _whole_name(plain(one.value), names)
            else:
                _refuse_pattern(plain(one.value), one.sign, names)


def _whole_name(name: str, names: Names) -> str:
    if re.search(VARIABLE, name) and (found := mentioned(name, names)):
        raise UntranslatedError(f"{name}: a part of the name is a variable ({', '.join(sorted(found))})")
    return name


def _refuse_pattern(pattern: str, sign: str, names: Names) -> None:
    """Raise for a pattern of names, unless it is about all metrics or about none of other exporters."""
    literal = pattern.replace("\\\\", "\\")
    if sign == "!=":
        found = [literal] if names.foreign(literal) else []
    else:
        found = matching_names(literal, names, whole=True)
    if found:
        raise UntranslatedError(
            f"{found[0]}: metrics are selected by `{NAME_LABEL}{sign}`, and ours have other names in common"
        )


def _translated(text: str, tree: Node, rewrite: Rewrite) -> Translation:
    whole = rewrite.whole(tree)
    new = replaced(text, rewrite.edits)
    try:
        exact = outline(parse(new)) == outline(whole.node)
    except PromqlError:
        exact = False
    if not exact:
        raise UntranslatedError(
            "the translated text does not read as intended; please report this expression"
        )
    return Translation(new, whole.flow, tuple(rewrite.used))


_IN_LEGEND = re.compile(r"(\{\{\s*)([a-zA-Z_]\w*)(\s*\}\})")
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_IN_TEMPLATE = re.compile(
    r"((?:\$labels|\.Labels)\.)([a-zA-Z_]\w*)|(index\s+(?:\$labels|\.Labels)\s+\")([a-zA-Z_]\w*)(?=\")"
)


def legend_of(text: str, found: Translation) -> str:
    """A legend, `{{device}}`, with the labels of a translated query.

    Raises:
        UntranslatedError: a label has no equal.
    """

    def renamed(match: re.Match[str]) -> str:
        label = match[2]
        if label == NAME_LABEL:
            return match[0]
        values = {dict(source.fixed).get(label) for source in found.flow if source.may_have(label)}
        if len(values) == 1 and (value := next(iter(values))) is not None:
            return value
        return f"{match[1]}{found.label(label)}{match[3]}"

    return _IN_LEGEND.sub(renamed, text)


def template_of(text: str, found: Translation) -> str:
    """A template of an alert, `{{ $labels.device }}`, with the labels of a translated expression.

    Raises:
        UntranslatedError: a label has no equal.
    """

    def renamed(match: re.Match[str]) -> str:
        before, label = (match[1], match[2]) if match[1] else (match[3], match[4])
        return f"{before}{found.label(label)}" if label != NAME_LABEL else match[0]

    return _TEMPLATE.sub(lambda match: _IN_TEMPLATE.sub(renamed, match[0]), text)


def mentions_label(text: str, label: str) -> bool:
    """Whether a text is the label, or refers to it as Grafana's fields, links and templates do."""
    if text == label:
        return True
    name = re.escape(label)
    # ${__field.labels.device}, {{device}}, {device="x"}, labels["device"]
    forms = (rf"labels\.{name}\b", rf"[{{,]\s*{name}\s*[=!}},]", rf"labels\[[\"']{name}[\"']\]")
    return any(re.search(form, text) for form in forms)
