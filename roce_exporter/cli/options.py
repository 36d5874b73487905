"""The options of one run: the command line and the configuration file, which has the same keys; flags take precedence."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from roce_exporter import __version__
from roce_exporter.cli.commands import COMMANDS, REMOVED
from roce_exporter.cli.flags import FLAGS, KEYS, Flag
from roce_exporter.cli.output import complain
from roce_exporter.errors import UserError

PROGRAM = "roce-exporter"
TOOL = "tool"
TOOLS = "what is rarely used: `tool translate`, `tool namespaces`, `tool otel-config`"


class OptionError(UserError):
    """An invalid flag or key."""


class Help(argparse.HelpFormatter):
    """Texts whose names are never broken at a hyphen, so that they can be copied."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(formatter_class=Help, allow_abbrev=False, **more)

    def error(self, message: str) -> NoReturn:
        """Report an error. Raises OptionError: always."""
        raise OptionError(f"{message}; see {self.prog} --help")


def parse_options(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one run. Raises OptionError: a flag, a key or a value is unknown or invalid, or the file cannot be read."""
    argv = _with_todays_words(_command_first(list(argv)))
    command = " ".join(argv[: 2 if argv[:1] == [TOOL] else 1])
    parser = make_parser(command if command in COMMANDS else "")
    options, rest = parser.parse_known_args(argv)
    if options.command == TOOL:
        options.command = f"{TOOL} {options.tool}"
    # Words may have flags between them: argparse itself ends a list of words at the first flag.
    if rest and ("words" not in options or any(word.startswith("-") for word in rest)):
        help_of = f"{PROGRAM} {options.command} --help"
        raise OptionError(f"unrecognized arguments: {' '.join(rest)}; see {help_of}")
    if rest:
        options.words += rest
    if getattr(options, "config_file", ""):
        command, words = options.command, options.command.count(" ") + 1
        keys = config_flags(
            options.config_file, command, _given(argv), make_parser()
        )  # one file serves all commands
        topics = getattr(options, "words", None)
        options, _ = parser.parse_known_args([*argv[:words], *keys, *argv[words:]])
        options.command = command
        if topics is not None:
            options.words = topics
    if getattr(options, "audit_profile", "").endswith(".toml"):
        complain("profiles in TOML are deprecated; use YAML: `key: value` per line")
    if "host_recording" not in options:
        return options
    if options.command == "demo":
        options.host_simulate = options.host_simulate or "pfc-storm"
    if len(chosen := host_flags(options)) > 1:
        raise OptionError(f"{' and '.join(chosen)} name different hosts; give one of them")
    return options


def host_flags(options: argparse.Namespace) -> list[str]:
    """The flags that select another host than this one, as they are given."""
    hosts = {
        "--host.recording": options.host_recording,
        "--host.simulate": options.host_simulate,
        "--path.sysfs": options.path_sysfs != "/sys",
    }
    return [flag for flag, value in hosts.items() if value]


def _with_todays_words(argv: list[str]) -> list[str]:
    """The arguments without words of earlier versions, each of which is one line on standard error."""
    if empty := [word for word in argv if re.fullmatch("(--[^=]+=)?", word)]:
        raise OptionError(
            f"{empty[0] or 'an argument'} is empty, as of a variable that is not set; give a value or leave it out"
        )
    if argv and argv[0] in REMOVED:
        raise OptionError(f"{argv[0]} was removed; {REMOVED[argv[0]]}")
    words, before, today = renamed(argv)
    if today:
        complain(f"{before} is deprecated; use {today}")
    command = " ".join(words[: 2 if words[:1] == [TOOL] else 1])
    # One line for a word and its flags.
    given = [] if today else _given(words)
    flags = {flag.name: flag.instead for flag in flags_of(command)} | FLAGS_NOW.get(command, {})
    for flag in given:
        if instead := flags.get(flag):
            complain(f"{flag} is deprecated; use {instead}")
    return [renamed_flag(command, word) for word in words]


def flags_of(command: str) -> list[Flag]:
    """The rows of a command, in the order of the table."""
    return [flag for flag in FLAGS if command in flag.commands]


def make_parser(only: str = "") -> Parser:
    """The parser of the whole command line, or with the flags of one command alone: those of all ten take 40 ms."""
    parser = Parser(
        prog=PROGRAM,
        description="Prometheus exporter for the health of RDMA over Converged Ethernet. It never changes a setting of the host.",
        epilog=f"Every flag, without its dashes, is also a key of the file given with --config.file. Only there: {', '.join(sorted(key.name.removeprefix('--') for key in KEYS))}.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    first = [name for name in COMMANDS if " " not in name]
    for name in first:
        _add_command(commands, name, name, only)
    tool = commands.add_parser(TOOL, help=TOOLS, description=TOOLS)
    tools = tool.add_subparsers(
        dest=TOOL, metavar="{translate,namespaces,otel-config}", required=True, parser_class=Parser
    )
    for name in sorted(COMMANDS.keys() - set(first)):
        _add_command(tools, name.removeprefix(f"{TOOL} "), name, only)
    return parser


def _add_command(commands: argparse._SubParsersAction[Parser], word: str, name: str, only: str) -> None:
    meaning = COMMANDS[name].help
    command = commands.add_parser(word, help=meaning, description=meaning)
    for flag in flags_of(name) if only in ("", name) else ():
        _add(command, flag)


def _add(parser: argparse.ArgumentParser, flag: Flag) -> None:
    shown = argparse.SUPPRESS if flag.instead else flag.help
    if not flag.name.startswith("-"):
        default = [] if flag.nargs == "*" else flag.default
        parser.add_argument(flag.name, nargs=flag.nargs, metavar=flag.metavar, default=default, help=shown)
        return
    # `-o, --output`, but `--audit.profile, --profile`.
    names = [name for name in (flag.short, flag.name) if name]
    names.sort(key=lambda name: name != flag.name and name.startswith("--"))
    dest = flag.dest or re.sub("[.-]", "_", flag.name.removeprefix("--"))
    if flag.is_switch:
        parser.add_argument(*names, dest=dest, action="store_true", help=shown)
        return
    parser.add_argument(
        *names,
        dest=dest,
        action="append" if flag.is_repeated else "store",
        type=flag.type or str,
        choices=flag.choices or None,
        # argparse appends to this list itself.
        default=list(flag.default) if flag.is_repeated else flag.default,
        metavar=flag.metavar or None,
        help=shown,
    )


def _command_first(argv: list[str]) -> list[str]:
    """The arguments with the command in front, wherever it is among the flags; `serve` if they name no command."""
    takes_value = {
        name for flag in FLAGS if not flag.is_switch for name in (flag.name, flag.short) if name[:1] == "-"
    }.union(*FLAGS_NOW.values())
    words: list[str] = []
    position = 0
    while position < len(argv) and words in ([], [TOOL]):
        if argv[position].startswith("-"):
            position += 2 if argv[position] in takes_value else 1
        else:
            words.append(argv.pop(position))
    if words:
        return [*words, *argv]
    return argv if {"-h", "--help", "--version"} & set(argv) else ["serve", *argv]


def _given(argv: Sequence[str]) -> list[str]:
    """The names of the flags in these arguments."""
    return [word.partition("=")[0] for word in argv if word.startswith("--")]


NOT_KEYS = ("--config.file",)
SWITCHES = {"true": True, "false": False}


def config_flags(
    path: str, command: str, given: Collection[str], parser: argparse.ArgumentParser
) -> list[str]:
    """The keys of a configuration file as flags of this command, except those that are given on the command line.

    All commands share one file, so a key of another command is valid; a key that no command has is an error.

    Raises:
        OptionError: the file cannot be read, or a key or a value in it is unknown or invalid; the message names the line.
    """
    from roce_exporter import yaml_document  # noqa: PLC0415 - most runs have no file, and YAML is slow to import

    flags: list[str] = []
    try:
        document = yaml_document.parse_document(
            Path(path), yaml_document.read_text(Path(path), "--config.file")
        )
        for key, entry in yaml_document.mapping_of(document).items():
            name = f"--{key}"
            rows = [flag for flag in FLAGS if flag.name == name and name not in NOT_KEYS]
            if not rows:
                entry.refuse("unknown key; the keys are the flags without their dashes, see --help")
            row = next((flag for flag in rows if command in flag.commands), rows[0])
            if row.is_switch:
                if (text := yaml_document.text_of(entry).lower()) not in SWITCHES:
                    entry.refuse(f"must be true or false, not {text!r}")
                arguments = [name] * SWITCHES[text]
            else:
                texts = [yaml_document.text_of(value) for value in yaml_document.values_of(entry)]
                if "" in texts or (len(texts) > 1 and not row.is_repeated):
                    entry.refuse("is empty, or has several values and takes one")
                arguments = [f"{name}={text}" for text in texts]
            owner = command if command in row.commands else row.commands[0]
            try:
                parser.parse_args([*owner.split(), *arguments])
            except OptionError as error:
                entry.refuse(str(error))
            if owner == command and name not in given:
                flags += arguments
    except yaml_document.DocumentError as error:
        raise OptionError(str(error)) from None
    return flags


# Words of earlier versions: each works for one minor release, with one line on standard error.

FORMER_TOOLS = ("translate", "namespaces")
CHECKS = {"audit": ("settings",), "doctor": ("setup", "settings"), "diagnose": ("health",)}
"""Commands that are topics of `check` now."""
SWITCHES_PORT = 10124  # the port of `switches`
WIRE_PORT = 10125  # the port of `wire --serve`

FLAGS_NOW = {
    "demo": {"--demo.seconds": "--duration"},
    "wire": {"--interface": "--wire.interface"},
    "tool translate": {"--report": "--format"},
    "tool namespaces": {"--namespaces.socket": "--rdma.namespaces"},
}
"""Per command, flags with another name today."""


def renamed_flag(command: str, word: str) -> str:
    """A word of the arguments of a command with today's name of the flag."""
    name, equals, value = word.partition("=")
    return FLAGS_NOW.get(command, {}).get(name, name) + equals + value


def renamed(argv: Sequence[str]) -> tuple[list[str], str, str]:
    """The arguments with today's words, the words that were replaced, and today's; both empty if none was."""
    word, *rest = argv or [""]
    if word in FORMER_TOOLS:
        return ["tool", word, *rest], word, f"tool {word}"
    if word in CHECKS:
        return _check_words(CHECKS[word], rest), word, " ".join(("check", *CHECKS[word]))
    if word == "switches" and "audit" in rest:
        rest.remove("audit")
        flags = [one.replace("--config.file", "--switches.config", 1) for one in rest]
        return _check_words(("switches",), flags), "switches audit", "check switches"
    if word == "switches":
        daemon = _daemon(rest, {"--config.file": "--switches.config"}, SWITCHES_PORT)
        return daemon, word, "serve --no-host --switches.config=FILE"
    if word == "wire" and "--serve" in rest:
        rest.remove("--serve")
        daemon = _daemon(rest, {"--interface": "--wire.interface", "--top": "--wire.top"}, WIRE_PORT)
        return daemon, "wire --serve", "serve --no-host --wire.interface=DEV"
    return list(argv), "", ""


def _check_words(topics: Sequence[str], words: Sequence[str]) -> list[str]:
    """The arguments of `check`, whose text was a table."""
    today = ("text" if one == "table" else one.replace("=table", "=text") for one in words)
    return ["check", *topics, *today]


def _daemon(words: Sequence[str], flags: Mapping[str, str], port: int) -> list[str]:
    """The arguments of a daemon without a host, on the port that it had; a word that is no flag is a capture file."""
    takes_value = {flag.name for flag in FLAGS if not flag.is_switch} | flags.keys()
    found = ["serve", "--no-host"]
    given = iter(words)
    for word in given:
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            found.append(f"--wire.file={word}")
        elif equals or name not in takes_value:
            found.append(flags.get(name, name) + equals + value)
        else:
            found += [flags.get(name, name), *([next(given, "")])]
    if not any(word.startswith("--web.listen-address") for word in words):
        found.append(f"--web.listen-address=:{port}")
    return found
