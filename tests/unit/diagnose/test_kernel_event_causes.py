"""Events of the kernel log that mean a failure have a cause."""

from roce_exporter.catalog.kernel_events import EVENTS, FAILED_EVENTS
from roce_exporter.checks.health.device_rules import DEVICE_EVENTS


def test_every_failure_in_the_kernel_log_is_a_cause() -> None:
    names = {event.name for event in EVENTS}
    assert set(FAILED_EVENTS) <= set(DEVICE_EVENTS) <= names
