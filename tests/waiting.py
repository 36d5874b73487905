"""Wait for other programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(ready: Callable[[], Any], seconds: float = 300.0) -> Any:
    """The result of `ready` as soon as it is true; connections that fail in the meantime count as not ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := ready():
                return found
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"timed out waiting: {ready()}")
