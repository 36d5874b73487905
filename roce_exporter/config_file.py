"""The configuration file: YAML with the same keys as the flags, without their dashes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import yaml

from roce_exporter.parser import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence


def config_flags(path: str, argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """The keys of a configuration file as flags of the command `argv[0]`, without those that the rest of `argv` gives.

    Raises:
        OptionError: the file cannot be read, or a key or a value in it is unknown or impossible; says which line.
    """
    given = {argument.partition("=")[0] for argument in argv if argument.startswith("--")}
    commands = _flags_of_commands(parser)
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


def _flags_of_commands(parser: argparse.ArgumentParser) -> dict[str, set[str]]:
    """Per command the flags that may stand in a configuration file."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse shows its flags nowhere else
    return {
        name: {flag for action in command._actions for flag in action.option_strings}  # noqa: SLF001 - the same
        - {"--help", "--config.file"}
        for name, command in commands.choices.items()
    }


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
