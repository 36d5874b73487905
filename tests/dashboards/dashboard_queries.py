"""How Grafana changes a query before it sends it: variables with values, and intervals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERVAL = 15
VARIABLE = re.compile(r"\$(?:\{([a-zA-Z_]\w*)(?::\w+)?\}|([a-zA-Z_]\w*))")


def interpolate(expression: str, values: Mapping[str, str], span: int) -> str:
    """The query for a range of `span` seconds. A variable without a value is an error, as it would be a bug."""
    known = {
        "__interval": f"{INTERVAL}s",
        "__rate_interval": f"{4 * INTERVAL}s",
        "__range": f"{span}s",
        **values,
    }
    return VARIABLE.sub(lambda match: known[match[1] or match[2]], expression)


def escaped(value: str) -> str:
    """A selected value of a multi-value variable, inside a string of PromQL."""
    return re.sub(r"([\\.\[\](){}+*?^$|])", r"\\\\\1", value)
