"""`roce-exporter once`, `explain` and `capture`: what this host shows, means, and a recording of it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import closing

from roce_exporter.assemble import assemble
from roce_exporter.checks.thresholds import shipped_alerts
from roce_exporter.cli.output import complain, print_text, progress
from roce_exporter.cli.parts import parts_of
from roce_exporter.errors import NO_DEVICE
from roce_exporter.exposition import Format
from roce_exporter.fastloop import Sampler
from roce_exporter.host.kernel import Kernel
from roce_exporter.introspection.explain import HostStates, explain, nearest, unmapped
from roce_exporter.migrate.foreign import EXPORTERS, foreign_metrics
from roce_exporter.words import counted, terminal_width, wrapped


async def once(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print one exposition in text format 0.0.4."""
    with closing(assemble(kernel, parts_of(options))) as exporter:
        async with progress("reading this host"):
            observation = await exporter.observe_complete()
        if not observation.snapshot.devices:
            complain(NO_DEVICE)
        print_text(exporter.render(observation, Format.TEXT).decode())
    return 0


async def capture_host(options: argparse.Namespace, kernel: Kernel) -> int:
    """Record the host, with identifying data scrubbed."""
    from roce_exporter.host.recorded.capture import capture  # noqa: PLC0415 - its import takes long

    lasts = (options.moments - 1) * options.interval
    async with progress(f"recording {counted(options.moments, 'moment')}, about {lasts:.0f} s"):
        written = await capture(kernel, options.output, options.moments, options.interval)
    print_lines(written.splitlines())
    return 0


NOT_SEEN = 3  # exit code where nothing is found because nothing could be seen, as of `check`


async def explain_name(options: argparse.Namespace, kernel: Kernel) -> int:
    """Explain one name, or list the raw names without a row; returns 1 if the name is unknown, 3 if there was nothing to list."""
    with closing(assemble(kernel, parts_of(options))) as exporter:
        async with progress("reading this host"):
            observation = await exporter.observe_complete()
    host = HostStates(
        exporter.normaliser.plans.values(),
        (*observation.snapshot.states, *exporter.states()),
        options.source_disable,
        exporter.part(Sampler) is not None,
    )
    name, normaliser = options.name, exporter.normaliser
    if not name and not observation.snapshot.devices:
        complain(f"no name was compared: {NO_DEVICE}")
        return NOT_SEEN
    if not name:
        known = "every raw counter name of this host is known; `explain NAME` explains one"
        lines = list(unmapped(normaliser)) or [known]
    else:
        lines = list(explain(name, observation, normaliser, host)) or about_alert(name)
    if not lines:
        ours = [
            (other, one.ours) for other in EXPORTERS for one in foreign_metrics(other) if one.name == name
        ]
        for other, here in ours[:1]:
            lines = [
                f"{name} is a name of {other}; {here} here",
                *explain(here, observation, normaliser, host),
            ]
    if not lines:
        found = nearest(name, alert_names())
        near = f"; similar names: {', '.join(found)}" if found else ""
        complain(f"{name}: not a known metric, raw counter name, counter of this host or alert{near}")
        return 1
    print_lines(lines)
    return 0


def alert_names() -> list[str]:
    """The alerts that have a runbook."""
    return [one.stem for one in shipped_alerts("runbooks").glob("Roce*.md")]


def about_alert(name: str) -> list[str]:
    """The lines of an alert's runbook, a paragraph or an item of a list in one, and its rules; none for any other name."""
    if name not in alert_names():
        return []
    page = shipped_alerts(f"runbooks/{name}.md").read_text(encoding="utf-8")
    lines = re.sub(r"(?<=[^\n|])\n(?![\n|#]|\s*(?:[*-]|\d+\.) )\s*", " ", page).splitlines()
    rules = shipped_alerts("roce.rules.yml").read_text(encoding="utf-8")
    for rule in re.findall(rf"- alert: {name}\n    (.*?)\n +(?:annotations|- \w+):", rules, re.DOTALL):
        lines += ["", "## Rule", "", *rule.replace("\n    ", "\n").splitlines()]
    return [f"alerts/runbooks/{name}.md", *lines]


def print_lines(lines: Sequence[str]) -> None:
    """Print lines, on a terminal wrapped at words; what follows the first line of each is indented by two more."""
    indents = (line[: len(line) - len(line.lstrip())] + "  " for line in lines)
    width = terminal_width(sys.stdout)
    parts = (
        part for line, more in zip(lines, indents, strict=True) for part in wrapped(line, width, more) or [""]
    )
    print_text("".join(f"{part}\n" for part in parts))
