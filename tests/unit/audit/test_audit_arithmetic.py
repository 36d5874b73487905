"""DSCP, ToS, ECN, headroom and RDMA MTU: values computed by hand, and properties of all values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.checks.settings.arithmetic import (
    ECT_0,
    dscp_of,
    headroom,
    is_ect,
    least_mtu,
    precedence_of,
    rdma_mtu,
    tos_of,
)

GIGABIT = 125_000_000
"""Bytes per second."""


@given(st.integers(0, 63), st.integers(0, 3))
def test_a_tos_holds_its_dscp_its_ecn_and_its_class(dscp, ecn) -> None:
    tos = tos_of(dscp, ecn)
    assert 0 <= tos <= 255
    assert dscp_of(tos) == dscp
    assert tos & 3 == ecn
    assert precedence_of(tos) == dscp // 8
    assert is_ect(tos) == (ecn in (1, ECT_0))


@pytest.mark.parametrize(
    ("mtu", "gigabits", "metres", "expected"),
    [
        (4200, 100, 7, 43_024),
        (4200, 100, 100, 63_124),
        (9000, 400, 30, 170_480),
        (4200, 200, 100, 114_824),
        (1500, 40, 0, 16_120),
        (1500, 10, 0, 16_120),  # the driver assumes 40 Gb/s at least
    ],
)
def test_headroom_is_that_of_mlx5(mtu, gigabits, metres, expected) -> None:
    assert headroom(mtu, gigabits * GIGABIT, metres) == expected


@given(st.integers(256, 10_000), st.integers(1, 800), st.integers(0, 1000))
def test_larger_inputs_never_need_less_headroom(mtu, gigabits, metres) -> None:
    least = headroom(mtu, gigabits * GIGABIT, metres)
    assert headroom(mtu + 100, gigabits * GIGABIT, metres) > least
    assert headroom(mtu, (gigabits + 1) * GIGABIT, metres) >= least
    assert headroom(mtu, gigabits * GIGABIT, metres + 1) > least


@pytest.mark.parametrize("wanted", [256, 512, 1024, 2048, 4096])
def test_the_least_mtu_is_just_enough(wanted) -> None:
    assert rdma_mtu(least_mtu(wanted)) == wanted
    assert rdma_mtu(least_mtu(wanted) - 1) < wanted
