"""Parts of PromQL that a translation adds, and how they are written."""

from __future__ import annotations

from roce_exporter.migrate.promql_tokens import STRING, WORD, Token
from roce_exporter.migrate.promql_tree import Matcher


def word_token(text: str) -> Token:
    """A name that an edit adds."""
    return Token(WORD, text, 0, 0, text)


def equal_matcher(label: str, value: str) -> Matcher:
    """A matcher that an edit adds."""
    quoted = f'"{value}"'
    return Matcher(word_token(label), "=", Token(STRING, quoted, 0, 0, quoted))


def matcher_text(one: Matcher) -> str:
    """A matcher as it is written."""
    return one.label.text + one.sign + (one.value.text if one.value else "")


def matcher_end(one: Matcher) -> int:
    """Where a matcher ends."""
    return one.value.end if one.value else one.label.end
