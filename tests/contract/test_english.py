"""The English is plain: words that are avoided are rare in all prose together, and the list finds what it should."""

import shutil

import pytest
from words import LIMIT, ROOT, WORDS, count


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or not shutil.which("git"), reason="git lists the files of a checkout"
)
def test_all_prose_together_is_at_or_under_the_limit() -> None:
    words, hits = count()
    assert words > 200_000
    assert 1000 * len(hits) <= LIMIT * words, "\n".join(hits)


def test_a_word_that_is_avoided_is_found_and_plain_english_is_not() -> None:
    avoided = """tells; is asked for; ten looks a second; what stands there; anew; for ever; so many ports; beside it;
        shall be; of which two; a name is none; nobody; two legs"""
    plain = """it stands for a name; a stand-in; so long as it runs; it looks like a storm; the task; besides; it is None; standard"""
    assert [len(WORDS.findall(one)) for one in avoided.split(";")] == [1] * 13
    assert WORDS.findall(plain) == []
