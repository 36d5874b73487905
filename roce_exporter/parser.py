"""How a command line is refused: with one line that says what is wrong."""

from __future__ import annotations

import argparse
from typing import NoReturn


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


def flags_of_commands(parser: argparse.ArgumentParser) -> dict[str, dict[str, argparse.Action]]:
    """Per command, every flag and what it does."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse shows its flags nowhere else
    return {
        name: {flag: action for action in command._actions for flag in action.option_strings}  # noqa: SLF001 - the same
        for name, command in commands.choices.items()
    }
