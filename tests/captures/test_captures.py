"""What real machines reported, read as a recording and as a sysfs tree, against values computed by hand.

`facts/` holds the paths, names and values as tables, and what follows from them in `expected.tsv`; README.md lists where each was published.
"""

import json
import re
from pathlib import Path

import pytest
from observed import exposition, samples

from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.recorded.recorded import load_recording

FACTS = Path(__file__).parent / "facts"
CAPTURES = sorted(place.stem for place in FACTS.glob("*.*.tsv"))
DRIVERS = {"mlx5": "mlx5_core", "bnxt": "bnxt_en"}
"""The network driver of a capture of `ethtool -S`, where it is not named as the driver."""

Files = dict[str, str]
"""Path below the recording, and content."""


def rows(name: str) -> list[list[str]]:
    """The lines of a table, without its header."""
    _, *lines = (FACTS / f"{name}.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines]


EXPECTED: dict[str, dict[str, str | None]] = {}
for _capture, _series, _value in rows("expected"):
    EXPECTED.setdefault(_capture, {})[_series] = None if _value == "-" else _value
"""Per capture series and their values; None for series that must not exist, because absent is not 0."""


def files_of(capture: str) -> Files:
    """The recorded host."""
    name, _, kind = capture.partition(".")
    match kind:
        case "sysfs":  # files that the kernel refused to read are missing
            return {f"sys/class/infiniband/{path}": f"{value}\n" for path, value in rows(capture)}
        case "statistic":  # what `rdma -j statistic` prints
            ports: dict[tuple[str, str], dict[str, object]] = {}
            for device, port, counter, value in rows(capture):
                named = ports.setdefault((device, port), {"ifindex": 0, "ifname": device, "port": int(port)})
                named[counter] = int(value)
            return {"rdma/statistic.json": json.dumps(list(ports.values()))}
        case _:  # one RDMA device over the captured network device
            link = [{"ifindex": 0, "ifname": "dev0", "port": 1, "netdev": "eth0"}]
            printed = "".join(
                f"     {name}: {value}\n" for names, value in rows(capture) for name in names.split(", ")
            )
            return {
                "rdma/link.json": json.dumps(link),
                "ethtool/eth0.stats": f"NIC statistics:\n{printed}",
                "ethtool/eth0.driver": f"driver: {DRIVERS.get(name, name)}\nversion: 6.12\n",
            }


async def shown(root: Path, files: Files) -> dict[str, str]:
    """The samples; those of a sysfs tree are the same whether it is a recording or this host's."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    recorded = samples(await exposition(load_recording(str(root))))
    if all(path.startswith("sys/") for path in files):
        assert samples(await exposition(LiveKernel(str(root / "sys")))) == recorded
    return recorded


@pytest.mark.parametrize("capture", CAPTURES)
async def test_series_have_the_values_computed_by_hand(tmp_path, capture) -> None:
    """Compared as text: 64-bit integers must not lose their last digits."""
    found = await shown(tmp_path, files_of(capture))
    assert {series: found.get(series) for series in EXPECTED[capture]} == EXPECTED[capture]
    # Omni-Path is no RoCE, and yet its ports count as ports do
    unmapped = {series for series in found if "unmapped_names" in series and found[series] != "0"}
    assert unmapped == set()


@pytest.mark.parametrize("capture", [one for one in CAPTURES if one.endswith(".sysfs")])
async def test_as_many_counters_as_files(capture, tmp_path) -> None:
    """Every counter file that holds a number becomes one series, and every series has such a file."""
    files = files_of(capture)
    numbers = [
        place
        for place, content in files.items()
        if re.search(r"/(hw_)?counters/(?!lifespan)", place) and content.strip().isdecimal()
    ]
    counters = [one for one in await shown(tmp_path, files) if re.match(r"roce_(?!exporter).*_total\{", one)]
    assert len(counters) == len(numbers)
