"""The history of each fault, as `roce-exporter check health` would read it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from changed_host import EPOCH, changed_host
from fault_table import Fault
from kernel import ScriptedPort, simulate_script
from recorded import files, recording

from roce_exporter.assemble import Clock
from roce_exporter.cli.check_host import HostCourse, sampled
from roce_exporter.cli.options import parse_options
from roce_exporter.host.kernel import Kernel
from roce_exporter.host.recorded.recorded import RecordedKernel, load_recording
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.conditions import Conditions, Pause, Span
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.view.host_view import History, HostClock

SINCE, APART = 600.0, 15.0


async def fault_history(fault: Fault, moments: tuple[Tree, ...]) -> History:
    """The history of a fault; `moments` are those of the healthy host that some are changes of."""
    clock = HostClock()
    if fault.recording:
        return await recorded_history(load_recording(recording(fault.recording)), fault.profile)
    if fault.simulate:
        kernel: Kernel = simulate(fault.simulate, clock=clock, vendors=fault.vendors)
        return await simulated_history(kernel, clock)
    if fault.script:
        kernel = simulate_script([ScriptedPort(fault.vendor, [*_spans(fault.script)])], clock=clock)
        return await simulated_history(kernel, clock)
    module = files("mlx5-pair")["ethtool/ens1f0np0.module"]
    return await recorded_history(changed_host(fault, moments, module))


def _spans(script: Sequence[Mapping[str, Any]]) -> Iterator[Span]:
    for one in script:
        given = dict(one)
        seconds = given.pop("seconds")
        given["pauses"] = tuple(Pause(**pause) for pause in given.get("pauses", ()))
        yield Span(seconds, Conditions(**given))


async def recorded_history(kernel: RecordedKernel, profile: str = "auto", times: int = 0) -> History:
    """All moments of a recording; or `times` moments 15 s apart, the last of them repeated."""
    clock = HostClock()
    options = parse_options(["check", f"--audit.profile={profile}", "--host.recording=x"])
    times_of = kernel.times[:1] if times else kernel.times
    course = HostCourse(Clock(clock, clock), times_of, clock.play, lambda now: now)
    return (await sampled(options, kernel, course)).history


async def simulated_history(
    kernel: Kernel, clock: HostClock, times: Sequence[float] = (), *, storms: bool = True
) -> History:
    """Ten minutes of a simulated host, a sample every 15 s, with the fast loop; or these times."""
    times = times or [APART * number for number in range(int(SINCE / APART) + 1)]
    options = parse_options(["check", "--host.simulate=quiet"])
    options.sampler_mode = "adaptive" if storms else "off"
    course = HostCourse(Clock(clock, lambda: EPOCH + clock.now), times, clock.play, lambda now: EPOCH + now)
    return (await sampled(options, kernel, course)).history
