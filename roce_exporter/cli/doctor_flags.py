"""The flags of `doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.setup.checkup_report import FORMATS, TEXT
from roce_exporter.cli.diagnose_flags import add_prometheus_flags

if TYPE_CHECKING:
    import argparse

DOCTOR = "doctor"

EXPORTER = "http://127.0.0.1:10123"


def add_doctor_flags(parser: argparse.ArgumentParser) -> None:
    """Where the exporter and Prometheus are, and how the page is printed."""
    parser.add_argument("--format", choices=FORMATS, default=TEXT, help=f"format of the page ({TEXT})")
    parser.add_argument(
        "--exporter",
        default=EXPORTER,
        metavar="URL",
        help=f"the exporter that should run on this host ({EXPORTER}); only its /metrics is requested",
    )
    add_prometheus_flags(
        parser, "check in Prometheus, for example http://prometheus:9090, that it scrapes this host"
    )
