"""Every counter that the source of a RoCE driver has on this kernel (tests/drift) is read, and has a row or a reason."""

from collections.abc import Iterator

import nic
import pytest
from daemon import Exporter
from nic import Nic

DEVICES = {
    "mlx5": "mlx5_0",
    "mlx4": "mlx4_0",
    "bnxt": "bnxt_re0",
    "ionic": "ionic_0",
    "ice": "irdma0",
    "i40e": "iwarp0",
    "hns": "hns_0",
    "qedr": "qedr0",
    "efa": "efa_0",
    "mana": "mana_0",
    "erdma": "erdma_0",
}
"""Personalities, and the names of their first RDMA device."""


@pytest.fixture(scope="module")
def zoo() -> Iterator[dict[str, Nic]]:
    """One card of every personality, with every feature on for which mlx5 lists names: PFC, global pause and others."""
    nic.load(",".join(DEVICES))
    for card in nic.nics().values():
        card.leg("ethtool").write("refresh_ms", "0")
        card.leg("dcb").set({"pfc_enabled": 255})
        card.leg("pause").set({"receive": 1})
        card.leg("link").set({"features": 1})
    yield nic.nics()
    nic.unload()


@pytest.fixture(scope="module")
def reading(zoo) -> Iterator[Exporter]:
    """One exporter that reads all of them."""
    made = Exporter("--collect.timeout=10", "--sampler.mode=off")
    yield made
    assert made.stop() == 0


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_every_name_has_its_own_series_or_a_reason(zoo, reading, device) -> None:
    """Each raw name that the driver has on this kernel gets a unique number, and each number appears once."""
    card = zoo[device]
    set_to: dict[str, dict[str, int]] = {}
    for source, where in (("hw_counters", "rdma"), ("ethtool", "leg0/ethtool")):
        names = card.table(where).values()
        # below 2^31, because some counters are that narrow
        set_to[source] = {name: 1000 * (position + 1) for position, name in enumerate(names)}
        if names:
            card.table(where).set(set_to[source])
    reading.scrape()
    told = next(one for one in reading.snapshot()["devices"] if one["device"] == device)
    assert told["unmapped"] == []
    assert told["lost"] == []
    read = {(one["source"], raw): number for one in told["values"] for raw, number in one["raw"].items()}
    wrong = {
        (source, raw, number)
        for (source, raw), number in read.items()
        if source in set_to and set_to[source][raw] != number
    }
    assert wrong == set()
    # erdma counts nothing before Linux 6.12.
    assert any(source in set_to for source, _ in read) is any(set_to.values())
