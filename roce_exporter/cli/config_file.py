"""The configuration file: YAML with the same keys as the flags, without their dashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.cli.flags import FLAGS
from roce_exporter.cli.options import OptionError
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
    from collections.abc import Collection


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
    flags: list[str] = []
    try:
        document = parse_document(Path(path), read_text(Path(path), "--config.file"))
        for key, entry in mapping_of(document).items():
            name = f"--{key}"
            rows = [flag for flag in FLAGS if flag.name == name and name not in NOT_KEYS]
            if not rows:
                entry.refuse("unknown key; the keys are the flags without their dashes, see --help")
            row = next((flag for flag in rows if command in flag.commands), rows[0])
            if row.is_switch:
                if (text := text_of(entry).lower()) not in SWITCHES:
                    entry.refuse(f"must be true or false, not {text!r}")
                arguments = [name] * SWITCHES[text]
            else:
                arguments = [f"{name}={text_of(value)}" for value in values_of(entry)]
            owner = command if command in row.commands else row.commands[0]
            try:
                parser.parse_args([*owner.split(), *arguments])
            except OptionError as error:
                entry.refuse(str(error))
            if owner == command and name not in given:
                flags += arguments
    except DocumentError as error:
        raise OptionError(str(error)) from None
    return flags
