"""The error of an input that cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """A capture that cannot be read, in one line that names it and the remedy."""
