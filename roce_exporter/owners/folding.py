"""Which owners and peers have series of their own, so that their number stays bounded and they do not flap. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MARGIN = 1.25
"""How much more a newcomer must have to take the place of one that is shown already."""


def choose_shown(
    ranks: Mapping[str, tuple[float, ...]], before: Collection[str], most: int
) -> frozenset[str]:
    """The names to show, at most `most`: those of the highest ranks.

    A name shown `before` keeps its place until a newcomer exceeds it by `MARGIN`. Equal ranks are decided by name.
    """

    def order(name: str) -> tuple[tuple[float, ...], bool, str]:
        shown = name in before
        weight = MARGIN if shown else 1.0
        return tuple(-weight * number for number in ranks[name]), not shown, name

    return frozenset(sorted(ranks, key=order)[:most])
