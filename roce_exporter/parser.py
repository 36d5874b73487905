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
