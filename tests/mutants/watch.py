"""Which code is executed, in every thread."""

import _thread
import sys
import threading
from collections.abc import Callable
from typing import Any


class Watch:
    """`seen` collects the identities of the code objects that are called."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def begin(self) -> None:
        """Watch this thread. An error in `_note`, as of a deep recursion, ends that: begin again for each test."""
        sys.setprofile(self._note)

    def watch_threads(self) -> None:
        """Every thread that is started from now on is watched too."""
        start = _thread.start_new_thread

        def watched(function: Callable[..., object], *arguments: Any) -> int:
            waiting = [function]
            del function

            def run(*inside: Any, **names: Any) -> None:
                self.begin()
                waiting.pop()(
                    *inside, **names
                )  # the package notices when nothing keeps the function any more

            return start(run, *arguments)

        _thread.start_new_thread = watched
        threading.setprofile(self._note)

    def _note(self, frame: Any, event: str, _: object) -> None:
        if event == "call":
            self.seen.add(id(frame.f_code))
