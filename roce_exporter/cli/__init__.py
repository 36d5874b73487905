"""The command line: flags and the configuration file, and one module per command."""

from roce_exporter.cli.entry import main

__all__ = ["main"]
