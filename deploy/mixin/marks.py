"""Values that are written as expressions of Jsonnet: a threshold of which a text, a number or a colour is made.

A mark within a text is its expression between two control characters, which no rule and no dashboard contains.
"""

# ruff: noqa: INP001 - next to its script, not a package
from __future__ import annotations

import json
import re
from typing import Any, NoReturn, Self

BEGIN, END = "\x02", "\x03"
MARK = re.compile(f"{BEGIN}([^{END}]*){END}")
PLAIN = ".10f"
"""The format of `plain` in `dashboards/boards/limits.py` and of `number` in `alerts/generate.py`: `text` of `values.libsonnet`."""
NAME = re.compile(r"[A-Za-z_]\w*")
KEYWORDS = frozenset(
    {"assert", "else", "error", "for", "function", "if", "import", "in", "local", "self", "super", "then"}
)
"""Those of the language that a key of ours could be."""


def marked_text(expression: str) -> str:
    """A text that is the value of this expression."""
    return f"{BEGIN}text({expression}){END}"


class Number(float):
    """A number that remembers the expression of which it is the default value."""

    expression: str

    def __new__(cls, value: float, expression: str) -> Self:
        """The number `value`, written as `expression`."""
        made = super().__new__(cls, value)
        made.expression = expression
        return made

    def __format__(self, form: str) -> str:
        """The mark of the number in plain notation.

        Raises:
            ValueError: another notation, which Jsonnet would not write alike.
        """
        if form != PLAIN:
            raise ValueError(f"{self.expression}: write a limit with plain() or percent(), not with {form!r}")
        return marked_text(self.expression)

    def __mul__(self, other: float) -> Number:
        expression = other.expression if isinstance(other, Number) else other
        return Number(float(self) * float(other), f"({self.expression} * {expression})")

    def __rsub__(self, other: float) -> Number:
        return Number(other - float(self), f"({other} - {self.expression})")

    def __round__(self, digits: int | None = None) -> Number:  # type: ignore[override]
        return Number(round(float(self), digits or 0), f"rounded({self.expression}, {digits})")

    def _refuse(self, _: object = None) -> NoReturn:
        raise TypeError(f"{self.expression}: this operation is not written in Jsonnet")

    __add__ = __radd__ = __sub__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __neg__ = _refuse  # type: ignore[assignment]
    __mod__ = __floordiv__ = __int__ = __str__ = __repr__ = _refuse  # type: ignore[assignment]


def written(value: Any) -> str:
    """A value as an expression of Jsonnet, on one line."""
    if isinstance(value, Number):
        return value.expression
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key(name)}: {written(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return _list(list(value))
    return json.dumps(value)


def key(name: str) -> str:
    """The name of a field, in quotes where Jsonnet needs them."""
    return name if NAME.fullmatch(name) and name not in KEYWORDS else written(name)


def _text(text: str) -> str:
    """Literals and expressions in turn: `MARK.split` has the expressions at odd places."""
    parts = [
        part if place % 2 else json.dumps(part, ensure_ascii=False)
        for place, part in enumerate(MARK.split(text))
        if part
    ]
    return " + ".join(parts) or '""'


def _list(values: list[Any]) -> str:
    """A list; one of Grafana's steps by the values that its thresholds have then."""
    written_values = [written(one) for one in values]
    first = next((place for place, one in enumerate(values) if _is_marked_step(one)), None)
    if first is None:
        return f"[{', '.join(written_values)}]"
    fixed = next(place for place, one in enumerate(values) if one["value"] or _is_marked_step(one))
    before, after = ", ".join(written_values[:fixed]), ", ".join(written_values[fixed:])
    return f"[{before}] + ordered([{after}])"


def _is_marked_step(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("value"), Number) and "color" in value
