"""The configuration file: YAML with the same keys as the flags, without their dashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.cli.parser import OptionError, flags_of_commands
from roce_exporter.yaml_document import (
    DocumentError,
    mapping_of,
    parse_document,
    read_text,
    text_of,
    values_of,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from roce_exporter.yaml_document import Entry

NOT_KEYS = ("--help", "--config.file")
SWITCHES = {"true": True, "false": False}


def config_flags(path: str, argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """The keys of a configuration file as flags of the command `argv[0]`, except those that `argv` itself contains.

    Raises:
        OptionError: the file cannot be read, or a key or a value in it is unknown or invalid; the message names the line.
    """
    given = {argument.partition("=")[0] for argument in argv if argument.startswith("--")}
    commands = flags_of_commands(parser)
    flags: list[str] = []
    try:
        for key, entry in mapping_of(_document(path)).items():
            owner, arguments = _arguments(key, entry, argv[0], commands)
            _try_out(entry, parser, [owner, *arguments])
            if owner == argv[0] and f"--{key}" not in given:
                flags += arguments
    except DocumentError as error:
        raise OptionError(str(error)) from None
    return flags


def _document(path: str) -> Entry | None:
    return parse_document(Path(path), read_text(Path(path), "--config.file"))


def _arguments(
    key: str, entry: Entry, command: str, commands: Mapping[str, Mapping[str, argparse.Action]]
) -> tuple[str, list[str]]:
    """The command against which a key is checked, and the key as flags of that command."""
    # All commands share one file, so a key of another command is valid; a key that no command has is an error.
    flag = f"--{key}"
    owners = [name for name in (command, *commands) if flag in commands.get(name, ())]
    if not owners or flag in NOT_KEYS:
        entry.refuse("unknown key; the keys are the flags without their dashes, see --help")
    if commands[owners[0]][flag].nargs == 0:
        return owners[0], [flag] if _is_on(entry) else []
    return owners[0], [f"{flag}={text_of(value)}" for value in values_of(entry)]


def _is_on(entry: Entry) -> bool:
    """The value of a flag that takes none."""
    text = text_of(entry).lower()
    if text not in SWITCHES:
        entry.refuse(f"must be true or false, not {text!r}")
    return SWITCHES[text]


def _try_out(entry: Entry, parser: argparse.ArgumentParser, argv: list[str]) -> None:
    try:
        parser.parse_args(argv)
    except OptionError as error:
        entry.refuse(str(error))
