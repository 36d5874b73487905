"""Every command builds the same exporter, so a host has the same metrics wherever they are shown."""

import logging
from contextlib import closing

import pytest
from clock import Clock

from roce_exporter.assemble import Parts, assemble
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.parts import open_kernel, parts_of
from roce_exporter.collect import rounds
from roce_exporter.collect.rounds import SECONDS_DOWN, PartRounds
from roce_exporter.exporter import Observation
from roce_exporter.host.simulated.kernel import simulate

SIMULATED = "--host.simulate=quiet"
OF_PARTS = {
    "roce_pfc_storms_total",
    "roce_config_check_ok",
    "roce_port_health",
    "roce_kernel_log_events_total",
    "roce_owner_queue_pairs",
}
"""A metric of each part."""


def names(observation: Observation) -> set[str]:
    return {series.row.name for part in observation.samples for series in part.series}


@pytest.mark.parametrize(
    "command", [["once", "--metrics.set=full"], ["explain", "roce_port_health"], ["serve"]]
)
async def test_each_command_shows_the_metrics_of_every_part(command) -> None:
    options = parse_options([*command, SIMULATED])
    with closing(assemble(open_kernel(options), parts_of(options))) as exporter:
        assert names(await exporter.observe_complete()) >= OF_PARTS


def test_a_part_that_is_left_out_is_not_built() -> None:
    kernel = simulate("quiet", clock=Clock())
    parts = Parts(profile=None, pace=None, owners=None, kernel_log=False, health=False)
    with closing(assemble(kernel, parts)) as exporter:
        assert [type(part).__name__ for part in exporter.parts] == ["HostSources"]


@pytest.mark.parametrize("name", ["note", "read_once", "samples", "states", "follow"])
async def test_a_fault_of_one_part_costs_no_other_in_a_single_exposition(name, monkeypatch) -> None:
    options = parse_options(["once", "--metrics.set=full", SIMULATED])
    with closing(assemble(open_kernel(options), parts_of(options))) as exporter:
        whole = names(await exporter.observe_complete())
        broken = next(part for part in exporter.parts if type(part).__name__ == "Surveyor")
        monkeypatch.setattr(broken, name, lambda *_: int("bug"))
        found = await exporter.observe_complete()
        assert names(found) >= {
            one for one in whole if not one.startswith(("roce_owner", "roce_port_health_reason"))
        }
        assert not any(one.startswith("roce_owner") for one in names(found)), "nothing from before the fault"
        (state,) = (one for one in exporter.states() if one.source == "surveyor")
        assert (state.up, state.error.partition("(")[0]) == (False, "fault in the exporter: ValueError")
        monkeypatch.undo()
        monkeypatch.setattr(rounds, "SECONDS_DOWN", -1.0)
        assert names(await exporter.observe_complete()) >= whole - {"roce_port_health_reason"}


def test_all_faults_are_logged_and_counted_and_after_a_minute_they_are_over(caplog) -> None:
    clock = Clock()
    guard = PartRounds("sampler", clock)
    assert guard.call(lambda: 7) == 7
    assert guard.states() == ()

    def several() -> None:
        raise ExceptionGroup("of tasks", [LookupError("x")])

    for _ in range(3):
        assert guard.call(lambda: int("bug")) is None
        assert guard.call(several) is None
    assert [one.exc_info[0] for one in caplog.records if one.exc_info] == 3 * [ValueError, LookupError]
    (state,) = guard.states()
    assert (state.source, state.up, state.errors_total) == ("sampler", False, 6)
    clock.now += SECONDS_DOWN
    assert not guard.states()[0].up
    clock.now += 1
    assert guard.states()[0][3:7] == (True, 0.0, "", 6)
    assert {record.levelno for record in caplog.records} == {logging.ERROR, logging.WARNING}


async def test_a_part_that_fails_runs_again_until_it_ends() -> None:
    runs: list[int] = []

    async def part() -> None:
        runs.append(1)
        assert len(runs) == 3

    guard = PartRounds("health_watch", Clock())
    await guard.run(part, 0.0)
    assert guard.states()[0].errors_total == 2
