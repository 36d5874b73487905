"""The jobs of the simulated host: their objects, and counter sets that agree with the counters of the port."""

from collections import Counter

import pytest
from clock import Clock
from steered import START, rdma

from roce_exporter.host.kernel import Absent
from roce_exporter.host.simulated.jobs import FUNCTIONS, JOBS, OF_PORT_ONLY, SLURM, STORAGE, TRAINING
from roce_exporter.host.simulated.kernel import SimulatedKernel, simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.host.simulated.world import VENDORS
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject

COUNTED = ("out_of_sequence", "local_ack_timeout_err", "duplicate_request", "req_transport_retries_exceeded")


def host(
    scenario: str, seconds: float, ports: int = 4, vendor: str = "mlx5"
) -> tuple[SimulatedKernel, Clock]:
    clock = Clock()
    kernel = simulate(scenario, clock=clock, vendors=(vendor,) * ports)
    clock.now = START + seconds
    return kernel, clock


def objects(kernel: SimulatedKernel, device: RdmaDevice, kind: ObjectKind) -> list[RdmaObject]:
    found = kernel.open_objects(device, kind)
    return [one for part in iter(found.next_part, None) for one in part]


def sets_by_command(kernel: SimulatedKernel, number: int = 0) -> dict[str, list[CounterSet]]:
    found: dict[str, list[CounterSet]] = {}
    for one in kernel.counter_sets(kernel.rdma_devices()[number], 1):
        found.setdefault(kernel.process(one.pid).command, []).append(one)
    return found


def total(sets: list[CounterSet], name: str) -> int:
    return sum(one.values[name] for one in sets)


@pytest.mark.parametrize("ports", [1, 3, 4, 16])
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_summary_of_a_device_counts_its_objects(vendor, ports) -> None:
    kernel, _ = host("quiet", 10, ports, vendor)
    for device in kernel.rdma_devices():
        summary = kernel.rdma_resources(device)
        assert {kind: len(objects(kernel, device, kind)) for kind in ObjectKind} == {
            kind: summary[kind.value] for kind in ObjectKind
        }


def test_numbers_of_queue_pairs_are_unique_on_a_device_and_connections_name_theirs() -> None:
    kernel, _ = host("quiet", 10, 1)
    device = kernel.rdma_devices()[0]
    pairs = objects(kernel, device, ObjectKind.QUEUE_PAIR)
    assert len({one.number for one in pairs}) == len(pairs)
    connections = objects(kernel, device, ObjectKind.CONNECTION)
    assert {one.number for one in connections} < {one.number for one in pairs}
    assert Counter(one.peer for one in connections) == dict.fromkeys(STORAGE.peers, 4)
    assert {one.kernel for one in connections} == {"nvme_rdma"}


def test_processes_are_those_of_the_jobs() -> None:
    kernel, _ = host("quiet", 0)
    first = kernel.process(TRAINING.first_pid)
    assert (first.command, first.user) == ("python3", "1000")
    assert (
        kernel.process(SLURM.first_pid).cgroups
        == "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"
    )
    for pid in (0, 1, TRAINING.first_pid + TRAINING.ranks, STORAGE.first_pid):
        with pytest.raises(Absent):
            kernel.process(pid)
        with pytest.raises(Absent):
            kernel.process_start(pid)
    assert kernel.process_start(TRAINING.first_pid) == first.created


def test_pods_of_two_hosts_differ_and_the_slurm_job_is_one() -> None:
    first, second = (simulate("quiet", clock=Clock(), seed=seed) for seed in (1, 2))
    pid = TRAINING.first_pid
    assert first.process(pid).cgroups != second.process(pid).cgroups
    assert first.process(SLURM.first_pid) == second.process(SLURM.first_pid)


def test_the_shares_of_the_traffic_are_the_whole() -> None:
    assert sum(job.traffic for job in JOBS) == pytest.approx(1)


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "broken"])
def test_counter_sets_agree_with_the_counters_of_the_port(scenario) -> None:
    """The sum is that of the port but for the kernel's traffic, which no set has."""
    kernel, _ = host(scenario, 400)
    port, found = rdma(kernel), sets_by_command(kernel)
    assert found.keys() == {"python3", "gmx_mpi"}
    for name in COUNTED:
        counted = sum(total(sets, name) for sets in found.values())
        assert port[name] * 0.84 - 4 <= counted <= port[name], name
    assert total(found["python3"], "rdma_rx_bytes") > 2 * total(found["gmx_mpi"], "rdma_rx_bytes") > 0


def test_mlx5_does_not_read_congestion_control_into_a_set() -> None:
    kernel, _ = host("incast", 100)
    port, found = rdma(kernel), sets_by_command(kernel)
    assert port["np_cnp_sent"] > 0
    assert {total(sets, name) for sets in found.values() for name in OF_PORT_ONLY} == {0}
    sent = sum(total(sets, "cc_tx_cnp_pkts") for sets in found.values())
    assert sent == pytest.approx(port["np_cnp_sent"] * 0.85, abs=4)


