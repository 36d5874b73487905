"""The VFs of the simulated host: two on its first mlx5 port, with a part of its traffic, and the same after a capture."""

import pytest
from clock import Clock

from roce_exporter.host.kernel import Absent
from roce_exporter.host.simulated.jobs import FUNCTIONS
from roce_exporter.host.simulated.kernel import SimulatedKernel, simulate


def host(*vendors: str, clock: Clock | None = None) -> SimulatedKernel:
    return simulate("quiet", clock=clock or Clock(0.0), vendors=vendors, seed=7)


def test_the_first_mlx5_port_has_two_and_no_other_port_has_any() -> None:
    kernel = host("bnxt", "mlx5", "mlx5")
    assert [one.number for one in kernel.virtual_functions("eth1")] == [0, 1]
    behind_a_bond = host("mlx5-lag", "mlx5")
    assert len(behind_a_bond.virtual_functions("eth2")) == len(FUNCTIONS)
    for other, netdev in ((kernel, "eth0"), (kernel, "eth2"), (behind_a_bond, "eth0")):
        with pytest.raises(Absent, match="no virtual functions"):
            other.virtual_functions(netdev)
    assert kernel.link("class/net/eth1/device/virtfn1") == "0000:12:00.2"


def test_their_traffic_is_a_part_of_the_port_and_grows() -> None:
    clock = Clock(0.0)
    kernel = host("mlx5", clock=clock)
    clock.now = 10.0
    first = kernel.virtual_functions("eth0")
    whole = kernel.world.cards[0].facts(clock.now)["receive_rdma_bytes"]
    assert [one.counts["rx_bytes"] for one in first] == [int(one.share * whole) for one in FUNCTIONS]
    assert 0 < sum(one.share for one in FUNCTIONS) < 1
    clock.now = 20.0
    second = kernel.virtual_functions("eth0")
    assert all(
        later.counts["tx_bytes"] > one.counts["tx_bytes"] for one, later in zip(first, second, strict=True)
    )


def test_addresses_differ_between_functions_ports_and_hosts() -> None:
    macs = [one.mac for one in host("mlx5").virtual_functions("eth0")]
    macs += [one.mac for one in host("bnxt", "mlx5").virtual_functions("eth1")]
    macs += [
        one.mac
        for one in simulate("quiet", clock=Clock(0.0), vendors=("mlx5",), seed=8).virtual_functions("eth0")
    ]
    macs.append(host("mlx5").mac_address("eth0"))
    assert len(set(macs)) == 7
