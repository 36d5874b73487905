"""A PromQL expression as tokens and as a tree, each part with its place, also where Grafana's variables are among them.

The grammar is that of https://prometheus.io/docs/prometheus/latest/querying/basics/, the forms of variables those of
https://grafana.com/docs/grafana/latest/dashboards/variables/variable-syntax/. promql-parser has no places and refuses variables,
so each token has, next to its own text, the text that the parser reads in its place. The parser decides what belongs together: the
reader here goes through its tree, takes the tokens of each node in turn, and refuses an expression where the two disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, NoReturn

from roce_exporter.errors import UserError
from roce_exporter.words import word_list

try:
    import promql_parser as promql
except ImportError:
    raise UserError(
        "translate needs the package promql-parser; install the extra translate, in a clone: pip install '.[translate]'"
    ) from None

VARIABLE = r"\$\w+|\$\{[^{}\"']*\}|\[\[\w+(?::\w+)?\]\]"
_TOKEN = re.compile(
    r"(?P<space>\s+|\#[^\n]*)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)"
    rf"|(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[a-zA-Z0-9]|{VARIABLE})*)"
    rf"|(?P<word>(?:[a-zA-Z_:]|{VARIABLE})(?:[a-zA-Z0-9_:]|{VARIABLE})*)"
    r"|(?P<sign>=~|!~|==|!=|>=|<=|[-+*/%^=<>(){}\[\],@:])",
    re.DOTALL,
)
_COLON = re.compile("(?P<sign>:)")
_ANY_VARIABLE = re.compile(VARIABLE)

TIME = "7m"
"""What the parser reads for a variable in the place of a number or a duration; a duration is a number there too."""
NAME = "roce_variable"
MATCHER = 'roce_variable="x"'
MOST_UNCERTAIN = 4
"""Variables of an expression that could be a number or a metric; with more, all are the one or all the other."""

OPERATORS = frozenset(word_list("+ - * / % ^ == != >= <= > < and or unless atan2"))
LISTS = ("by", "without", "on", "ignoring", "group_left", "group_right")
SPACE, STRING, NUMBER, WORD, SIGN = "space", "string", "number", "word", "sign"


class PromqlError(Exception):
    """An expression that is not understood: one phrase that says why."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, string or sign."""

    kind: str
    text: str
    start: int
    end: int
    parsed: str
    """The text for promql-parser; empty for a variable that could be a number or a metric."""

    @property
    def varies(self) -> bool:
        """Whether it is or contains a variable, other than in a string."""
        return self.kind not in {STRING, SPACE} and bool(_ANY_VARIABLE.search(self.text))


def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of an expression, without space and comments. Raises PromqlError: a character is not part of PromQL, or a string is not closed."""
    found: list[Token] = []
    place, ranged = 0, False
    while place < len(text):
        # A colon begins a name, `:sum`, but parts the times of a subquery, `[1h:5m]`.
        match = (_COLON if ranged else _TOKEN).match(text, place) or _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise PromqlError(f"it is not PromQL at character {place + 1}")
        if match.lastgroup != SPACE:
            found.append(Token(match.lastgroup, match[0], match.start(), match.end(), match[0]))
        ranged = match[0] == "[" or (ranged and match[0] != "]")
        place = match.end()
    return tuple(_placed(found))


def _placed(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with what the parser reads for each variable, which depends on where the variable is."""
    opened: list[str] = []
    for number, token in enumerate(tokens):
        before = tokens[number - 1].text.lower() if number else ""
        after = tokens[number + 1].text if number + 1 < len(tokens) else ""
        if token.varies:
            yield replace(token, parsed=_stand_in(token, opened[-1] if opened else "", before, after))
            continue
        if token.text in {"(", "[", "{"}:
            opened.append("list" if token.text == "(" and before in LISTS else token.text)
        elif token.text in {")", "]", "}"} and opened:
            opened.pop()
        yield token


