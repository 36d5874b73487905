"""FEC as the catalogue spells it: totals unchanged, the port's bins added up to buckets, a lane's bins one by one.

A lane may be missing from some bins, so its bins cannot be added up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.ethtool_netlink import Bin, bin_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def fec_numbers(found: Mapping[str, int]) -> dict[str, int]:
    """The kernel's FEC counters: `codewords_le_HIGH` for the bins of the port, `lane_0_codewords_1_to_3` for those of lanes."""
    bins = {one: value for name, value in found.items() if (one := bin_of(name))}
    totals = {name: value for name, value in found.items() if bin_of(name) is None}
    return totals | dict(_buckets(bins)) | dict(_lanes(bins))


def _buckets(bins: Mapping[Bin, int]) -> Iterator[tuple[str, int]]:
    total = 0
    of_port = sorted(one for one in bins if one.lane is None)
    for one in of_port:
        total += bins[one]
        yield f"codewords_le_{one.high}", total
    if of_port:
        yield "codewords_le_+Inf", total


def _lanes(bins: Mapping[Bin, int]) -> Iterator[tuple[str, int]]:
    for one, value in bins.items():
        if one.lane is not None:
            yield f"lane_{one.lane}_codewords_{one.low}_to_{one.high}", value
