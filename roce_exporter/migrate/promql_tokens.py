"""The words of a PromQL expression with their places, also where Grafana's variables are among them.

The grammar is that of https://prometheus.io/docs/prometheus/latest/querying/basics/, the forms of variables those of
https://grafana.com/docs/grafana/latest/dashboards/variables/variable-syntax/. promql-parser has no places and refuses variables,
so each token has, next to its own text, the text that the parser reads in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_ONLY_VARIABLE = re.compile(VARIABLE)
_ANY_VARIABLE = re.compile(VARIABLE)

TIME = "7m"
"""What the parser reads for a variable in the place of a number or a duration; a duration is a number there too."""
NAME = "roce_variable"
MATCHER = 'roce_variable="x"'
MOST_UNCERTAIN = 4
"""Variables of an expression that could be a number or a metric; with more, all are the one or all the other."""

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
    """The tokens of an expression, without space and comments.

    Raises:
        PromqlError: a character is not part of PromQL, or a string is not closed.
    """
    found = [token for token in _scan(text) if token.kind != SPACE]
    return tuple(_placed(found))


def _scan(text: str) -> Iterator[Token]:
    place, ranged = 0, False
    while place < len(text):
        # A colon begins a name, `:sum`, but parts the times of a subquery, `[1h:5m]`.
        match = (_COLON if ranged else _TOKEN).match(text, place) or _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise PromqlError(f"it is not PromQL at character {place + 1}")
        yield Token(match.lastgroup, match[0], match.start(), match.end(), match[0])
        ranged = match[0] == "[" or (ranged and match[0] != "]")
        place = match.end()


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
    if opened == "list" or after in {"{", "["} or not _ONLY_VARIABLE.fullmatch(token.text):
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
