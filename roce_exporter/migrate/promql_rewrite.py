"""A PromQL expression rewritten from other exporters' names to ours: the edits of its text, and the tree that they must give.

Nothing is guessed: an expression is translated as a whole, or refused with the reason. What is changed is changed by place, so all
else stays as the user wrote it. A factor is a positive number by which every sample of a metric differs. It is applied as far out as
it provably changes nothing: it passes through what is linear, vanishes in what only counts or orders samples, and is applied before
everything else.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from roce_exporter.migrate import promql
from roce_exporter.migrate.foreign import Foreign
from roce_exporter.migrate.promql_names import (
    NAME_LABEL,
    Flow,
    LabelSource,
    Names,
    UntranslatedError,
    chosen,
    gained_by,
    kept,
    source_of,
    target_of,
    unequal,
    without,
)
from roce_exporter.words import word_list

Factor = tuple[int, int]  # our value is theirs x the first number / the second
SAME: Factor = (1, 1)

LINEAR_OVER_TIME = frozenset(
    word_list(
        "avg_over_time delta deriv double_exponential_smoothing first_over_time holt_winters idelta "
        "increase irate last_over_time mad_over_time max_over_time min_over_time predict_linear "
        "quantile_over_time rate stddev_over_time sum_over_time"
    )
)
BLIND_OVER_TIME = frozenset(
    word_list(
        "absent_over_time changes count_over_time present_over_time resets ts_of_first_over_time "
        "ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time"
    )
)
"""Functions whose result is the same when all samples are multiplied by one positive number."""
LINEAR = frozenset(word_list("abs label_join label_replace sort sort_by_label sort_by_label_desc sort_desc"))
BLIND = frozenset(("absent", "timestamp"))
LINEAR_AGGREGATIONS = frozenset(word_list("avg bottomk limitk limit_ratio max min quantile stddev sum topk"))
BLIND_AGGREGATIONS = frozenset(("count", "group"))


def cancels(factor: Factor, number: float | None) -> bool:
    """Whether multiplying theirs by a number gives ours."""
    times, per = factor
    return factor != SAME and number is not None and number * per == times


SETS = frozenset(("and", "or", "unless"))
ON, IGNORING, BY = "on", "ignoring", "by"
GROUPS = frozenset(("group_left", "group_right"))
KEEPS_LABELS = frozenset(("topk", "bottomk", "limitk", "limit_ratio"))
LABEL_ARGUMENTS = {
    "label_replace": (1, 3),
    "label_join": (1, *range(3, 50)),
    "sort_by_label": tuple(range(1, 50)),
    "sort_by_label_desc": tuple(range(1, 50)),
}
"""The arguments that are names of labels."""
NO_LABELS = frozenset(("scalar", "vector"))


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A part of an expression after the translation."""

    node: promql.Node
    flow: Flow = frozenset()
    factor: Factor = SAME
    """How much larger its values are than before; whoever uses them undoes it."""


