"""The flags of `translate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.cli.parser import OptionError
from roce_exporter.cli.shared_flags import add_log_flags

if TYPE_CHECKING:
    import argparse

TRANSLATE = "translate"
STANDARD_INPUT = "-"
EXPORTERS = ("node_exporter", "rdma_exporter", "spiderpool")
"""Those of migrate/foreign.py, whose import is slow; a test compares them."""
TEXT, JSON = "text", "json"


def add_translate_flags(parser: argparse.ArgumentParser) -> None:
    """What is translated, from which names, and to where."""
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="FILE",
        help="Grafana dashboard (.json), rule file or PrometheusRule (.yml, .yaml, .rules), PromQL (.promql); - for standard input",
    )
    add(
        "--from",
        dest="exporters",
        action="append",
        choices=EXPORTERS,
        help="exporter whose names are translated, may be repeated (all)",
    )
    add(
        "--output",
        default="",
        metavar="PATH",
        help="file to write, or folder for several files (standard output)",
    )
    add("--in-place", dest="in_place", action="store_true", help="replace the files")
    add(
        "--report",
        choices=(TEXT, JSON),
        default=TEXT,
        help=f"format of the report on standard error ({TEXT})",
    )
    add_log_flags(parser)


def check_translate_options(options: argparse.Namespace) -> None:
    """Refuse contradictions.

    Raises:
        OptionError: one line that names the flag.
    """
    if options.in_place and options.output:
        raise OptionError("--in-place and --output contradict each other; give one of them")
    if options.in_place and STANDARD_INPUT in options.files:
        raise OptionError("--in-place cannot replace standard input; name a file")
    if options.files.count(STANDARD_INPUT) > 1:
        raise OptionError("standard input can be read once; name - once")
    if len(options.files) > 1 and not (options.in_place or options.output):
        raise OptionError("several files need --output=FOLDER or --in-place")
