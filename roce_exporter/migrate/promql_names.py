"""The names of other exporters that a translation knows, which of our metrics a selector becomes, and what becomes of its labels.

A label list such as `by (device)` can be translated only if the label is renamed alike in all series that reach it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.migrate import rdma_exporter, spiderpool
from roce_exporter.migrate.foreign import EXPORTERS, HOSTS, Foreign, foreign_metrics, untranslatable
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
        """What the label is called after the translation. Raises UntranslatedError: only one of the two metrics has it."""
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


Flow = frozenset[LabelSource]  # the sources of a vector; empty for a scalar or a string


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
        named = {name for pair in one.renamed for name in pair}
        if not own and one.may_have(label) and (not one.translated or label in named):
            raise UntranslatedError(
                f"the metric here has the label `{label}` in addition, which {one.metric} next to it can have too"
            )


WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
UNLIKELY = "no_metric_is_called_like_this"
"""A pattern that matches this name is not about certain metrics."""
PREFIXES = {
    "node_exporter": ("node_infiniband_", "node_ethtool_", "node_amazonefa_"),
    "rdma_exporter": ("rdma_",),
    "spiderpool": ("rdma_",),
}
"""How names begin that only these exporters write. Such a name that is not known is reported."""
LOST: Mapping[tuple[str, str], frozenset[str]] = {
    ("spiderpool", ""): frozenset(spiderpool.LOST),
    ("rdma_exporter", "rdma_port_info"): frozenset(rdma_exporter.LOST),
}
"""Labels of an exporter's metrics that ours do not have, for all its metrics (an empty name) or for one."""
BEGINNINGS = ("node_", "rdma_")  # how all names of these exporters begin


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the exporters that are translated."""

    known: Mapping[str, tuple[Foreign, ...]]
    refused: Mapping[str, str]
    """Patterns of names without a metric of ours, and why."""
    prefixes: tuple[str, ...]
    own: frozenset[str] = frozenset()
    """The names of the user's own recording rules."""
    recorded: Mapping[str, Flow] = field(default_factory=dict)
    """Those of them whose series change their labels, and from what they are recorded."""

    def mentioned(self, text: str) -> set[str]:
        """The names of other exporters in a text of any kind."""
        return {word for word in WORD.findall(text) if self.foreign(word)}

    def foreign(self, word: str) -> bool:
        """Whether a word is, or begins like, a name of another exporter. A colon is in names of recording rules only."""
        if word in self.own or ":" in word:
            return False
        return word in self.known or word.startswith(self.prefixes) or self.reason(word) is not None

    def certain(self, word: str) -> bool:
        """Whether a word can only be a metric, also outside of an expression: `rdma_exporter` may be a job."""
        return self.foreign(word) and (
            word in self.known or not word.startswith("rdma_") or self.reason(word) is not None
        )

    def reason(self, word: str) -> str | None:
        """Why a known name has no metric of ours; None for a name that is not known."""
        if not word.startswith(BEGINNINGS):
            return None
        return next((why for name, why in self.refused.items() if _compiled(name).fullmatch(word)), None)


_compiled = cache(re.compile)


@cache
def names_of(exporters: tuple[str, ...] = EXPORTERS) -> Names:
    """The names of some exporters."""
    known: defaultdict[str, tuple[Foreign, ...]] = defaultdict(tuple)
    refused: dict[str, str] = {}
    for exporter in exporters:
        for one in foreign_metrics(exporter):
            known[one.name] += (one,)
        refused |= untranslatable(exporter)
    prefixes = {prefix for exporter in exporters for prefix in PREFIXES[exporter]}
    return Names(dict(known), refused, tuple(sorted(prefixes)))


def guessed(text: str, names: Names) -> Names:
    """The names, without exporters that a whole file is not from.

    A name that two exporters have is of the one that alone has another name of the file, or that the file mentions.
    """
    having = [
        {one.exporter for one in names.known[word]} for word in {*WORD.findall(text)} & names.known.keys()
    ]
    sure = {one for each in having if len(each) == 1 for one in each}
    several = [each for each in having if len(each) > 1]
    sure = sure or {one for each in several for one in each if re.search(rf"(?<!\w){one}(?!\w)", text)}
    others = {one for each in several if each & sure for one in each - sure}
    if not others:
        return names
    known = {
        name: tuple(one for one in each if one.exporter not in others) for name, each in names.known.items()
    }
    return replace(names, known={name: each for name, each in known.items() if each})