@dataclass(slots=True)
class Rewrite:
    """The translation of one expression, as the metrics of one exporter (empty: of any)."""

    names: Names
    exporter: str
    only_series: bool = False
    """Whether the values of the result do not matter."""
    edits: list[promql.Edit] = field(default_factory=list)
    used: list[Foreign] = field(default_factory=list)

    def whole(self, node: promql.Node) -> Rewritten:
        """The translated expression; `edits` has what changes in the text.

        Raises:
            UntranslatedError: a part of it cannot be translated without a guess.
        """
        part = self._part(node)
        return part if self.only_series else self._settled(part, bare=True)

    def _part(self, node: promql.Node) -> Rewritten:
        ways = {
            promql.SELECTOR: self._selector,
            promql.CALL: self._call,
            promql.AGGREGATE: self._aggregate,
            promql.BINARY: self._binary,
        }
        if way := ways.get(node.kind):
            return way(node)
        if node.kind == promql.PAREN:
            inner = self._part(node.parts[0])
            return replace(inner, node=replace(node, parts=(inner.node,)))
        parts = [self._settled(self._part(one)) for one in node.parts]  # of UNARY, SUBQUERY and LITERAL
        return Rewritten(replace(node, parts=tuple(one.node for one in parts)), _joined(parts))

    # Selectors

    def _selector(self, node: promql.Node) -> Rewritten:
        name = metric_of(node)
        if flow := self.names.recorded.get(name):
            # A recording rule whose expression is translated: its name stays, labels can change.
            labels = (
                one
                if promql.plain(one.label) == NAME_LABEL
                else replace(one, label=self._label(one.label, flow))
                for one in node.matchers
            )
            return Rewritten(replace(node, matchers=tuple(labels)), flow)
        if name not in self.names.known or name in self.names.own:
            return Rewritten(node, frozenset((LabelSource(name or "another metric"),)))
        if node.alternatives:
            raise UntranslatedError(f"{name}: its matchers are joined by `or`")
        equals = {
            promql.plain(one.label): promql.plain(one.value)
            for one in node.matchers
            if one.value and one.sign == "="
        }
        foreign = chosen(name, equals, self.exporter, self.names)
        self.used.append(foreign)
        source = source_of(foreign)
        matchers = self._matchers(node, foreign, source)
        token = self._renamed(node.name, foreign.ours) if node.name else None
        factor = (foreign.times, foreign.per)
        return Rewritten(replace(node, name=token, matchers=matchers), frozenset((source,)), factor)

    def _matchers(
        self, node: promql.Node, foreign: Foreign, source: LabelSource
    ) -> tuple[promql.Matcher, ...]:
        fixed = dict(foreign.where)
        remaining = [one for one in node.matchers if promql.plain(one.label) not in fixed or one.sign != "="]
        found = [self._matcher(one, foreign, source) for one in remaining]
        added = [promql.equal_matcher(label, value) for label, value in foreign.matching]
        if len(found) == len(node.matchers):
            self._append(node, added)
        else:
            # Some are left out: all are written again.
            start, end = node.matchers[0].label.start, node.braces
            self.edits = [one for one in self.edits if not start <= one.start < end]
            self.edits.append(promql.Edit(start, end, ", ".join(one.text for one in (*found, *added))))
        return (*found, *added)

    def _matcher(self, one: promql.Matcher, foreign: Foreign, source: LabelSource) -> promql.Matcher:
        if one.label.varies:
            if source.changes:
                raise UntranslatedError(f"{foreign.name}: a variable is in the place of a label or a matcher")
            return one
        if promql.plain(one.label) == NAME_LABEL and one.value:
            if one.sign != "=":
                raise UntranslatedError(f"{foreign.name}: it is selected by `{NAME_LABEL}{one.sign}`")
            return replace(one, value=self._renamed(one.value, foreign.ours))
        if (
            promql.plain(one.label) in source.lost
            and one.value
            and one.sign == "="
            and not promql.plain(one.value)
        ):
            return one  # `pod_name=""` is true for every series without the label
        return replace(one, label=self._renamed(one.label, source.target(promql.plain(one.label))))

    def _append(self, node: promql.Node, added: list[promql.Matcher]) -> None:
        """Matchers behind those of a selector, which may have no braces."""
        text = ",".join(one.text for one in added)
        if not text:
            return
        if node.braces < 0:
            end = node.name.end if node.name else node.start
            self.edits.append(promql.Edit(end, end, "{" + text + "}"))
        elif last := node.matchers[-1:]:
            end = last[0].end
            self.edits.append(promql.Edit(end, end, "," + text))
        else:
            quoted = node.name is not None and node.name.kind == promql.STRING
            self.edits.append(promql.Edit(node.braces, node.braces, ("," if quoted else "") + text))

    def _renamed(self, token: promql.Token, new: str) -> promql.Token:
        if promql.plain(token) == new:
            return token
        text = f"{token.text[0]}{new}{token.text[0]}" if token.kind == promql.STRING else new
        self.edits.append(promql.Edit(token.start, token.end, text))
        return replace(token, text=text)

    # Functions and aggregations

    def _call(self, node: promql.Node) -> Rewritten:
        name = promql.plain(node.name) if node.name else ""
        parts = [self._part(one) for one in node.parts]
        flow = _joined(parts)
        if name == "info" and any(one.translated for one in flow):
            raise UntranslatedError("`info` joins by labels that depend on the metric")
        factor = SAME
        if over_time := next((one for one in parts if _ranged(one.node) and one.factor != SAME), None):
            if name not in LINEAR_OVER_TIME | BLIND_OVER_TIME:
                raise UntranslatedError(f"`{name}` of values in another unit is not a multiple of the result")
            factor = over_time.factor if name in LINEAR_OVER_TIME else SAME
        elif name in LINEAR:
            factor = parts[0].factor
        elif name not in BLIND:
            parts = [self._settled(one, bare=True) for one in parts]
        places = LABEL_ARGUMENTS.get(name, ())
        nodes = tuple(
            self._label_argument(one.node, flow) if number in places else one.node
            for number, one in enumerate(parts)
        )
        return Rewritten(replace(node, parts=nodes), frozenset() if name in NO_LABELS else flow, factor)

    def _label_argument(self, node: promql.Node, flow: Flow) -> promql.Node:
        if node.name is None or node.kind != promql.LITERAL:
            raise UntranslatedError("a label is not a plain string")
        return replace(node, name=self._label(node.name, flow))

    def _aggregate(self, node: promql.Node) -> Rewritten:
        name = promql.plain(node.name).lower() if node.name else ""
        *params, part = map(self._part, node.parts)
        params = [self._settled(one, bare=True) for one in params]
        factor = part.factor if name in LINEAR_AGGREGATIONS else SAME
        if name not in LINEAR_AGGREGATIONS | BLIND_AGGREGATIONS:
            part = self._settled(part, bare=True)
        nodes = [one.node for one in params]
        if name == "count_values":
            nodes = [self._label_argument(one, part.flow) for one in nodes]
        flow, lists = part.flow, []
        for one in node.lists:
            labels = tuple(self._label(label, flow) for label in one.labels)
            added = () if one.kind == BY else gained_by(flow)
            lists.append(replace(one, labels=(*labels, *self._added(one, added))))
        if name not in KEEPS_LABELS:
            listed = [promql.plain(label) for one in node.lists for label in one.labels]
            by = not node.lists or node.lists[0].kind == BY
            flow = kept(flow, listed) if by else without(flow, listed, gained_by(flow))
        return Rewritten(replace(node, parts=(*nodes, part.node), lists=tuple(lists)), flow, factor)

    def _added(self, one: promql.LabelList, labels: Iterable[str]) -> tuple[promql.Token, ...]:
        found = tuple(promql.word_token(label) for label in labels)
        if text := ", ".join(token.text for token in found):
            end = one.labels[-1].end if one.labels else one.end
            self.edits.append(promql.Edit(end, end, (", " if one.labels else "") + text))
        return found

    def _label(self, token: promql.Token, flow: Flow) -> promql.Token:
        if not token.varies:
            return self._renamed(token, target_of(promql.plain(token), flow))
        if any(source.changes or source.gained for source in flow):
            raise UntranslatedError(f"the variable {token.text} is in the place of a label")
        return token

    # Operators

    def _binary(self, node: promql.Node) -> Rewritten:
        left, right = (self._part(one) for one in node.parts)
        sign = promql.plain(node.name).lower() if node.name else ""
        node, flow = self._matching(node, sign, left.flow, right.flow)
        if sign == "*" and cancels(left.factor, right.node.value):
            self.edits.append(promql.Edit(left.node.end, node.end, ""))
            return replace(left, factor=SAME)
        if sign == "*" and cancels(right.factor, left.node.value):
            self.edits.append(promql.Edit(node.start, right.node.start, ""))
            return replace(right, factor=SAME)
        factor = SAME
        if sign in {"+", "-", "or"} and left.factor == right.factor:
            factor = left.factor
        elif sign in {"*", "/"} and not right.flow:
            factor = left.factor
            right = self._settled(right)
        elif sign == "*" and not left.flow:
            factor = right.factor
            left = self._settled(left)
        elif not (sign == "/" and left.factor == right.factor):
            left, right = self._settled(left), self._settled(right)
        return Rewritten(replace(node, parts=(left.node, right.node)), flow, factor)

    def _matching(self, node: promql.Node, sign: str, left: Flow, right: Flow) -> tuple[promql.Node, Flow]:
        """The operator with its label lists translated, and the labels of its result."""
        if not left or not right:
            return node, left | right
        on = next((one for one in node.lists if one.kind == ON), None)
        grouped = next((one for one in node.lists if one.kind in GROUPS), None)
        many, one_side = (right, left) if grouped and grouped.kind == "group_right" else (left, right)
        lists = []
        for one in node.lists:
            side = one_side if one.kind in GROUPS else left | right
            lists.append(replace(one, labels=tuple(self._label(label, side) for label in one.labels)))
        if not on:
            ignored = [
                promql.plain(label) for one in node.lists if one.kind == IGNORING for label in one.labels
            ]
            added = unequal(without(left, ignored), without(right, ignored))
            lists = self._ignoring(node, lists, added)
            many = many if grouped or sign in SETS else without(many, ignored, added)
        elif not grouped and sign not in SETS:
            many = kept(left | right, map(promql.plain, on.labels))
        if grouped:
            many |= kept(one_side, map(promql.plain, grouped.labels))
        return replace(node, lists=tuple(lists)), left | right if sign == "or" else many

    def _ignoring(
        self, node: promql.Node, lists: list[promql.LabelList], added: tuple[str, ...]
    ) -> list[promql.LabelList]:
        if not added:
            return lists
        if lists and lists[0].kind == IGNORING:
            first = replace(lists[0], labels=(*lists[0].labels, *self._added(node.lists[0], added)))
            return [first, *lists[1:]]
        place = node.parts[1].start
        self.edits.append(promql.Edit(place, place, f"ignoring ({', '.join(added)}) ", 0))
        return [promql.LabelList(IGNORING, tuple(map(promql.word_token, added)), place), *lists]

    # Factors

    def _settled(self, part: Rewritten, *, bare: bool = False) -> Rewritten:
        """The part in the unit it had before. `bare`: brackets or commas are already around it."""
        if part.factor == SAME:
            return part
        node, (times, per) = part.node, part.factor
        inner = (1 if node.kind in {promql.BINARY, promql.UNARY} else 0) + (0 if bare else 1)
        undo = (("*", per), ("/", times))
        behind = "".join(f" {sign} {number}" for sign, number in undo if number != 1)
        self.edits.append(promql.Edit(node.start, node.start, "(" * inner))
        closing = ")" if node.kind in {promql.BINARY, promql.UNARY} else ""
        self.edits.append(promql.Edit(node.end, node.end, f"{closing}{behind}{'' if bare else ')'}"))
        if closing:
            node = replace(node, kind=promql.PAREN, parts=(node,), name=None, lists=(), others=())
        for sign, number in undo:
            if number != 1:
                operator = promql.Token(promql.SIGN, sign, node.end, node.end, sign)
                literal = promql.Node(promql.LITERAL, node.end, node.end, value=float(number))
                node = promql.Node(promql.BINARY, node.start, node.end, (node, literal), operator)
        if not bare:
            node = replace(node, kind=promql.PAREN, parts=(node,), name=None)
        return Rewritten(node, part.flow)


def metric_of(node: promql.Node) -> str:
    """The metric that a selector names, also by a matcher; empty if it names none."""
    if node.name:
        return promql.plain(node.name)
    named = (
        one.value
        for one in node.matchers
        if promql.plain(one.label) == NAME_LABEL and one.sign == "=" and one.value
    )
    return next(map(promql.plain, named), "")


def _ranged(node: promql.Node) -> bool:
    while node.kind == promql.PAREN:
        node = node.parts[0]
    return node.kind == promql.SELECTOR and node.ranged


def _joined(parts: list[Rewritten]) -> Flow:
    return frozenset[LabelSource]().union(*(one.flow for one in parts))
