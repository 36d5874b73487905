"""Two moments of a healthy simulated host as a recording, changed as an entry of the table says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fault_table import Fault

from roce_exporter.host.recorded.archive import load_tree
from roce_exporter.host.recorded.capture import capture
from roce_exporter.host.recorded.recorded import TIME, RecordedKernel, play_recording
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.view.host_view import HostClock

MOMENTS = (100.0, 115.0)
"""Seconds from the start of the simulation: the host has carried traffic before."""
EPOCH = 1_763_000_000.0
NETDEV, DEVICE = "eth0", "mlx5_0"
DARK = ("0.0000 mW / -inf dBm", "1.4201 mW / 1.52 dBm")
"""The recorded module has a lane without light, which this host has not."""


async def healthy_moments(folder: Path) -> tuple[Tree, ...]:
    """One captured recording per moment."""
    clock = HostClock()
    kernel = simulate("quiet", clock=clock, vendors=("mlx5",))
    trees = []
    for clock.now in MOMENTS:
        place = str(folder / f"{clock.now:.0f}")
        await capture(kernel, place, 1, 1.0, wall=lambda: EPOCH + clock.now)
        trees.append(load_tree(place))
    return tuple(trees)


def changed_host(fault: Fault, moments: tuple[Tree, ...], module: str) -> RecordedKernel:
    """The host with this fault; `module` is what `ethtool -m` prints of a healthy one."""
    files = [dict(moment.files) for moment in moments]
    links = [dict(moment.links) for moment in moments]
    if fault.module:
        text = module.replace(*DARK)
        for before, after in fault.module.items():
            assert before in text, before
            text = text.replace(before, after)
        for moment in files:
            moment[f"ethtool/{NETDEV}.module"] = text.encode()
    for name, amount in fault.raised.items():
        _raise(files, name, amount)
    for name in fault.hold:
        _hold(files, name)
    home = "sys/devices/" + links[0][f"sys/class/infiniband/{DEVICE}/device"].rpartition("/")[2]
    for path, content in fault.replace.items():
        contents = [content] * len(files) if isinstance(content, str) else content
        for moment, one in zip(files, contents, strict=True):
            moment[path.replace("sys/devices/PCI", home)] = one.encode()
    if fault.gone:
        files[-1] = {TIME: files[-1][TIME], **dict(_without(files[-1], fault.gone))}
        links[-1] = {path: one for path, one in links[-1].items() if fault.gone not in path}
    return play_recording(_whole(files, links), fault.id)


def _whole(files: list[dict[str, bytes]], links: list[dict[str, str]]) -> Tree:
    whole = Tree()
    for number, (contents, targets) in enumerate(zip(files, links, strict=True)):
        whole.files |= {f"{number}/{path}": content for path, content in contents.items()}
        whole.links |= {f"{number}/{path}": target for path, target in targets.items()}
    for path in (*whole.files, *whole.links):
        whole.add(path)
    return whole


def _without(files: dict[str, bytes], device: str) -> Iterator[tuple[str, bytes]]:
    for path, content in files.items():
        if path.startswith("rdma/"):
            rows = [row for row in json.loads(content) if row.get("ifname") != device]
            yield path, json.dumps(rows).encode()
        elif f"/{device}/" not in path:
            yield path, content


def _raise(files: list[dict[str, bytes]], name: str, amount: int) -> None:
    """Raise a counter in the second moment by this much more than it rose anyway; one that does not exist begins at 0."""
    kind, _, counter = name.partition("/")
    if kind == "hw":
        _raise_hardware(files, counter, amount)
    elif kind == "ethtool":
        place = f"ethtool/{NETDEV}.stats"
        for number, moment in enumerate(files):
            moment[place] = _line(moment[place].decode(), counter, number * amount).encode()
    elif kind == "dcb":
        place = f"dcb/{NETDEV}.pfc.json"
        document: dict[str, Any] = json.loads(files[-1][place])
        document["indications"][int(counter)] += amount
        files[-1][place] = json.dumps(document).encode()
    else:
        raise ValueError(name)


def _raise_hardware(files: list[dict[str, bytes]], counter: str, amount: int) -> None:
    place = f"sys/class/infiniband/{DEVICE}/ports/1/hw_counters/{counter}"
    for number, moment in enumerate(files):
        rows = json.loads(moment["rdma/statistic.json"])
        rows[0][counter] = rows[0].get(counter, 0) + number * amount
        moment["rdma/statistic.json"] = json.dumps(rows).encode()
        moment[place] = f"{rows[0][counter]}\n".encode()


def _line(text: str, counter: str, more: int) -> str:
    found = re.search(rf"^ *{counter}: ([0-9]+)$", text, re.MULTILINE)
    if not found:
        return f"{text}     {counter}: {more}\n"
    return f"{text[: found.start(1)]}{int(found[1]) + more}{text[found.end(1) :]}"


def _hold(files: list[dict[str, bytes]], name: str) -> None:
    """Give an ethtool counter the same value in all moments."""
    counter, place = name.partition("/")[2], f"ethtool/{NETDEV}.stats"
    first, last = (re.search(rf"^ *{counter}: ([0-9]+)$", one[place].decode(), re.MULTILINE) for one in files)
    assert first, name
    assert last, name
    files[-1][place] = _line(files[-1][place].decode(), counter, int(first[1]) - int(last[1])).encode()
