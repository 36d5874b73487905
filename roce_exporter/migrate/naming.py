"""How another exporter writes a raw counter of a driver: the vocabulary of the files of one exporter each."""

import re
from typing import NamedTuple

Pairs = tuple[tuple[str, str], ...]

PLACEHOLDER = re.compile(r"\{(\w+)\}")
NUMBERED = ("priority", "lane", "buffer", "queue", "traffic_class")
"""Placeholders that are numbers. NICs have eight priorities, lanes, buffers, queues and traffic classes at most."""
EIGHT = range(8)

WORDS = re.compile(r"(?:[A-Za-z0-9_|()?*+.]|\\[dw])+")

PORT = (("device", "device"), ("port", "port"))
NETDEV = (*PORT, ("netdev", "netdev"))


class Written(NamedTuple):
    """One raw counter as another exporter writes it."""

    name: str
    labels: Pairs
    """Their label and ours, for labels that have the same values."""
    matching: Pairs = ()
    """Our label and its value, where their name says what a label of ours says."""
    where: Pairs = ()
    """Their label and its value, where a label of theirs says what our name says."""
    times: int = 1
    per: int = 1
    """Their value is raw x `times` / `per`."""
    loss: str = ""


def totals(text: str) -> dict[str, str]:
    """The names `RAW=NEW` of a text, or `RAW` alone, with the names of their counters: `NEW_total` or `RAW_total`."""
    pairs = (word.partition("=") for word in text.split())
    return {raw: f"{new or raw}_total" for raw, _, new in pairs}


def expanded(raw: str) -> list[tuple[str, Pairs]]:
    """A raw name that holds one numbered placeholder for each number, with the label; no name with other placeholders."""
    found = PLACEHOLDER.findall(raw)
    if not found:
        return [(raw, ())]
    if len(found) > 1 or found[0] not in NUMBERED:
        return []
    return [(PLACEHOLDER.sub(str(number), raw), ((found[0], str(number)),)) for number in EIGHT]


def in_words(pattern: str) -> bool:
    """Whether a regular expression of raw names has only characters that metric names have, besides its operators."""
    return WORDS.fullmatch(pattern) is not None
