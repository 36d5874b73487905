"""The command line and the configuration file, which holds the same keys; flags win."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, NoReturn

import yaml

from roce_exporter import __version__, sources
from roce_exporter.collect import Settings
from roce_exporter.log import FORMATS, LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_PORT = 10123
"""To be registered: the public list of exporter ports could not be consulted when it was chosen."""

COMMANDS = {
    "serve": "serve metrics over HTTP (the default)",
    "once": "collect once and print the exposition",
    "capture": "record the host, scrubbed, into a folder or .tar.gz",
    "explain": "say what a raw counter or a metric is, where it comes from and what it is now",
}


class OptionError(Exception):
    """A flag or key that cannot be used; one line that names it and says what to do."""


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Refuse.

        Raises:
            OptionError: always.
        """
        raise OptionError(f"{message}; see {self.prog} --help")


def parse_options(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one run, the configuration file's keys below the flags.

    Raises:
        OptionError: a flag, a key or a value is unknown or impossible, or the file cannot be read.
    """
    argv = list(argv)
    if not argv or (argv[0].startswith("-") and not {"-h", "--help", "--version"} & set(argv)):
        argv.insert(0, "serve")
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.config_file:
        options = parser.parse_args([argv[0], *_config_flags(options.config_file, argv), *argv[1:]])
    if options.host_recording and options.path_sysfs != "/sys":
        raise OptionError("--host.recording and --path.sysfs name two hosts; give one of them")
    return options


def collect_settings(options: argparse.Namespace) -> Settings:
    """The part of the options that collecting needs."""
    return Settings(
        options.device_include,
        options.device_exclude,
        frozenset(options.source_disable),
        options.collect_timeout,
        refresh=options.inventory_refresh,
    )


def make_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="roce-exporter",
        description="Prometheus exporter for the health of RDMA over Converged Ethernet. It only reads.",
        epilog="Every flag is a key of the file that --config.file names, without its dashes.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"roce-exporter {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    host = _host_flags()
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(
            name, parents=[host], help=meaning, description=meaning, allow_abbrev=False
        )
        if name == "serve":
            _add_web_flags(command)
        elif name == "capture":
            _add_capture_flags(command)
        elif name == "explain":
            command.add_argument(
                "name",
                nargs="?",
                metavar="NAME",
                help="raw counter or metric name; without it, what no row knows",
            )
    return parser


def _host_flags() -> Parser:
    flags = Parser(add_help=False, allow_abbrev=False)
    _add_source_flags(flags)
    _add_collect_flags(flags)
    add = flags.add_argument
    add(
        "--config.file",
        dest="config_file",
        default="",
        metavar="FILE",
        help="YAML file with the same keys as these flags",
    )
    add(
        "--log.level",
        dest="log_level",
        choices=LEVELS,
        help="the least that is logged (serve: info, others: warn)",
    )
    add(
        "--log.format",
        dest="log_format",
        choices=FORMATS,
        default="logfmt",
        help="form of the log lines (logfmt)",
    )
    return flags


def _add_source_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--path.sysfs", dest="path_sysfs", default="/sys", metavar="DIR", help="where sysfs is mounted (/sys)"
    )
    add(
        "--host.recording",
        dest="host_recording",
        default="",
        metavar="PATH",
        help="a recorded host, folder or .tar.gz",
    )
    add(
        "--device.include",
        dest="device_include",
        type=_pattern,
        metavar="REGEX",
        help="only devices of this whole name",
    )
    add(
        "--device.exclude",
        dest="device_exclude",
        type=_pattern,
        metavar="REGEX",
        help="no devices of this whole name",
    )
    add(
        "--source.disable",
        dest="source_disable",
        action="append",
        default=[],
        choices=sources.NAMES,
        metavar="SOURCE",
        help=f"leave a source out, may be repeated: {', '.join(sources.NAMES)}",
    )


def _add_collect_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--collect.timeout",
        dest="collect_timeout",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="longest a collection waits for a device, whatever the scraper allows (5)",
    )
    parser.add_argument(
        "--inventory.refresh",
        dest="inventory_refresh",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how often known devices are described anew: firmware, GIDs, network devices (60)",
    )


def _add_web_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--web.listen-address",
        dest="web_listen_address",
        action="append",
        metavar="[HOST]:PORT",
        help=f"address to serve on, may be repeated (:{DEFAULT_PORT}); port 0 picks a free one and logs it",
    )
    parser.add_argument(
        "--web.telemetry-path",
        dest="web_telemetry_path",
        type=_path,
        default="/metrics",
        help="path of the metrics (/metrics)",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        default="",
        metavar="FILE",
        help="TLS and users, in the Prometheus exporter-toolkit format",
    )


def _add_capture_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="roce-host.tar.gz", metavar="FILE", help="a .tar.gz or a new folder"
    )
    parser.add_argument(
        "--moments", type=_count, default=1, metavar="N", help="record the host this often (1)"
    )
    parser.add_argument(
        "--interval", type=_seconds, default=1.0, metavar="SECONDS", help="between two moments (1)"
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:  # noqa: PLR2004 - a day is the longest that makes sense
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0 and up to 86400")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:  # noqa: PLR2004 - a thousand moments fill no disk
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 1000")
    return int(text)


def _path(text: str) -> str:
    if not text.startswith("/") or text in ("/", "/-/healthy", "/-/ready", "/debug/snapshot"):
        raise argparse.ArgumentTypeError(f"{text!r} is no path of its own; use one like /metrics")
    return text


def _config_flags(path: str, argv: Sequence[str]) -> list[str]:
    """The keys of a configuration file as flags of this command, without those that the command line gives itself."""
    given = {argument.partition("=")[0] for argument in argv if argument.startswith("--")}
    parser = make_parser()
    commands = {name: _flags_of(parser, name) for name in COMMANDS}
    flags: list[str] = []
    for key, node in _config_keys(path):
        where, flag = f"{path} line {node.start_mark.line + 1}", f"--{key}"
        values = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(value, yaml.ScalarNode) for value in values):
            raise OptionError(f"{where}: {key} is neither a value nor a list of values")
        arguments = [f"{flag}={value.value}" for value in values]
        # A key of another command is right in a file that all commands share; an unknown key is right in none.
        owner = (
            argv[0]
            if flag in commands.get(argv[0], ())
            else next((c for c in commands if flag in commands[c]), None)
        )
        if owner is None:
            raise OptionError(
                f"{where}: unknown key {key!r}; keys are the flags without their dashes, see --help"
            )
        try:
            parser.parse_args([owner, *arguments])
        except OptionError as error:
            raise OptionError(f"{where}: {error}") from None
        if owner == argv[0] and flag not in given:
            flags += arguments
    return flags


def _flags_of(parser: argparse.ArgumentParser, command: str) -> set[str]:
    """The flags of a command that may stand in a configuration file."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse shows its flags nowhere else
    flags = {flag for action in commands.choices[command]._actions for flag in action.option_strings}  # noqa: SLF001 - the same
    return flags - {"--help", "--config.file"}


def _config_keys(path: str) -> list[tuple[str, yaml.Node]]:
    try:
        with open(path, encoding="utf-8") as file:
            document = yaml.compose(file, Loader=yaml.SafeLoader)
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}; check the path given with --config.file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if document is None:
        return []
    if not isinstance(document, yaml.MappingNode):
        raise OptionError(f"{path} line {document.start_mark.line + 1}: not a mapping of keys to values")
    keys = [(str(key.value), value) for key, value in document.value]
    for position, (key, value) in enumerate(keys):
        if key in (earlier for earlier, _ in keys[:position]):
            raise OptionError(f"{path} line {value.start_mark.line + 1}: {key} stands there twice")
    return keys
