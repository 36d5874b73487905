"""The drivers of a simulated host write about their links and transceivers."""

import pytest

from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.simulated.world import VENDORS
from roce_exporter.model import decode_record
from roce_exporter.normalise.log_lines import event_of, read_line


def events(vendor: str, scenario: str, seconds: float = 150.0) -> list[tuple[tuple[str, ...], str]]:
    """Names and events of the messages, in order."""
    time = [0.0]
    kernel = simulate(scenario, clock=lambda: time[0], vendors=(vendor,) * 2)
    log = kernel.open_kernel_log(oldest=False)
    found = []
    while time[0] < seconds:
        time[0] += 1.0
        for raw in log.read(1000).records:
            record = decode_record(raw)
            assert record is not None
            line = read_line(record)
            assert line is not None
            found.append((line.names, event_of(line)))
    return found


def test_an_overheating_transceiver_is_reported_before_the_link_goes_down() -> None:
    found = events("mlx5", "overheating", 80)
    assert [event for _, event in found] == [
        "module_high_temperature",
        "link_down",
        "module_unplugged",
        "module_plugged",
        "link_up",
    ]
    assert {names[-1] for names, _ in found} == {"0000:11:00.0"}


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_driver_reports_its_link_as_often_as_it_changes(vendor) -> None:
    found = [event for _, event in events(vendor, "flapping")]
    assert found.count("link_down") > 1
    assert abs(found.count("link_down") - found.count("link_up")) <= 1
    assert set(found) == {"link_down", "link_up"}


def test_a_quiet_host_writes_nothing() -> None:
    assert events("mlx5", "quiet") == []


def test_each_reader_has_its_own_position() -> None:
    time = [0.0]
    kernel = simulate("flapping", clock=lambda: time[0])
    time[0] = 100.0
    newest, oldest = kernel.open_kernel_log(oldest=False), kernel.open_kernel_log(oldest=True)
    assert newest.read(10).records == ()
    first = oldest.read(1).records + oldest.read(1).records
    assert first == kernel.open_kernel_log(oldest=True).read(2).records
    assert len(first) == 2
