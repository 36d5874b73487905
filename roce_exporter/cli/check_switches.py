"""`check switches`: the settings of switches against a profile."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace

from roce_exporter.checks.finding import Report
from roce_exporter.checks.settings import Profile
from roce_exporter.checks.switches.audit_switches import audit_switches
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import progress
from roce_exporter.switches.probe import Prober, ProbeResult, UnknownTargetError
from roce_exporter.switches.switch_view import answer_views
from roce_exporter.switches.targets import ALL_PRIORITIES, SwitchesFile, read_switches_file
from roce_exporter.words import counted, few

LONGEST = 120.0  # seconds for one switch, at most; each has the timeout of its target


async def check_switches(options: argparse.Namespace, names: Sequence[str], profile: Profile) -> Report:
    """The settings of the switches of a configuration file, or of those with these names. Reads only; prints commands, runs none.

    Raises:
        UserError: the file is missing or invalid, a name is not a target of it, or a package is not installed.
    """
    prober = Prober(with_all_priorities(read_switches_file(options.switches_config)))
    try:
        targets = names or prober.targets
        if not targets:
            raise OptionError("the configuration file has no targets; name the switches to check")
        async with progress(f"reading {counted(len(targets), 'switch', 'switches')}"):
            answers = await _probe_all(prober, targets)
    except UnknownTargetError as error:
        raise OptionError(f"{error}; it has {few([*prober.targets])}") from None
    finally:
        await prober.close()
    views = answer_views(((answer, None) for answer in answers), (), asyncio.get_running_loop().time())
    return audit_switches(views, profile)


async def _probe_all(prober: Prober, names: Sequence[str]) -> list[ProbeResult]:
    # The deadline of a probe includes its wait for a turn: probe no more switches at once than get one.
    room = asyncio.Semaphore(prober.targets_at_once)

    async def probe(name: str) -> ProbeResult:
        async with room:
            return await prober.probe(name, "", LONGEST)

    return await asyncio.gather(*(probe(name) for name in names))


def with_all_priorities(file: SwitchesFile) -> SwitchesFile:
    """The file with `priorities: all` for every target: a check has to see where PFC is off, too."""
    targets = {name: replace(target, priorities=ALL_PRIORITIES) for name, target in file.targets.items()}
    discovery = tuple(
        one._replace(pattern=replace(one.pattern, priorities=ALL_PRIORITIES)) for one in file.discovery
    )
    return replace(file, targets=targets, discovery=discovery)
