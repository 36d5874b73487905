"""Colours with a meaning are distinguishable with each kind of colour blindness, in both themes.

Simulated after Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
Deficiency" (2009), at full severity; distances are in CIE 1976 L*a*b*.
"""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from boards.colours import CNP_HANDLED, CNP_IGNORED, CNP_SENT, GOOD, IDENTITY, RECEIVED, SENT, SEVERITY

PALETTE = {
    "light-green": ("#96D98D", "#73BF69"),
    "green": ("#73BF69", "#56A64B"),
    "red": ("#F2495C", "#E02F44"),
    "semi-dark-red": ("#E02F44", "#C4162A"),
    "orange": ("#FF9830", "#FF780A"),
    "purple": ("#B877D9", "#A352CC"),
    "blue": ("#5794F2", "#3274D9"),
    "dark-yellow": ("#E0B400", "#CC9D00"),
}
"""Grafana's colours by name, in the dark and in the light theme."""
SIGHT = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}  # fmt: skip
APART = 20
"""A distance of 2.3 is just noticeable side by side; bars and lines are small and not side by side."""
TOGETHER = ((GOOD, *SEVERITY.values()), (RECEIVED, SENT), (CNP_SENT, CNP_HANDLED, CNP_IGNORED))


def linear(colour: str) -> list[float]:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def seen(colour: str, sight: str) -> tuple[float, float, float]:
    """The colour in L*a*b* with that kind of vision."""
    light = linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(one * part for one, part in zip(row, light, strict=True))))
        for row in SIGHT[sight]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    x, y, z = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str, theme: int, sight: str) -> float:
    return math.dist(seen(PALETTE[one][theme], sight), seen(PALETTE[other][theme], sight))


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1], ids=["dark", "light"])
def test_colours_with_a_meaning_are_distinguishable(theme: int, sight: str) -> None:
    close = [
        pair
        for colours in TOGETHER
        for pair in combinations(colours, 2)
        if distance(*pair, theme, sight) < APART
    ]
    assert close == []


def test_plain_green_and_red_would_be_one_colour() -> None:
    """The colours of an earlier version: the test can fail."""
    assert distance("green", "red", 0, "deuteranopia") < 10


def test_colours_of_devices_and_priorities_are_neither_good_nor_bad() -> None:
    assert not [colour for colour in IDENTITY if colour.endswith(("red", "green"))]
    assert len(set(IDENTITY)) == len(IDENTITY) == 8
