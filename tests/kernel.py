"""Hosts that a test makes: recorded ones of the files that it gives, simulated ones that play its script, and faults in any call of any kernel."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from roce_exporter.host.kernel import Kernel
from roce_exporter.host.recorded.recorded import RecordedKernel, play_recording
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.conditions import Conditions, Setup, Span
from roce_exporter.host.simulated.kernel import SimulatedKernel
from roce_exporter.host.simulated.world import Course, Part, drivers_of, make_world

METHODS = (*(name for name in dir(Kernel) if not name.startswith("_")), "content")
"""The calls of a kernel; `content` is how a recorded one reads its open files."""

Files = Mapping[str, object]
"""Content by path in the form of a recording (`sys/...`, `rdma/link.json`): text, bytes, or rows that become JSON; `-> x` is a link."""


def tree_of(files: Files) -> Tree:
    """The tree of these files."""
    tree = Tree()
    for path, content in files.items():
        if isinstance(content, str) and content.startswith("-> "):
            tree.links[path] = content.removeprefix("-> ")
        elif isinstance(content, bytes):
            tree.files[path] = content
        else:
            tree.files[path] = (content if isinstance(content, str) else json.dumps(content)).encode()
        tree.add(path)
    return tree


def host(*moments: Files) -> RecordedKernel:
    """A host with these files; several moments are played in turn."""
    if len(moments) == 1:
        return play_recording(tree_of(moments[0]), "HOST")
    whole = {f"{number}/{path}": text for number, files in enumerate(moments) for path, text in files.items()}
    return play_recording(tree_of(whole), "HOST")


@dataclass(frozen=True)
class ScriptedPort:
    """One port of a simulated host with an explicit script."""

    vendor: str
    spans: Iterable[Span]
    """The script, endless or not; for a LAG that of the first member port."""
    lossless: tuple[int, ...] = (3,)
    """Priorities with PFC."""
    second: Iterable[Span] = ()
    """The script of the second member port of a LAG."""
    afterwards: Conditions = field(default_factory=Conditions)
    """The conditions after the end of a script."""
    phase: float = 0.0
    """Seconds from the start to the first refresh, for a driver that refreshes `ethtool -S` once a second; below 1."""
    faults: frozenset[str] = frozenset()
    """Simulated faults, of `simulated.conditions.FAULTS`."""


def simulate_script(
    ports: Sequence[ScriptedPort], *, clock: Callable[[], float], host: int = 1
) -> SimulatedKernel:
    """A host whose 1 to 16 ports play scripts, from the clock's first value on."""
    parts: list[Part] = []
    for port, driver in zip(ports, drivers_of([port.vendor for port in ports]), strict=True):
        setup = Setup(lossless=port.lossless, faults=port.faults)
        scripts, end = (port.spans, port.second)[: 1 + driver.lag], (Span(math.inf, port.afterwards),)
        courses = tuple(Course(setup, chain(spans, end)) for spans in scripts)
        parts.append((driver, courses, port.phase))
    return SimulatedKernel(make_world(parts, clock), host)


class Faults(dict[object, object]):
    """What other calls of a kernel do than before: `faults["ethtool_pause", "eth0"] = error`.

    A key is a method with its first argument (a path, a network device, the name of an RDMA device), such an argument
    alone, or a method alone. An exception is raised; a function, such as a `Gate`, is called with the arguments, and its
    result counts unless that is None; anything else is the result. `calls` has all calls so far, by method and argument.
    """

    def __init__(self, kernel: Any, **by_method: object) -> None:
        super().__init__(by_method)
        self.calls: list[tuple[str, object]] = []
        for name in METHODS:
            if hasattr(kernel, name):
                setattr(kernel, name, self._watched(name, getattr(kernel, name)))

    def _watched(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def watched(*arguments: object, **options: object) -> object:
            first = getattr(arguments[0], "name", arguments[0]) if arguments else None
            first = tuple(first) if isinstance(first, list) else first
            self.calls.append((name, first))
            found = next((self[key] for key in ((name, first), first, name) if key in self), None)
            if isinstance(found, Exception):
                raise found
            found = found(*arguments, **options) if callable(found) else found
            return call(*arguments, **options) if found is None else found

        return watched
