"""`roce-exporter switches audit`: compare the settings of switches with a profile. Reads only; prints commands, runs none."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.checks.settings import JSON, load_profile
from roce_exporter.checks.switches.audit_report import is_clean_switch, switches_json, switches_table
from roce_exporter.checks.switches.audit_switches import audit_switches
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import print_text
from roce_exporter.switches.probe import answer_views
from roce_exporter.switches.targets import ALL_PRIORITIES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from roce_exporter.switches.probe import Prober, ProbeResult
    from roce_exporter.switches.switch_view import SwitchView
    from roce_exporter.switches.targets import SwitchesFile

LONGEST = 120.0
"""Seconds for one switch, at most; each has the timeout of its target."""

CLEAN, WRONG, UNANSWERED = 0, 1, 2


async def audit_targets(options: argparse.Namespace, prober: Prober, names: Sequence[str]) -> int:
    """Print the findings; returns 1 if a setting is wrong, else 2 if a switch did not answer.

    Raises:
        UserError: a name is not a target of the configuration file.
        ProfileError: the profile cannot be used.
    """
    profile = load_profile(options.audit_profile)
    names = tuple(dict.fromkeys(names)) or prober.targets
    if not names:
        raise OptionError("the configuration file has no targets; name the switches to audit")
    answers = await _probe_all(prober, names)
    views = answer_views(((answer, None) for answer in answers), (), asyncio.get_running_loop().time())
    _report_faults(views)
    verdicts = audit_switches(views, profile)
    if options.format == JSON:
        print_text(switches_json(verdicts, profile))
    else:
        colour = sys.stdout is not None and sys.stdout.isatty()
        print_text(switches_table(verdicts, profile, colour=colour))
    if not is_clean_switch(verdicts):
        return WRONG
    return CLEAN if all(view.samples.series for view in views) else UNANSWERED


async def _probe_all(prober: Prober, names: Sequence[str]) -> list[ProbeResult]:
    # The deadline of a probe includes its wait for a turn: probe no more switches at once than get one.
    room = asyncio.Semaphore(prober.targets_at_once)

    async def probe(name: str) -> ProbeResult:
        async with room:
            return await prober.probe(name, "", LONGEST)

    return await asyncio.gather(*(probe(name) for name in names))


def with_all_priorities(file: SwitchesFile) -> SwitchesFile:
    """The file with `priorities: all` for every target."""
    targets = {name: replace(target, priorities=ALL_PRIORITIES) for name, target in file.targets.items()}
    discovery = file.discovery and replace(
        file.discovery, pattern=replace(file.discovery.pattern, priorities=ALL_PRIORITIES)
    )
    return replace(file, targets=targets, discovery=discovery)


def _report_faults(views: Sequence[SwitchView]) -> None:
    """What could not be read, on standard error: checks that need it are unreadable."""
    for view in views:
        for source, fault in view.faults.items():
            sys.stderr.write(f"roce-exporter: {view.device}: {f'{source}: ' if source else ''}{fault}\n")
