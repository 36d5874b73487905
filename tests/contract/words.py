"""How plain the English is: `python tests/contract/words.py [-v] [PATH...]` counts words that are avoided in all prose.

Prose is comments, docstrings and other texts in Python, Markdown, comments and texts in YAML, comments elsewhere. Prints
the worst files, with -v every line; ends with 1 above LIMIT. CONTRIBUTING.md says what to write instead.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LIMIT = 0.8
"""Hits per 1,000 words. h11 has 0.8."""
WORST = 25
"""How many files are printed."""

AVOIDED = (
    r"tells?|told|telling",
    r"asks?\s+(for|of|whether|the|what)|(is|are|was|were)\s+asked|asked",
    r"a\s+look|looks?\s+(at|every|again)|looks(?!\s+like)",
    r"stand(?!-in|s?\s+for)|stands(?!-in|\s+for)|stood",
    r"anew|for\s+ever|beside|dear|dearer",
    r"so\s+(many|much|long)(?!\s+(as|that|more|better))",
    r"mends?|mended|shall",
    r"of\s+which|of\s+what",
    r"(?-i:(is|are)\s+none)",  # None is a value of Python
    r"nobody|somebody|whoever|strangers?",
    r"bears?|heeds?|reckons?|legs?",
    r"knows?\s+nothing",
)
"""Expressions for the words that are avoided, by row of the table in CONTRIBUTING.md."""
WORDS = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)

GENERATED = re.compile(
    r"tests/(recordings/[^/]+/|golden/|captures/|fuzz/corpus/|alerts/annotations\.yml)|docs/metrics\.md"
    r"|alerts/roce\.|dashboards/(kubernetes/|.*\.rules\.yml)|deploy/helm/roce-exporter/files/"
    r"|tests/contract/test_english\.py"
)
"""What tools printed, what is written from texts that are counted where they are edited, and the examples of the test."""
COMMENTS = {
    **dict.fromkeys((".toml", ".sh", ".service", ".conf"), r"#.*"),
    **dict.fromkeys((".c", ".h", ".ts", ".mjs"), r"//.*|/\*.*|^\s*\*\s.*"),
}
CODE = re.compile(r"`[^`]*`")


class Count(NamedTuple):
    """How many words a file has, and the lines with words that are avoided."""

    file: str
    words: int
    hits: list[tuple[int, str]]


def prose(place: Path) -> Iterator[tuple[int, str]]:
    """Lines of prose with their numbers; code in backquotes is one word."""
    text = place.read_text(encoding="utf-8", errors="replace")
    lines = {".md": _lines, ".py": _python, ".yml": _yaml, ".yaml": _yaml}.get(place.suffix)
    for number, line in lines(text) if lines else _comments(text, COMMENTS[place.suffix]):
        yield number, CODE.sub("x", line)


def _lines(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    yield from enumerate(text.splitlines(), first)


def _comments(text: str, form: str) -> Iterator[tuple[int, str]]:
    for number, line in _lines(text):
        if found := re.search(form, line):
            yield number, found[0]


def _python(text: str) -> Iterator[tuple[int, str]]:
    strings = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
        elif token.type in strings:
            yield from (line for line in _lines(token.string, token.start[0]) if line[1].count(" ") > 1)


def _yaml(text: str) -> Iterator[tuple[int, str]]:
    yield from _comments(text, r"(^|\s)#.*")
    key = ""
    try:
        for token in yaml.scan(text):
            if isinstance(token, yaml.ScalarToken) and (key == "expr" or token.value.count(" ") < 2):
                key = token.value
            elif isinstance(token, yaml.ScalarToken):
                yield from _lines(token.value, token.start_mark.line + 1)
    except yaml.YAMLError:
        return  # a template of Helm: its comments are counted


def count(file: str) -> Count:
    """The words of one file, named from the repository's root."""
    words, hits = 0, []
    for number, line in prose(ROOT / file):
        words += len(line.split())
        hits += [(number, line.strip())] * len(WORDS.findall(line))
    return Count(file, words, hits)


def counts(*paths: str) -> list[Count]:
    """All files of the repository, or those below the paths, the worst first."""
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", *paths]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    files = [
        file
        for file in listed.stdout.splitlines()
        if not GENERATED.match(file)
        and Path(file).suffix in {".md", ".py", ".yml", ".yaml", *COMMENTS}
        and (ROOT / file).is_file()
    ]
    return sorted(map(count, files), key=lambda one: -len(one.hits))


def rate(found: list[Count]) -> float:
    """Hits per 1,000 words of all these files."""
    return 1000 * sum(len(one.hits) for one in found) / max(1, sum(one.words for one in found))


def report(found: list[Count], *, lines: bool = False) -> str:
    """The worst files as a table, then the rate of all."""
    worst = [one for one in found if one.hits]
    hit_lines = (
        [f"{one.file}:{number}: {line}" for one in worst for number, line in one.hits] if lines else []
    )
    table = [f"{len(one.hits):4} hits {one.words:6} words  {one.file}" for one in worst[:WORST]]
    hits, words = sum(len(one.hits) for one in found), sum(one.words for one in found)
    return "\n".join(
        [*hit_lines, *table, f"{hits} hits in {words} words: {rate(found):.2f} per 1,000; limit {LIMIT}"]
    )


if __name__ == "__main__":
    every = counts(*(argument for argument in sys.argv[1:] if argument != "-v"))
    print(report(every, lines="-v" in sys.argv))  # noqa: T201
    sys.exit(rate(every) > LIMIT)
