"""From surveys to the owners of a scene, for a simulated host in simulated time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roce_exporter.catalog import owners
from roce_exporter.collect import Collector, Settings
from roce_exporter.demo.figures import TimedValues
from roce_exporter.demo.owner_figures import (
    CNPS,
    OWNER_WANTED,
    RETRIES,
    OwnerFigures,
    owner_values,
    suffering,
)
from roce_exporter.demo.scene import ShownOwner
from roce_exporter.exporter import Exporter
from roce_exporter.owners import SurveyLimits, Surveyor
from roce_exporter.simulation.kernel import simulate

WALL = 1_763_000_000.0


def moment(time: float, in_error: int = 0, **counters: float) -> TimedValues:
    values = {
        ("roce_owner_queue_pairs", ("a_0", "slurm/1.0", "RTS", "RC")): 8.0,
        ("roce_owner_queue_pairs", ("a_1", "slurm/1.0", "RTS", "UD")): 2.0,
        ("roce_owner_queue_pairs_in_error", ("a_0", "slurm/1.0")): float(in_error),
        ("roce_owner_queue_pairs_in_error", ("a_1", "slurm/1.0")): 0.0,
        ("roce_owner_info", ("slurm/1.0", "slurm", "gmx", "", "", "", "1", "0", "")): 1.0,
    }
    for name, value in counters.items():
        for device in ("a_0", "a_1"):
            values[f"roce_owner_{name}_total", (device, "slurm/1.0", "1")] = value
    return TimedValues(time, values)


def last(*moments: TimedValues) -> ShownOwner:
    figures = OwnerFigures()
    (found,) = [figures.owners(one) for one in moments][-1]
    return found


def test_the_metrics_exist() -> None:
    names = {row.name for row in owners.ROWS}
    assert names >= OWNER_WANTED


def test_an_owner_is_summed_over_devices() -> None:
    assert last(moment(0.0, 1)) == ShownOwner("slurm/1.0", "gmx", 10, 1, None, None)


def test_rates_are_of_all_devices_and_of_the_last_seconds() -> None:
    calm = [moment(float(second), flow_cnp_received=100.0) for second in range(20)]
    assert last(*calm).cnps == 0
    assert last(*calm, moment(20.0, flow_cnp_received=130.0)).cnps == pytest.approx(2 * 30 / 6)


def test_retries_are_timeouts_and_naks() -> None:
    counted = {"transport_ack_timeouts": 6.0, "transport_packet_sequence_errors": 12.0}
    found = last(moment(0.0, **dict.fromkeys(counted, 0.0)), moment(6.0, **counted))
    assert found.retries == pytest.approx(2 * (1 + 2))


def test_a_counter_that_is_0_for_ports_only_does_not_hide_the_other() -> None:
    none = {"cnp_handled": 0.0, "flow_cnp_received": 0.0}
    assert last(moment(0.0, **none), moment(6.0, **none | {"flow_cnp_received": 60.0})).cnps == 20
    assert {f"roce_owner_{name}_total" for name in none} == set(CNPS)
    assert len(RETRIES) == 3


def test_queue_pairs_in_error_come_first_then_retries_then_cnps() -> None:
    calm = ShownOwner("a", "", 1, 0, None, None)
    notified = replace(calm, owner="b", cnps=9.0)
    retrying = replace(calm, owner="c", retries=1.0)
    broken = replace(calm, owner="d", in_error=1)
    assert sorted((calm, notified, retrying, broken), key=suffering) == [broken, retrying, notified, calm]


async def test_the_scenario_shows_who_suffers() -> None:
    """The whole way from the simulated host to the scene."""
    time = [1000.0]
    kernel = simulate("dead-peer", clock=lambda: time[0])
    collector = Collector(kernel, Settings(), lambda: time[0])
    surveyor = Surveyor(kernel, SurveyLimits(), lambda: time[0], lambda: WALL + time[0])
    exporter, figures = Exporter(collector, surveyor=surveyor), OwnerFigures()
    seen = []
    try:
        for time[0] in range(1000, 1070):
            observation = await exporter.observe_complete()
            seen.append(figures.owners(owner_values(observation.samples, time[0])))
    finally:
        collector.close()
    names = [owner.owner.partition("/")[0] for owner in seen[-1]]
    assert sorted(names) == ["kernel", "kernel", "pod", "slurm"]
    worst, *others = seen[-1]
    assert (worst.command, worst.in_error, worst.queue_pairs) == ("python3", 8, 112)
    assert all(owner.in_error == 0 for owner in others)
    assert max(owner.retries or 0 for moment in seen for owner in moment if owner.command == "python3") > 5
    assert max(owner.retries or 0 for moment in seen for owner in moment if owner.command == "gmx_mpi") == 0
    assert max(owner.cnps or 0 for moment in seen for owner in moment if owner.command == "gmx_mpi") == 0
