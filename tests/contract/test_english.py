"""The English is plain: words that are avoided are rare in all prose together, and the list finds what it should."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from words import LIMIT, ROOT, WORDS, count, counts, prose, rate, report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or not shutil.which("git"), reason="git lists the files of a checkout"
)
def test_all_prose_together_is_at_or_under_the_limit() -> None:
    """`python tests/contract/words.py -v` prints each line."""
    found = counts()
    assert rate(found) <= LIMIT, report(found)


@pytest.mark.parametrize(
    "text",
    [
        "the driver tells",
        "what is asked for",
        "ten looks a second",
        "what stands there",
        "written anew",
        "for ever",
        "so many ports",
        "beside it",
        "shall be",
        "of which two",
        "a name is none",
        "nobody answers",
        "two legs",
    ],
)
def test_a_word_that_is_avoided_is_found(text: str) -> None:
    assert len(WORDS.findall(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "it stands for a name",
        "a stand-in",
        "so long as it runs",
        "it looks like a storm",
        "the task",
        "besides",
        "it is None",
        "standard",
    ],
)
def test_plain_english_is_not(text: str) -> None:
    assert not WORDS.findall(text)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.md", "One\n`told` two\n", ["One", "x two"]),
        ("a.py", "# why\nx = 'a key', 'a text of words'\n", ["# why", "'a text of words'"]),
        ("a.py", '"""First.\n\nThe second line."""\n', ['The second line."""']),
        (
            "a.yml",
            "# why\nexpr: a + b + c\ntext: |\n  one two three\n  four\n",
            ["# why", "one two three", "four"],
        ),
        ("a.yml", "{{- if .Values }}\n# why\n{{ end }\n", ["# why"]),
        ("a.sh", "run # why\n", ["# why"]),
        ("a.c", "int x; /* why */\n", ["/* why */"]),
    ],
)
def test_prose_is_found_in(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    (tmp_path / name).write_text(text)
    assert [line for _, line in prose(tmp_path / name)] == found


def test_the_worst_file_is_first_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("it is told\nanew\n")
    (tmp_path / "good.md").write_text("it is said\n")
    found = [count(str(tmp_path / name)) for name in ("bad.md", "good.md")]
    assert [number for number, _ in found[0].hits] == [1, 2]
    text = report(found, lines=True).splitlines()
    assert text[0].endswith("bad.md:1: it is told")
    assert text[2].split()[:2] == ["2", "hits"]
    assert text[-1].startswith("2 hits in 7 words")
