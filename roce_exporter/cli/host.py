"""`roce-exporter once`, `explain` and `capture`: what this host shows, means, and a recording of it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import islice

from roce_exporter.assemble import assemble
from roce_exporter.checks.finding import NotChecked, Status
from roce_exporter.checks.report import EXIT_CODES, rows_document
from roce_exporter.checks.thresholds import shipped_alerts
from roce_exporter.cli.flags import JSON
from roce_exporter.cli.output import complain, print_document, print_text, progress
from roce_exporter.cli.parts import parts_of
from roce_exporter.errors import NO_DEVICE
from roce_exporter.exposition import Format
from roce_exporter.fastloop import Sampler
from roce_exporter.host.kernel import Kernel
from roce_exporter.introspection.explain import Explained, HostStates, explain, nearest, unmapped
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
    from roce_exporter.host.recorded.capture import ONE_MOMENT, capture  # noqa: PLC0415 - its import takes long

    lasts = (options.moments - 1) * options.interval
    async with progress(f"recording {counted(options.moments, 'moment')}, about {lasts:.0f} s"):
        written = await capture(kernel, options.output, options.moments, options.interval)
    if options.format == JSON:
        gaps = [NotChecked(what) for what in written.missing]
        gaps += [NotChecked(ONE_MOMENT)] * (written.moments == 1)
        print_document(rows_document(Status.OK, gaps, files=[written._asdict()]))
    else:
        print_lines(str(written).splitlines())
    return 0


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
    gaps = [NotChecked(NO_DEVICE, needed=not name)] * (not observation.snapshot.devices)
    line = "{device} ({driver}) port {port} {source} {name}"
    found = [Explained([line.format_map(one)], one) for one in unmapped(normaliser)]
    status, fault = Status.UNKNOWN if gaps else Status.OK, f"no name was compared: {NO_DEVICE}"
    near: list[str] = []
    if name:
        found = [*explain(name, observation, normaliser, host), *about_alert(name)]
        by_others = (
            (other, one) for other in EXPORTERS for one in foreign_metrics(other) if one.name == name
        )
        for other, one in [] if found else islice(by_others, 1):
            found.append(Explained([f"{name} is a name of {other}; {one.ours} here"]))
            found += explain(one.ours, observation, normaliser, host)
        status = Status.OK if found else Status.FAILED
        near = [] if found else nearest(name, alert_names())
        fault = f"{name}: not a known metric, raw counter name, counter of this host or alert"
        fault += f"; similar names: {', '.join(near)}" * bool(near)
    if options.format == JSON:
        rows = [one.fields or {"text": one.lines} for one in found]
        print_document(rows_document(status, gaps, explained=rows, similar=near))
    elif status is not Status.OK:
        complain(fault)
    else:
        known = "every raw counter name of this host is known; `explain NAME` explains one"
        print_lines([line for one in found for line in one.lines] or [known])
    return EXIT_CODES[status]


def alert_names() -> list[str]:
    """The alerts that have a runbook."""
    return [one.stem for one in shipped_alerts("runbooks").glob("Roce*.md")]


def about_alert(name: str) -> list[Explained]:
    """The lines of an alert's runbook, a paragraph or an item of a list in one, and its rules; none for any other name."""
    if name not in alert_names():
        return []
    page = shipped_alerts(f"runbooks/{name}.md").read_text(encoding="utf-8")
    lines = re.sub(r"(?<=[^\n|])\n(?![\n|#]|\s*(?:[*-]|\d+\.) )\s*", " ", page).splitlines()
    rules = shipped_alerts("roce.rules.yml").read_text(encoding="utf-8")
    for rule in re.findall(rf"- alert: {name}\n    (.*?)\n +(?:annotations|- \w+):", rules, re.DOTALL):
        lines += ["", "## Rule", "", *rule.replace("\n    ", "\n").splitlines()]
    return [Explained([f"alerts/runbooks/{name}.md", *lines])]


def print_lines(lines: Sequence[str]) -> None:
    """Print lines, on a terminal wrapped at words; what follows the first line of each is indented by two more."""
    indents = (line[: len(line) - len(line.lstrip())] + "  " for line in lines)
    width = terminal_width(sys.stdout)
    parts = (
        part for line, more in zip(lines, indents, strict=True) for part in wrapped(line, width, more) or [""]
    )
    print_text("".join(f"{part}\n" for part in parts))
