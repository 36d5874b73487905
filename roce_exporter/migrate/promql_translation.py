"""One PromQL expression in, the same expression by our names out, or the reason why not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.migrate.promql_labels import NAME_LABEL, Flow, UntranslatedError, target_of
from roce_exporter.migrate.promql_names import WORD, exporters_of, matching_names
from roce_exporter.migrate.promql_rewrite import Rewrite
from roce_exporter.migrate.promql_tokens import VARIABLE, PromqlError, replaced
from roce_exporter.migrate.promql_tree import SELECTOR, Node, nodes_of, outline, parse, plain

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
    return _only([_translated(text, tree, Rewrite(names, one, only_series)) for one in exporters])


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


def _only(found: list[Translation]) -> Translation:
    """The one translation, if those of all exporters agree."""
    views = {(one.text, frozenset(pair for source in one.flow for pair in source.seen)) for one in found}
    if len(views) > 1:
        exporters = sorted({one.exporter for each in found for one in each.used})
        raise UntranslatedError(f"it differs by exporter: name one by --from ({', '.join(exporters)})")
    return found[0]
