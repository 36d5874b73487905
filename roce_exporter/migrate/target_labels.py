"""Labels that a series has from its target: `instance`, `job`, and what the site's relabelling adds.

No file says what they are for our target, which has another port and another job. An expression that selects or joins by their old values
would select nothing, so it is left, unless the user maps the values (`instance:9100=10123`) or says that a label has the same values
for both exporters (`hostname`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from roce_exporter.migrate import promql
from roce_exporter.migrate.promql_names import NAME_LABEL, Names, source_of
from roce_exporter.migrate.promql_rewrite import metric_of

INSTANCE, JOB = "instance", "job"
OF_PROMETHEUS = frozenset((INSTANCE, JOB, "cluster", NAME_LABEL))
"""Labels of every target. `cluster` is usual as an external label, which Prometheus adds and no exporter has."""
_MAPPING = re.compile(r"([a-zA-Z_]\w*)(?::([^=]+)=(.+))?")
_PORT = re.compile(r":\(?\d")
_VARIABLE = re.compile(r"\$\w+|\$\{[^}]*\}|\[\[[^]]*\]\]")
_ANYTHING = re.compile(r"[.*+()|^$?\s]*")
_NEW_LABEL = {"label_replace": 1, "label_join": 1, "count_values": 0}
"""Functions that make a label, and the argument with its name."""
REMEDY = "--map-label=LABEL:OLD=NEW maps a label of the target, --map-label=LABEL says that both exporters have the same values"


@dataclass(frozen=True, slots=True)
class TargetLabels:
    """What the user says of the labels of targets."""

    values: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Per label, texts in its values and what replaces each."""
    same: frozenset[str] = frozenset()
    """Labels that are the same for both exporters, or mapped."""


def target_labels(mappings: tuple[str, ...]) -> TargetLabels:
    """The mappings of a command line: LABEL:OLD=NEW, or LABEL for the same values. Raises ValueError: one is neither."""
    values: dict[str, tuple[tuple[str, str], ...]] = {}
    same = set()
    for one in mappings:
        if not (match := _MAPPING.fullmatch(one)):
            raise ValueError(f"{one!r} is neither LABEL:OLD=NEW nor LABEL")
        same.add(match[1])
        if match[2]:
            values[match[1]] = (*values.get(match[1], ()), (match[2], match[3]))
    return TargetLabels(values, frozenset(same))


def mapped(text: str, names: Names, labels: TargetLabels) -> str:
    """An expression whose matchers of target labels have our target's values, in the selectors that are translated."""
    if not labels.values:
        return text
    try:
        tree = promql.parse(text)
    except promql.PromqlError:
        return text
    edits = []
    for node in _theirs(tree, names):
        for one in node.matchers:
            new = old = one.value.text if one.value else ""
            for before, after in labels.values.get(promql.plain(one.label), ()):
                new = re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", after.replace("\\", r"\\"), new)
            if one.value and new != old:
                edits.append(promql.Edit(one.value.start, one.value.end, new))
    return promql.replaced(text, edits)


def faults(text: str, names: Names, labels: TargetLabels) -> list[str]:
    """Why an expression would select nothing, or join with nothing, of our target; one phrase each."""
    tree = promql.parse(text)
    made = {label for node in promql.nodes_of(tree) if (label := _made(node))}
    known = OF_PROMETHEUS | labels.same | made
    found: dict[str, None] = {}
    for node in promql.nodes_of(tree):
        for fault in (*_of_selector(node, names, known, labels), *_of_lists(node, names, known, labels)):
            found[fault] = None
    return list(found)


def _of_selector(
    node: promql.Node, names: Names, known: frozenset[str], labels: TargetLabels
) -> Iterator[str]:
    if not _is_theirs(node, names):
        return
    for one in node.matchers:
        label = promql.plain(one.label)
        if one.label.varies or one.value is None or label in _own(node, names):
            continue
        if (one.sign in {"=", "=~"}) != bool(promql.plain(one.value)):  # it selects series without the label
            continue
        value = _VARIABLE.sub("", promql.plain(one.value))
        text = f"{label}{one.sign}{one.value.text}"
        if label == JOB and JOB not in labels.same and not _ANYTHING.fullmatch(value):
            yield f"{text} selects the job of the other exporter"
        elif label == INSTANCE and INSTANCE not in labels.same and _PORT.search(value):
            yield f"{text} has the port of the other exporter"
        elif label not in known:
            yield _unknown(label)


