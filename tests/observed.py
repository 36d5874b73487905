"""A host observed with a stopped clock, and the content of its exposition."""

from collections.abc import Sequence
from contextlib import closing

from roce_exporter.assemble import Clock, Parts, assemble
from roce_exporter.checks.settings import Auditor
from roce_exporter.exporter import Exporter, Observation
from roce_exporter.exposition import Format
from roce_exporter.host.kernel import Kernel
from roce_exporter.model import DeviceReadings
from roce_exporter.normalise.series import Samples
from roce_exporter.owners import SurveyLimits

WALL = 1_763_000_000.0
"""Unix time of every observation: after the start of every recorded process."""


async def observe(kernel: Kernel, times: int = 1) -> tuple[Exporter, list[Observation]]:
    """`times` collections of one kernel, each with a survey of its owners and a read of its log; every timed duration is 0 s."""
    parts = Parts(profile=None, pace=None, owners=SurveyLimits(), kernel_log=True, health=False)
    with closing(assemble(kernel, parts, Clock(lambda: 0.0, lambda: WALL))) as exporter:
        return exporter, [await exporter.observe_complete() for _ in range(times)]


def audited(auditor: Auditor, devices: Sequence[DeviceReadings]) -> Samples:
    """The samples of an audit of these devices."""
    auditor.follow(devices)
    (found,) = auditor.samples()
    return found


async def exposition(kernel: Kernel) -> bytes:
    """One collection of a kernel, in the text format."""
    exporter, (observation,) = await observe(kernel)
    return exporter.render(observation, Format.TEXT)


def samples(text: bytes) -> dict[str, str]:
    """Each series and its value, both as written in the exposition."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    found = {series: value for series, _, value in (line.rpartition(" ") for line in lines)}
    assert len(found) == len(lines), "a series twice"
    return found
