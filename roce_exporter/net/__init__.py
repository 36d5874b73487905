"""Clients of the network: HTTP and gRPC, their TLS and their credentials."""

from functools import cache
from pathlib import Path


class NetError(Exception):
    """A request that failed, or a reply that cannot be used: one line that says what is wrong, and the remedy if there is one.

    The line holds no credential and no part of a reply that could hold one.
    """


@cache
def meanings(table: str) -> dict[str, str]:
    """What a table of `faults.txt` says, by status, code or pattern."""
    text = Path(__file__).with_name("faults.txt").read_text(encoding="utf-8")
    lines = text.partition(f"[{table}]\n")[2].partition("\n\n")[0].splitlines()
    return {key: meaning for key, _, meaning in (line.partition(" :: ") for line in lines)}
