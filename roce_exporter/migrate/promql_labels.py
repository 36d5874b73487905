"""What becomes of labels: of a metric that is renamed, and through the expression around it.

A label list such as `by (device)` can be translated only if the label is renamed alike in all series that reach it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.migrate.naming import Pairs

NAME_LABEL = "__name__"


class UntranslatedError(Exception):
    """What cannot be translated without a guess: one phrase that says why."""


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Where series that reach a part of an expression have their labels from: one selector."""

    metric: str
    """As it was called before the translation; for messages."""
    translated: bool = False
    """Whether the metric is renamed; the labels of others are unknown, and stay."""
    renamed: Pairs = ()
    """Their labels and ours."""
    fixed: Pairs = ()
    """Labels that only theirs has, with the only value that was selected."""
    lost: frozenset[str] = frozenset()
    """Labels that only theirs has."""
    gained: frozenset[tuple[str, str]] = frozenset()
    """Labels that only ours has, and the value if it is always the same."""
    only: frozenset[str] | None = None
    """The labels that an aggregation left, in their names; None: all."""
    dropped: frozenset[str] = frozenset()

    def may_have(self, label: str) -> bool:
        """Whether series can have the label here."""
        return label not in self.dropped and (self.only is None or label in self.only)

    def target(self, label: str) -> str:
        """What the label is called after the translation.

        Raises:
            UntranslatedError: only one of the two metrics has it.
        """
        if not self.translated:
            return label
        if label == NAME_LABEL:
            raise UntranslatedError(f"`{NAME_LABEL}` is used, and {self.metric} has another name here")
        if label in self.lost or label in dict(self.fixed):
            raise UntranslatedError(f"the label `{label}` of {self.metric} has no equal here")
        if new := dict(self.renamed).get(label):
            return new
        if label in dict(self.gained) or label in dict(self.renamed).values():
            raise UntranslatedError(
                f"the label `{label}` is used, and means something else here than with {self.metric}"
            )
        return label

    @property
    def changes(self) -> tuple[str, ...]:
        """The labels that have another name here and can still be present."""
        return tuple(old for old, new in self.renamed if old != new and self.may_have(old))

    @property
    def seen(self) -> frozenset[tuple[str, str]]:
        """What a user of the series sees of the translation: labels that are renamed, or lost (with an empty second name)."""
        old = ((label, "") for label in (*self.lost, *dict(self.fixed)))
        pairs = (*(pair for pair in self.renamed if pair[0] != pair[1]), *old)
        return frozenset(pair for pair in pairs if self.may_have(pair[0]))


Flow = frozenset[LabelSource]
"""The sources of a vector; empty for a scalar or a string."""


def target_of(label: str, flow: Iterable[LabelSource]) -> str:
    """What a label is called after the translation, if that is the same for all sources.

    Raises:
        UntranslatedError: it is not, or one of the metrics does not have the label.
    """
    found = {source.target(label): source.metric for source in flow if source.may_have(label)}
    if len(found) > 1:
        (one, first), (other, second), *_ = sorted(found.items())
        raise UntranslatedError(
            f"the label `{label}` becomes `{one}` with {first} and `{other}` with {second}, which are used together"
        )
    return next(iter(found), label)


def kept(flow: Flow, labels: Iterable[str]) -> Flow:
    """What is left of the labels by `by` or `on`."""
    some = frozenset(labels)
    return frozenset(
        replace(one, only=some if one.only is None else one.only & some, gained=frozenset()) for one in flow
    )


def without(flow: Flow, labels: Iterable[str], gained: Iterable[str] = ()) -> Flow:
    """What is left of the labels by `without` or `ignoring`, with these of ours in addition."""
    removed, ours = frozenset(labels), frozenset(gained)
    return frozenset(
        replace(
            one,
            dropped=one.dropped | removed,
            gained=frozenset(pair for pair in one.gained if pair[0] not in ours),
        )
        for one in flow
    )


def gained_by(flow: Flow) -> tuple[str, ...]:
    """The labels that only ours have, sorted, so that `without` can remove them.

    Raises:
        UntranslatedError: another metric next to it can have such a label of its own.
    """
    labels = {label for one in flow for label, _ in one.gained}
    for label in sorted(labels):
        _refuse_others(label, flow)
    return tuple(sorted(labels))


def unequal(left: Flow, right: Flow) -> tuple[str, ...]:
    """The labels of ours by which two sides differ that matched before.

    Raises:
        UntranslatedError: a label is renamed on one side only, or another metric can have such a label of its own.
    """
    both = left | right
    for label in sorted({label for one in both for label in one.changes}):
        target_of(label, both)
    differ: set[str] = set()
    first = next(iter(both)).gained if both else frozenset()
    for one in both:
        differ |= {label for label, _ in one.gained ^ first}
    for label in sorted(differ):
        _refuse_others(label, both)
    return tuple(sorted(differ))


def _refuse_others(label: str, flow: Flow) -> None:
    for one in flow:
        own = label in dict(one.gained)
        if not own and one.may_have(label) and (not one.translated or label in _labels(one)):
            raise UntranslatedError(
                f"the metric here has the label `{label}` in addition, which {one.metric} next to it can have too"
            )


def _labels(source: LabelSource) -> set[str]:
    return {label for pair in source.renamed for label in pair}
