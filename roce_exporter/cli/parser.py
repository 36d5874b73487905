"""Additions to argparse: errors in one line, and flags before the command."""

from __future__ import annotations

import argparse
from typing import NoReturn


class OptionError(Exception):
    """An invalid flag or key: one line that names it and says what to do."""


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Report an error.

        Raises:
            OptionError: always.
        """
        raise OptionError(f"{message}; see {self.prog} --help")


def flags_of_commands(parser: argparse.ArgumentParser) -> dict[str, dict[str, argparse.Action]]:
    """Per command, every flag and what it does."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse has no public list of its flags
    return {
        name: {flag: action for action in command._actions for flag in action.option_strings}  # noqa: SLF001 - the same
        for name, command in commands.choices.items()
    }


def command_first(argv: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """The arguments with the command in front, wherever it is among the flags; `serve` if they name no command."""
    takes_value = {
        flag
        for command in flags_of_commands(parser).values()
        for flag, action in command.items()
        if action.nargs != 0
    }
    position = 0
    while position < len(argv) and argv[position].startswith("-"):
        position += 2 if argv[position] in takes_value else 1
    if position < len(argv):
        return [argv[position], *argv[:position], *argv[position + 1 :]]
    return argv if {"-h", "--help", "--version"} & set(argv) else ["serve", *argv]
