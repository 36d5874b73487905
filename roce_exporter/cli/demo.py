"""`roce-exporter demo`: a simulated host on the terminal."""

import argparse
import asyncio
from importlib.util import find_spec

from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import progress
from roce_exporter.cli.parts import open_kernel, parts_of, simulated_ports
from roce_exporter.host.kernel import Kernel

RICH_IS_MISSING = "demo needs the package rich; install the extra demo, in a clone: pip install '.[demo]'"


async def demo(options: argparse.Namespace, kernel: Kernel) -> int:
    """Show a simulated host until SIGTERM, SIGINT, SIGHUP or the end of --duration, and others by a key.

    Raises:
        OptionError: rich is not installed.
    """
    if find_spec("rich") is None:
        raise OptionError(RICH_IS_MISSING)
    from roce_exporter.demo import run_demo  # noqa: PLC0415 - imports rich, which the daemon does not install
    from roce_exporter.host.simulated.kernel import SimulatedKernel  # noqa: PLC0415 - its import takes long
    from roce_exporter.host.simulated.simulated_switch import simulate_switch  # noqa: PLC0415 - the same

    loop = asyncio.get_running_loop()
    end = None if options.duration is None else loop.time() + options.duration
    while True:
        assert isinstance(kernel, SimulatedKernel)  # noqa: S101 - the options of this command select no other host
        leaf = simulate_switch(
            options.host_simulate,
            start=kernel.world.start,
            vendors=simulated_ports(options),
            seed=options.host_simulate_seed,
        )
        starting = progress(f"starting {options.host_simulate}")
        wanted = await run_demo(
            kernel, leaf, parts_of(options), options.host_simulate, starting=starting, end=end
        )
        if not wanted:
            return 0
        options.host_simulate = wanted
        kernel = open_kernel(options)
