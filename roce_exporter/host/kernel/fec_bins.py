"""The bins of an FEC histogram as the kernel door names them: as `ethtool -I --show-fec` (6.17 and newer) prints them.

A bin counts the codewords in which FEC found between `low` and `high` wrong symbols: `fec_symbols_err_1_to_3`, or
`fec_symbols_err_0` where both are the same; followed by `_lane_2` for one lane of the port.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"fec_symbols_err_(?P<low>\d{1,9})(?:_to_(?P<high>\d{1,9}))?(?:_lane_(?P<lane>\d{1,9}))?")


class Bin(NamedTuple):
    """A range of wrong symbols in a codeword, ends included, of the whole port or of one lane."""

    low: int
    high: int
    lane: int | None = None


def name_of(one: Bin) -> str:
    """The name of a bin."""
    span = str(one.low) if one.low == one.high else f"{one.low}_to_{one.high}"
    return f"fec_symbols_err_{span}" + ("" if one.lane is None else f"_lane_{one.lane}")


def bin_of(name: str) -> Bin | None:
    """The bin of a name; None if it is not the name of a bin."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    low, lane = int(match["low"]), match["lane"]
    return Bin(low, int(match["high"] or low), None if lane is None else int(lane))
