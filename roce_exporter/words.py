"""Numbers, durations, lists and tables as text for people. Documents for programs carry plain numbers instead."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import TextIO

UNITS = (("d", 86400), ("h", 3600), ("min", 60))
LENGTHS = (604_800.0, 86_400.0, 3600.0, 60.0, 1.0, 1e-3, 1e-6, 1e-6, 1e-9)
SECONDS = dict(zip(("w", "d", "h", "m", "s", "ms", "us", "µs", "ns"), LENGTHS, strict=True))
_PART = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})?)(ms|us|µs|ns|[smhdw])")
GAP = "  "  # between the columns of a table
NARROWEST = 8  # a column is not wrapped below this width


def number(amount: float) -> str:
    """A count: 1,234, or 0.5 with two digits below ten."""
    return f"{amount:,.0f}" if amount >= 10 or amount == round(amount) else f"{amount:.2g}"  # noqa: PLR2004 - two digits are enough


def counted(amount: int, noun: str, many: str = "") -> str:
    """A count and its noun: `1 packet`, `1,234 packets`. `many`: a plural that does not end with s."""
    return f"{amount:,} {noun if amount == 1 else many or f'{noun}s'}"


_PLURAL = re.compile(r"^([\w ]*?\w)(?:(ie)|(?<=ss|ch|sh)e)?(?<!s)s\b")


def some(amount: float, what: str) -> str:
    """A count of what is named in the plural: `1 packet that was lost` of `packets that were lost`."""
    if amount == 1:
        what = _PLURAL.sub(lambda found: found[1] + "y" * bool(found[2]), what)
        what = what.replace(" are ", " is ", 1).replace(" were ", " was ", 1)
    return f"{number(amount)} {what}"


def share(ratio: float) -> str:
    """A ratio as a percentage with three digits, without a false 100 %."""
    text = f"{ratio * 100:.3g} %"
    return "more than 99.9 %" if ratio < 1 and text == "100 %" else text


def duration(seconds: float) -> str:
    """Seconds in the largest unit of which there are at least two: `0.39 ms`, `0.25 s`, `15 s`, `10 min`, `3 h`, `2 d`."""
    for unit, length in UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    if 0 < seconds < 0.01:  # noqa: PLR2004 - below, milliseconds have fewer zeros
        return f"{number(seconds * 1000)} ms"
    return f"{number(seconds) if seconds < 10 else round(seconds)} s"  # noqa: PLR2004 - two digits below ten


def seconds_of(text: str) -> float | None:
    """A time as Prometheus and Go write it (`90s`, `1h30m`, `0.5s`), in seconds; None for other texts, also for a number without a unit."""
    if not re.fullmatch(f"(?:{_PART.pattern})+", text):
        return None
    return sum(float(count) * SECONDS[unit] for count, unit in _PART.findall(text))


def few(names: Sequence[object], most: int = 4) -> str:
    """The first names of a list, and the number of the others: `a, b and 3 more`."""
    shown = ", ".join(map(str, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def escaped(text: str) -> str:
    """The text as the content of a quoted string of PromQL, of an exposition, or of OTTL."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def word_list(text: str) -> tuple[str, ...]:
    """The words of a list in the source, as a text: a formatter gives every item of a Python list a line of its own."""
    return tuple(text.split())


def word_map(text: str) -> dict[str, str]:
    """The words `NAME=VALUE` of a text, as `word_list`."""
    return dict(word.split("=", 1) for word in text.split())


def table(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: str = "", width: int | None = None
) -> list[str]:
    """One text per row, in aligned columns; a text has more lines where cells are wrapped to fit in `width` columns.

    Args:
        rows: texts of equal number, the headings first.
        right: columns of numbers, aligned to the right and never wrapped.
        indent: begins each line.
        width: columns of the terminal; None: as wide as the cells are.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while width is not None and len(indent) + sum(widths) + len(GAP) * (len(widths) - 1) > width:
        widest = max(length for column, length in enumerate(widths) if column not in right)
        if widest <= NARROWEST:
            break
        widths[next(one for one, length in enumerate(widths) if length == widest and one not in right)] -= 1
    texts = []
    for row in rows:
        cells = [
            textwrap.wrap(cell, columns, break_on_hyphens=False) if len(cell) > columns else [cell]
            for cell, columns in zip(row, widths, strict=True)
        ]
        lines = [
            GAP.join(
                part.rjust(columns) if column in right else part.ljust(columns)
                for column, (part, columns) in enumerate(zip(parts, widths, strict=True))
            )
            for parts in zip_longest(*cells, fillvalue="")
        ]
        texts.append("\n".join(f"{indent}{line}".rstrip() for line in lines))
    return texts


def wrapped(line: str, width: int | None, indent: str = "  ") -> list[str]:
    """A line of a terminal of this width in several, the later ones indented; names and addresses stay whole."""
    if width is None:
        return [line]
    fill = textwrap.TextWrapper(
        width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return fill.wrap(line)


def terminal_width(output: TextIO | None) -> int | None:
    """Columns of the terminal that shows `output`, or what COLUMNS says; None for a file, a pipe or what is closed, which have no width."""
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    if output is None:
        return None
    try:
        return os.get_terminal_size(output.fileno()).columns or None
    except (OSError, ValueError):
        return None
