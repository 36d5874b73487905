"""Clients of the network: HTTP and gRPC, their TLS and their credentials."""

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class NetError(Exception):
    """A request that failed, or a reply that cannot be used: one line that says what is wrong, and the remedy if there is one.

    The line holds no credential and no part of a reply that could hold one.
    """


@dataclass(slots=True)
class ReplyBudget:
    """What the replies of one round may have together, whatever connections they come from: a peer that answers without end fills no memory."""

    most_bytes: int
    most_values: int
    received: int = 0
    values: int = 0

    def take(self, received: int = 0, values: int = 0) -> None:
        """Count bytes that have been received, or values before objects are made of them. Raises NetError: these are too many for the round."""
        self.received += received
        self.values += values
        if self.received > self.most_bytes:
            raise NetError(f"the replies of the round are larger than {self.most_bytes >> 20} MiB")
        if self.values > self.most_values:
            raise NetError(f"the replies of the round have more than {self.most_values:,} values")


@dataclass(slots=True)
class TokenBucket:
    """At most `rate` per second over time, and at most `depth` at once."""

    rate: float
    depth: float
    since: float
    tokens: float = math.inf

    def take(self, now: float) -> bool:
        """Take a token if there is one; `now` in seconds, as `since`."""
        self.tokens = min(self.depth, self.tokens + max(0.0, now - self.since) * self.rate)
        self.since = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@cache
def meanings(table: str) -> dict[str, str]:
    """What a table of `faults.txt` says, by status, code or pattern."""
    text = Path(__file__).with_name("faults.txt").read_text(encoding="utf-8")
    lines = text.partition(f"[{table}]\n")[2].partition("\n\n")[0].splitlines()
    return {key: meaning for key, _, meaning in (line.partition(" :: ") for line in lines)}


def meaning_of(table: str, text: str, otherwise: str = "") -> str:
    """What a table of patterns in `faults.txt` says of a text: the first pattern that fits counts."""
    return next((said for form, said in meanings(table).items() if re.search(form, text)), otherwise)
