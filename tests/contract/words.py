"""Counts words that are avoided in all prose: `python tests/contract/words.py` prints each line that has one.

Prose is comments and texts in Python, comments and texts in YAML, Markdown, comments elsewhere. It ends with 1 above LIMIT.
CONTRIBUTING.md says what to write instead.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 0.8
"""Hits per 1,000 words. h11 has 0.8."""
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
UNCOUNTED = re.compile(
    r"tests/(recordings/[^/]+\.txt|golden/|captures/|fuzz/corpus/|alerts/annotations\.yml|contract/test_english\.py)|docs/metrics\.md"
    r"|alerts/roce\.|dashboards/(kubernetes/|.*\.rules\.yml)|deploy/helm/roce-exporter/files/"
)
"""What tools printed, what is written from texts that are counted where they are edited, and the examples of the test."""
LINE, HASH = r".+", r"#.*"
TEXT = r'"""(?s:.*?)"""|"(?:\\.|[^"\\\n])*"'
PROSE = {
    **dict.fromkeys((".md", ".yml", ".yaml"), LINE),
    **dict.fromkeys((".toml", ".sh", ".service", ".conf"), HASH),
    **dict.fromkeys((".c", ".h", ".ts", ".mjs"), r"//.*|/\*.*|^\s*\*\s.*"),
    ".py": rf"{TEXT}|{HASH}",
}


def prose(text: str, suffix: str) -> str:
    """The prose of a file; code in backquotes and texts of one word are left out."""
    found = re.findall(PROSE[suffix], text, re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "x", "\n".join(one for one in found if " " in one))


def count() -> tuple[int, list[str]]:
    """The words of all files of the repository, and `FILE: LINE` of each word that is avoided."""
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    words, hits = 0, []
    for file in listed.stdout.splitlines():
        place = ROOT / file
        if place.suffix in PROSE and not UNCOUNTED.match(file) and place.is_file():
            text = prose(place.read_text(encoding="utf-8", errors="replace"), place.suffix)
            words += len(text.split())
            hits += [f"{file}: {line}" for line in text.splitlines() for _ in WORDS.findall(line)]
    return words, hits


if __name__ == "__main__":
    total, found = count()
    print(*found, f"{len(found)} hits in {total} words; limit {LIMIT} per 1,000", sep="\n")  # noqa: T201
    sys.exit(1000 * len(found) > LIMIT * total)