def test_only_mlx5_has_counter_sets() -> None:
    for vendor in ("bnxt", "ice", "ionic"):
        kernel, _ = host("quiet", 10, vendor=vendor)
        with pytest.raises(Absent):
            kernel.counter_sets(kernel.rdma_devices()[0], 1)


class TestDeadPeer:
    """One job suffers, the others are quiet."""

    @staticmethod
    def in_error(kernel: SimulatedKernel, device: RdmaDevice) -> dict[str, int]:
        pairs = objects(kernel, device, ObjectKind.QUEUE_PAIR)
        return Counter(one.kernel or kernel.process(one.pid).command for one in pairs if one.state == "ERR")

    def test_queue_pairs_of_the_training_job_are_in_error_on_every_port_until_it_starts_again(self) -> None:
        kernel, clock = host("dead-peer", 10)
        assert [self.in_error(kernel, device) for device in kernel.rdma_devices()] == [{}] * 4
        clock.now = START + 60
        assert [self.in_error(kernel, device) for device in kernel.rdma_devices()] == [{"python3": 2}] * 4
        clock.now = START + 190
        assert [self.in_error(kernel, device) for device in kernel.rdma_devices()] == [{}] * 4

    def test_retries_come_first_and_their_end_is_counted(self) -> None:
        kernel, clock = host("dead-peer", 15)
        assert rdma(kernel)["local_ack_timeout_err"] == 0
        clock.now = START + 60
        port = rdma(kernel)
        # The last of them falls on the end of the span, and the sum of two floats decides.
        assert port["local_ack_timeout_err"] in (15, 16)
        assert port["req_transport_retries_exceeded"] == port["req_cqe_error"] == 2
        assert port["req_cqe_flush_error"] == 32

    def test_the_other_job_counts_nothing_but_traffic(self) -> None:
        kernel, _ = host("dead-peer", 60)
        found, port = sets_by_command(kernel), rdma(kernel)
        troubles = (*COUNTED, "packet_seq_err", "rnr_nak_retry_err", "cc_rx_ce_pkts", "cc_tx_cnp_pkts")
        assert {total(found["gmx_mpi"], name) for name in troubles} == {0}
        assert total(found["gmx_mpi"], "rdma_rx_bytes") > 0
        assert total(found["python3"], "req_transport_retries_exceeded") == 2
        assert total(found["python3"], "cc_tx_cnp_pkts") == pytest.approx(port["np_cnp_sent"], abs=2)


def test_a_netlink_fault_fails_the_counter_sets_too() -> None:
    kernel, _ = host("broken", 10)
    with pytest.raises(OSError, match="mlx5_2"):
        kernel.counter_sets(kernel.rdma_devices()[2], 1)
    kernel.counter_sets(kernel.rdma_devices()[0], 1)


def test_an_unknown_device_is_absent() -> None:
    kernel, _ = host("quiet", 10)
    other = RdmaDevice(9, "mlx5_9", "", "", "")
    with pytest.raises(Absent):
        kernel.open_objects(other, ObjectKind.QUEUE_PAIR)
    with pytest.raises(Absent):
        kernel.object_limits(other)
    assert kernel.object_limits(kernel.rdma_devices()[0])["max_qp"] == 131_072


# Virtual functions: two on the first mlx5 port of a host, with a part of its traffic


def virtual_host(*vendors: str, clock: Clock | None = None) -> SimulatedKernel:
    return simulate("quiet", clock=clock or Clock(0.0), vendors=vendors, seed=7)


def test_the_first_mlx5_port_has_two_and_no_other_port_has_any() -> None:
    kernel = virtual_host("bnxt", "mlx5", "mlx5")
    assert [one.number for one in kernel.virtual_functions("eth1")] == [0, 1]
    behind_a_bond = virtual_host("mlx5-lag", "mlx5")
    assert len(behind_a_bond.virtual_functions("eth2")) == len(FUNCTIONS)
    for other, netdev in ((kernel, "eth0"), (kernel, "eth2"), (behind_a_bond, "eth0")):
        with pytest.raises(Absent, match="no virtual functions"):
            other.virtual_functions(netdev)
    assert kernel.link("class/net/eth1/device/virtfn1") == "0000:12:00.2"


def test_their_traffic_is_a_part_of_the_port_and_grows() -> None:
    clock = Clock(0.0)
    kernel = virtual_host("mlx5", clock=clock)
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
    macs = [one.mac for one in virtual_host("mlx5").virtual_functions("eth0")]
    macs += [one.mac for one in virtual_host("bnxt", "mlx5").virtual_functions("eth1")]
    macs += [
        one.mac
        for one in simulate("quiet", clock=Clock(0.0), vendors=("mlx5",), seed=8).virtual_functions("eth0")
    ]
    macs.append(virtual_host("mlx5").mac_address("eth0"))
    assert len(set(macs)) == 7
