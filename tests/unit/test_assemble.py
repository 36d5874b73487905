"""Every command builds the same exporter, so a host has the same metrics wherever they are shown."""

from contextlib import closing

import pytest
from clock import Clock

from roce_exporter.assemble import Parts, assemble
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.parts import open_kernel, parts_of
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
