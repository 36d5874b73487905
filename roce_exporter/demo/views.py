"""Scenes go to a terminal as a screen that moves, and anywhere else as lines."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, TypeAlias

from rich.console import Console
from rich.live import Live

from roce_exporter.demo.lines import changes, closing, opening
from roce_exporter.demo.screen import screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.demo.scene import Scene

    Show: TypeAlias = Callable[[Scene], None]


def wants_screen(console: Console, output: TextIO) -> bool:
    """Whether the output is a terminal that can move its cursor and draw the bars."""
    # Not rich's own opinion: FORCE_COLOR, which CI systems set, makes it take anything for a terminal.
    drawable = (output.encoding or "").lower().startswith("utf")
    return output.isatty() and not console.is_dumb_terminal and drawable


@contextlib.contextmanager
def view(output: TextIO) -> Iterator[Show]:
    """What shows a scene on this output. The first scene is introduced, and the last one summed up at the end."""
    console = Console(file=output)
    history = _History(output)
    if not wants_screen(console, output):
        yield history.tell
    else:
        with Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:

            def show(scene: Scene) -> None:
                history.last = scene
                live.update(screen(scene, *console.size), refresh=True)

            yield show
    history.close()


class _History:
    """Tells what happened from one scene to the next."""

    def __init__(self, output: TextIO) -> None:
        self.last: Scene | None = None
        self._output = output

    def tell(self, scene: Scene) -> None:
        """Write what is new."""
        if self.last is None:
            self._write(opening(scene))
        before = self.last or replace(scene, storms=(), alerts=(), notes=())
        self.last = scene
        self._write(changes(before, scene))

    def close(self) -> None:
        """Write the last line."""
        if self.last is not None:
            self._write([closing(self.last)])

    def _write(self, lines: list[str]) -> None:
        self._output.writelines(f"{line}\n" for line in lines)
        self._output.flush()