@cache
def _raw_names() -> Mapping[str, Mapping[str, set[str]]]:
    """The metrics of ours that a raw name of a host is, alone, each with the drivers on which it is."""
    found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in sorted(CATALOG, key=lambda one: one.name):
        for spelling in row.spellings:
            if spelling.dialect in HOSTS and len(spelling.raw) == 1:
                found[spelling.raw[0]][row.name].add(spelling.dialect)
    return found


def ours_of(name: str) -> str:
    """What the longest raw name of several words at the end of a name is here, as a part of a reason; empty if it has none, or is of switches.

    Of a driver that the name names, what it is there: `efa` in `my_efa_tx_bytes`.
    """
    words = name.removesuffix("_total").split("_")
    ends = {"_".join(words[at:]): words[:at] for at in range(1, len(words) - 1)}
    raw = next((end for end in ends if end in _raw_names()), "")
    if not raw or {"switch", "pfc"} & {*ends[raw]}:
        return ""
    known = _raw_names()[raw]
    named = [ours for ours, drivers in known.items() if any(driver in name for driver in drivers)]
    return f"; `{raw}` is {' or '.join(named or known)} here"


def exporters_of(found: set[str], names: Names) -> list[str]:
    """The exporters of which an expression with these names can be: one that has them all, else the only one of each.

    Raises:
        UntranslatedError: a name has no translation.
    """
    if not found:
        return [""]
    if unknown := [name for name in sorted(found) if name not in names.known]:
        why = (
            f"{name}: {names.reason(name) or f'not a name that this version knows{ours_of(name)}'}"
            for name in unknown
        )
        raise UntranslatedError("; ".join(why))
    having = [{one.exporter for one in names.known[name]} for name in sorted(found)]
    if common := set.intersection(*having):
        return sorted(common)
    if all(len(exporters) == 1 for exporters in having):
        return [""]
    raise UntranslatedError("its names are of several exporters; name one by --from")


def chosen(name: str, equals: Mapping[str, str], exporter: str, names: Names) -> Foreign:
    """Our metric for a selector, given the labels that it compares with one value; an empty exporter means any.

    Raises:
        UntranslatedError: without a certain matcher it is several of our metrics, or none.
    """
    ours = [one for one in names.known[name] if exporter in {"", one.exporter}]
    found = [one for one in ours if all(equals.get(label) == value for label, value in one.where)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UntranslatedError(
            f"{name}: several metrics here have this fact: {', '.join(one.ours for one in found)}"
        )
    forms = sorted({" ".join(f'{label}="{value}"' for label, value in one.where) for one in ours})
    raise UntranslatedError(
        f"{name}: which metric it is here depends on a matcher that is not there: {', '.join(forms)}"
    )


_REPEAT = re.compile(r"[*+{]|(?<![(*+}])\?")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
MOST_REPEATS = 4


def matching_names(pattern: str, names: Names, *, whole: bool) -> list[str]:
    """Other exporters' names that a regular expression matches, unless it is about all metrics.

    Python's `re` backtracks, RE2 of Prometheus does not: what could take hours is not tried. The names in it are returned, or itself.
    """
    parts = [pattern] if "(" in pattern else pattern.split("|")
    if _REPEATED_GROUP.search(pattern) or any(len(_REPEAT.findall(one)) > MOST_REPEATS for one in parts):
        return sorted(filter(names.certain, WORD.findall(pattern))) or [pattern]
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return sorted(filter(names.certain, WORD.findall(pattern)))
    match = compiled.fullmatch if whole else compiled.search
    if match(UNLIKELY):
        return []
    return sorted(filter(match, names.known)) or sorted(filter(names.certain, WORD.findall(pattern)))


def source_of(one: Foreign) -> LabelSource:
    """What becomes of the labels of a metric."""
    pairs = one.labels
    mapped = {new for _, new in pairs}
    fixed = dict(one.matching)
    return LabelSource(
        one.name,
        translated=True,
        renamed=pairs,
        fixed=one.where,
        lost=LOST.get((one.exporter, ""), frozenset()) | LOST.get((one.exporter, one.name), frozenset()),
        gained=frozenset(
            (label, fixed.get(label, "")) for label in INDEX.named[one.ours].labels if label not in mapped
        ),
    )