def _of_lists(node: promql.Node, names: Names, known: frozenset[str], labels: TargetLabels) -> Iterator[str]:
    """`by` over series of theirs alone, and joins of theirs with metrics of a target that stays."""
    if node.kind == promql.AGGREGATE and _kinds(node, names) == {True}:
        listed = (promql.plain(label) for one in node.lists if one.kind == "by" for label in one.labels)
        yield from _unknown_labels(node, listed, names, known)
    if node.kind != promql.BINARY or (node.name and promql.plain(node.name).lower() == "or"):
        return
    sides = [(part, _kinds(part, names)) for part in node.parts]
    on = next(([promql.plain(label) for label in one.labels] for one in node.lists if one.kind == "on"), None)
    ignored = {promql.plain(label) for one in node.lists if one.kind == "ignoring" for label in one.labels}
    theirs = [part for part, kinds in sides if True in kinds]
    others = [part for part, kinds in sides if False in kinds]
    if not theirs or not others:
        return
    for part in theirs:
        if on and _kinds(part, names) == {True}:
            yield from _unknown_labels(part, on, names, known)
    for label in (INSTANCE, JOB):
        joined = (
            label in on
            if on is not None
            else label not in ignored and all(_has(p, label) for p in node.parts)
        )
        if joined and label not in labels.same:
            other = next(
                metric_of(one)
                for one in promql.nodes_of(others[0])
                if one.kind == promql.SELECTOR and not _is_theirs(one, names)
            )
            yield f"it is joined with {other or 'another metric'} by `{label}`, which differs between the two targets"


def _unknown_labels(
    part: promql.Node, listed: Iterator[str] | list[str], names: Names, known: frozenset[str]
) -> Iterator[str]:
    own = frozenset[str]().union(*(_own(one, names) for one in _theirs(part, names)))
    for label in listed:
        if label not in own | known and not _VARIABLE.search(label):
            yield _unknown(label)


def _unknown(label: str) -> str:
    return f"the label `{label}`: no label of the exporter but of its target"


def _theirs(tree: promql.Node, names: Names) -> list[promql.Node]:
    return [node for node in promql.nodes_of(tree) if _is_theirs(node, names)]


def _is_theirs(node: promql.Node, names: Names) -> bool:
    return node.kind == promql.SELECTOR and (name := metric_of(node)) in names.known and name not in names.own


def _kinds(part: promql.Node, names: Names) -> set[bool]:
    """Whether metrics of a part are translated (True), or of a target that stays (False); the site's own rules are neither."""
    selectors = [one for one in promql.nodes_of(part) if one.kind == promql.SELECTOR]
    own = names.own | {""}
    return {
        _is_theirs(one, names)
        for one in selectors
        if (name := metric_of(one)) not in own and ":" not in name and not name.startswith("roce_")
    }


def _has(part: promql.Node, label: str) -> bool:
    """Whether the series of a part can have a label of their target."""
    if part.kind == promql.AGGREGATE and promql.plain(part.name).lower() not in {"topk", "bottomk", "limitk"}:  # type: ignore[arg-type]  # it has a name
        listed = {promql.plain(one) for each in part.lists for one in each.labels}
        by = not part.lists or part.lists[0].kind == "by"
        return (label in listed) if by else label not in listed and _has(part.parts[-1], label)
    if part.kind == promql.SELECTOR:
        return True
    if part.kind == promql.CALL and promql.plain(part.name) in {"scalar", "vector", "time"}:  # type: ignore[arg-type]  # the same
        return False
    return any(_has(one, label) for one in part.parts)


def _own(node: promql.Node, names: Names) -> frozenset[str]:
    """The labels of a metric that the other exporter itself writes."""
    labels: set[str] = set()
    for one in names.known[metric_of(node)]:
        source = source_of(one)
        labels |= {old for old, _ in source.renamed} | source.lost | dict(source.fixed).keys()
    return frozenset(labels)


def _made(node: promql.Node) -> str:
    name = promql.plain(node.name) if node.name and node.kind in {promql.CALL, promql.AGGREGATE} else ""
    if name not in _NEW_LABEL or len(node.parts) <= _NEW_LABEL[name]:
        return ""
    argument = node.parts[_NEW_LABEL[name]]
    return promql.plain(argument.name) if argument.name else ""
