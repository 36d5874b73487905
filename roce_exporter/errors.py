"""An error that the user can correct."""

from __future__ import annotations


class UserError(Exception):
    """Invalid input: one line that names it and the remedy. A command prints it and ends with exit code 2."""
