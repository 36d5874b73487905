"""The flags of the simulated host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

SCENARIOS = (
    "quiet",
    "incast",
    "pfc-storm",
    "slow-receiver",
    "victim",
    "misconfigured",
    "flapping",
    "overheating",
    "lossy",
    "dead-peer",
    "firmware",
    "broken",
)
VENDORS = ("mlx5", "mlx5-lag", "bnxt", "ionic", "ice")
"""The same as in `simulation`, which is imported only where it is used: its import takes as long as all the others together."""


def add_simulation_flags(parser: argparse.ArgumentParser) -> None:
    """What happens on the simulated host, and its ports."""
    add = parser.add_argument
    add(
        "--host.simulate",
        dest="host_simulate",
        default="",
        choices=("", *SCENARIOS),
        metavar="SCENARIO",
        help=f"simulate a host instead of reading this one: {', '.join(SCENARIOS)}",
    )
    add(
        "--host.simulate-ports",
        dest="host_simulate_ports",
        default="mlx5,mlx5,mlx5,mlx5",
        metavar="VENDOR,...",
        help=f"ports of the simulated host, 1 to 16, each one of {', '.join(VENDORS)} (mlx5,mlx5,mlx5,mlx5)",
    )
    add(
        "--host.simulate-seed",
        dest="host_simulate_seed",
        type=int,
        default=1,
        metavar="NUMBER",
        help="random seed of the simulation (1)",
    )