def _stand_in(token: Token, opened: str, before: str, after: str) -> str:
    if opened == "[" or before in {"offset", "@"}:
        return TIME
    if opened == "{":
        return MATCHER if before in {"{", ","} and after in {"}", ","} else NAME
    if opened == "list" or after in {"{", "["} or not _ANY_VARIABLE.fullmatch(token.text):
        return TIME if token.kind == NUMBER else NAME
    return ""


def parsable(text: str, tokens: tuple[Token, ...]) -> Iterator[str]:
    """The expression without variables: one text per way to read those that could be a number or a metric."""
    uncertain = sum(not token.parsed for token in tokens)
    ways = product((TIME, NAME), repeat=uncertain)
    for way in ways if uncertain <= MOST_UNCERTAIN else ([TIME] * uncertain, [NAME] * uncertain):
        chosen = iter(way)
        yield replaced(text, [Edit(one.start, one.end, one.parsed or next(chosen)) for one in tokens])


class Edit(NamedTuple):
    """The text from `start` to `end` is replaced. Of edits at one place, insertions come first, then those of lower rank."""

    start: int
    end: int
    new: str
    rank: int = 1


def replaced(text: str, edits: list[Edit]) -> str:
    """The text with all edits made, those of one place and rank in their order."""
    parts, place = [], 0
    for start, end, new, _ in sorted(edits, key=lambda edit: (edit.start, edit.end, edit.rank)):
        parts += [text[place:start], new]
        place = end
    return "".join((*parts, text[place:]))


SELECTOR, CALL, AGGREGATE, BINARY = "selector", "call", "aggregate", "binary"
UNARY, PAREN, SUBQUERY, LITERAL = "unary", "paren", "subquery", "literal"
MOST_CHARACTERS = 20_000
MOST_NESTED = 60  # the parser recurses without a limit of its own
MOST_OPERATORS = 150  # each of a chain is one level more of the tree


@dataclass(frozen=True, slots=True)
class Matcher:
    """A matcher of a selector. A variable in place of a whole matcher has neither operator nor value."""

    label: Token
    sign: str = ""
    value: Token | None = None

    @property
    def text(self) -> str:
        """As it is written."""
        return self.label.text + self.sign + (self.value.text if self.value else "")

    @property
    def end(self) -> int:
        """Where it ends."""
        return (self.value or self.label).end


@dataclass(frozen=True, slots=True)
class LabelList:
    """`by (a, b)` and the like."""

    kind: str
    labels: tuple[Token, ...]
    end: int
    """The place of the closing bracket."""


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an expression, from `start` to `end`."""

    kind: str
    start: int
    end: int
    parts: tuple[Node, ...] = ()
    name: Token | None = None
    """The metric of a selector, the function, the aggregation or the operator."""
    matchers: tuple[Matcher, ...] = ()
    alternatives: bool = False
    """Whether matchers are joined by `or`."""
    braces: int = -1
    """The place of the closing brace of a selector; -1: it has none."""
    ranged: bool = False
    """Whether a selector has a range, `[5m]`."""
    lists: tuple[LabelList, ...] = ()
    value: float | None = None
    """Of a number."""
    others: tuple[str, ...] = ()
    """All other tokens, in their order: ranges, offsets, brackets, `bool`."""


def plain(token: Token) -> str:
    """A name as PromQL means it, with or without quotes."""
    return token.text[1:-1] if token.kind == STRING else token.text


def parse(text: str) -> Node:
    """The tree of an expression. Raises PromqlError: promql-parser refuses it, or it is too long or too deep."""
    if len(text) > MOST_CHARACTERS:
        raise PromqlError(f"it is longer than {MOST_CHARACTERS:,} characters")
    tokens = tokens_of(text)
    if _depth(tokens) > MOST_NESTED:
        raise PromqlError(f"it is nested more than {MOST_NESTED} levels deep")
    if sum(one.text.lower() in OPERATORS for one in tokens) > MOST_OPERATORS:
        raise PromqlError(f"it has more than {MOST_OPERATORS} operators")
    problem = ""
    for candidate in parsable(text, tokens):
        try:
            parsed = promql.parse(candidate)
        except ValueError as error:
            problem = problem or " ".join(str(error).split())
            continue
        return _Reader(tokens).whole(parsed)
    raise PromqlError(f"promql-parser refuses it: {problem}")


def _depth(tokens: tuple[Token, ...]) -> int:
    """An upper limit of the nesting: brackets, and signs that nest without them."""
    deepest = depth = signs = 0
    for token in tokens:
        depth += (token.text in {"(", "{", "["}) - (token.text in {")", "}", "]"})
        signs = signs + 1 if token.text in {"-", "+", "^"} else signs if token.kind == NUMBER else 0
        deepest = max(deepest, depth + signs)
    return deepest


def nodes_of(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for part in node.parts:
        yield from nodes_of(part)


def outline(node: Node) -> tuple[object, ...]:
    """What an expression says, without places: two expressions with one outline mean the same."""
    return (
        node.kind,
        plain(node.name) if node.name else "",
        tuple((plain(one.label), one.sign, one.value.text if one.value else "") for one in node.matchers),
        tuple((one.kind, tuple(map(plain, one.labels))) for one in node.lists),
        node.value,
        node.others,
        tuple(map(outline, node.parts)),
    )


class _Reader:
    """Takes tokens for one node of the parser's tree after the other."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens
        self._next = 0

    def whole(self, parsed: Any) -> Node:
        node = self._node(parsed)
        if self._next != len(self._tokens):
            self._disagree()
        return node

    def _node(self, parsed: Any) -> Node:
        # The parser leaves out a `+` in front.
        while self._peek() == "+":
            self._take()
        ways: dict[type, Callable[[Any], Node]] = {
            promql.ParenExpr: self._paren,
            promql.Call: self._call,
            promql.AggregateExpr: self._aggregate,
            promql.BinaryExpr: self._binary,
            promql.UnaryExpr: self._unary,
            promql.SubqueryExpr: self._subquery,
            promql.MatrixSelector: self._selector,
            promql.VectorSelector: self._selector,
            promql.NumberLiteral: self._literal,
            promql.StringLiteral: self._literal,
        }
        return ways[type(parsed)](parsed)

    def _unary(self, parsed: Any) -> Node:
        start = self._take("-").start
        part = self._node(parsed.expr)
        return Node(UNARY, start, part.end, (part,))

    def _subquery(self, parsed: Any) -> Node:
        part = self._node(parsed.expr)
        others = (*self._until("]", "["), *self._modifiers())
        return Node(SUBQUERY, part.start, self._end(), (part,), others=others)

    def _paren(self, parsed: Any) -> Node:
        start = self._take("(").start
        part = self._node(parsed.expr)
        return Node(PAREN, start, self._take(")").end, (part,))

    def _call(self, parsed: Any) -> Node:
        name = self._take(parsed.func.name)
        parts = self._arguments(parsed.args)
        return Node(CALL, name.start, self._end(), parts, name)

    def _arguments(self, parsed: list[Any]) -> tuple[Node, ...]:
        self._take("(")
        parts: list[Node] = []
        for one in parsed:
            if parts:
                self._take(",")
            parts.append(self._node(one))
        self._take(")")
        return tuple(parts)

    def _aggregate(self, parsed: Any) -> Node:
        name = self._take(kind=WORD)
        if name.text.lower() != str(parsed.op):
            self._disagree()
        lists = self._lists()
        arguments = [parsed.expr] if parsed.param is None else [parsed.param, parsed.expr]
        parts = self._arguments(arguments)
        lists = lists or self._lists()
        return Node(AGGREGATE, name.start, self._end(), parts, name, lists=lists)

    def _binary(self, parsed: Any) -> Node:
        left = self._node(parsed.lhs)
        sign = self._take()
        if sign.text.lower() != str(parsed.op):
            self._disagree()
        others: tuple[str, ...] = (self._take().text,) if self._peek() == "bool" else ()
        lists = self._lists()
        while self._peek() in {"fill", "fill_left", "fill_right"}:
            others += (self._take().text, *self._until(")"))
        right = self._node(parsed.rhs)
        return Node(BINARY, left.start, right.end, (left, right), sign, lists=lists, others=others)

    def _lists(self) -> tuple[LabelList, ...]:
        found: list[LabelList] = []
        while (kind := self._peek()) in LISTS:
            start = self._take()
            if self._peek() != "(":  # `group_left` alone
                found.append(LabelList(kind, (), start.end))
                continue
            self._take("(")
            labels = []
            while self._peek() != ")":
                labels.append(self._take())
                if self._peek() == ",":
                    self._take()
            found.append(LabelList(kind, tuple(labels), self._take(")").start))
        return tuple(found)

    def _selector(self, parsed: Any) -> Node:
        ranged = isinstance(parsed, promql.MatrixSelector)
        name = self._take(kind=WORD) if self._peek() != "{" else None
        start = name.start if name else self._tokens[self._next].start
        matchers: list[Matcher] = []
        alternatives, braces = False, -1
        if self._peek() == "{":
            self._take("{")
            while self._peek() != "}":
                matchers.append(self._matcher())
                alternatives |= self._peek() == "or"
                if self._peek() in {",", "or"}:
                    self._take()
            braces = self._take("}").start
        others = (*(self._until("]", "[") if ranged else ()), *self._modifiers())
        if name is None and matchers and not matchers[0].sign and matchers[0].label.kind == STRING:
            name = matchers.pop(0).label  # {"name", label="value"}
        found, end = tuple(matchers), self._end()
        return Node(SELECTOR, start, end, (), name, found, alternatives, braces, ranged, others=others)

    def _matcher(self) -> Matcher:
        label = self._take()
        if label.parsed == MATCHER or self._peek() in {",", "}"}:
            return Matcher(label)
        sign = self._take().text
        return Matcher(label, sign, self._take(kind=STRING))

    def _modifiers(self) -> tuple[str, ...]:
        """`offset` and `@`, in any order."""
        found: tuple[str, ...] = ()
        while (word := self._peek()) in {"offset", "@"}:
            found += (word,)
            self._take()
            while self._peek() in {"-", "+"}:
                found += (self._take().text,)
            found += (self._take().text,)
            if self._peek() == "(":
                found += self._until(")")
        return found

    def _literal(self, parsed: Any) -> Node:
        start = self._tokens[self._next].start if self._next < len(self._tokens) else 0
        while self._peek() in {"-", "+"}:
            self._take()
        token = self._take()
        if isinstance(parsed, promql.StringLiteral):
            return Node(LITERAL, start, token.end, name=token)
        value = None if token.varies else float(parsed.val)
        others = (token.text,) if value is None or value != value else ()  # noqa: PLR0124 - NaN is not equal to itself
        return Node(LITERAL, start, token.end, value=None if others else value, others=others)

    def _until(self, last: str, first: str = "") -> tuple[str, ...]:
        found = [self._take(first).text]
        while found[-1] != last:
            found.append(self._take().text)
        return tuple(found)

    def _peek(self) -> str:
        """The next token; keywords in lower case, nothing at the end."""
        if self._next == len(self._tokens):
            return ""
        token = self._tokens[self._next]
        return "" if token.kind == STRING else token.text.lower()

    def _take(self, text: str = "", kind: str = "") -> Token:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or text not in {"", token.text} or kind not in {"", token.kind}:
            self._disagree()
        self._next += 1
        return token

    def _end(self) -> int:
        return self._tokens[self._next - 1].end

    def _disagree(self) -> NoReturn:
        raise PromqlError("its places were not found: promql-parser reads it in another way")


def word_token(text: str) -> Token:
    """A name that an edit adds."""
    return Token(WORD, text, 0, 0, text)


def equal_matcher(label: str, value: str) -> Matcher:
    """A matcher that an edit adds."""
    quoted = f'"{value}"'
    return Matcher(word_token(label), "=", Token(STRING, quoted, 0, 0, quoted))
