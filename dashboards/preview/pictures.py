"""Take pictures of the dashboards: `make pictures`, or `python dashboards/preview/pictures.py [FOLDER OF JSON]`.

Every dashboard, healthy and in an incident, dark and light, at 1920 and 1366 pixels, into `build/pictures` (with `ROCE_PICTURES_README=1` only those of the README); those of the README
into `dashboards/pictures`, with the sums of `manifest.json`. The history has a fixed end and fixed seeds (`tests/dashboards/dashboard_history.py`), and the
browser's clock is that end. npm packages and the recorded history stay in a cache outside the repository.
"""

# ruff: noqa: INP001, S603, S607, T201 - a script that runs node and python, and prints its findings
from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from boards.written import seen_sum

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("ROCE_PICTURES_CACHE", Path.home() / ".cache" / "roce-exporter-pictures"))
SECONDS = int(os.environ.get("ROCE_PICTURES_SECONDS", "2700"))
SOURCES = ("package.json", "build.mjs", "take.mjs", "index.html", "src")
SCREENS = {1920: 1080, 1366: 768}
MENU = 300
"""Width of Grafana's docked menu in pixels, which matters most on narrow screens."""
STORM = {"cluster": "pfc-storm", "job": "roce", "instance": "node21:10099"}
QUIET = {"cluster": "quiet", "job": "roce", "instance": "node01:10099"}
PORT = {"device": "mlx5_0", "port": "1"}
SETTING = {"setting": "roce_pfc_enabled"}
CHOSEN: dict[str, dict[str, dict[str, str]]] = {
    "roce-fleet": {"healthy": {"cluster": "quiet"}, "incident": {"cluster": "pfc-storm"}, "all": {}},
    "roce-host": {"healthy": QUIET, "incident": STORM},
    "roce-port": {"healthy": QUIET | PORT, "incident": STORM | PORT},
    "roce-link": {
        "healthy": {"cluster": "quiet", "switch": "leaf1", "switch_port": "Ethernet0"},
        "incident": {"cluster": "pfc-storm", "switch": "leaf1", "switch_port": "Ethernet0"},
        "cable": {"cluster": "lossy", "switch": "leaf1", "switch_port": "Ethernet0"},
    },
    "roce-jobs": {"healthy": QUIET, "incident": STORM},
    "roce-configuration": {"healthy": {"cluster": "quiet"} | SETTING, "incident": SETTING},
    "roce-exporter": {"healthy": QUIET, "incident": {"instance": "node71:10099"}},
}
"""The selected variables of each dashboard; All if not listed."""


def build() -> Path:
    """Build the bundle in the cache and return its folder; npm runs only if the list of packages changed."""
    tool = CACHE / "tool"
    tool.mkdir(parents=True, exist_ok=True)
    packages = (HERE / "package.json").read_text(encoding="utf-8")
    installed = tool / "installed.json"
    for name in SOURCES:
        copy = shutil.copytree if (HERE / name).is_dir() else shutil.copy
        shutil.rmtree(tool / name, ignore_errors=True)
        copy(HERE / name, tool / name)
    if not installed.exists() or installed.read_text(encoding="utf-8") != packages:
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps")
        subprocess.run(["npm", "install", *options], cwd=tool, check=True)
        installed.write_text(packages, encoding="utf-8")
    images = tool / "node_modules/@grafana/ui/dist/public/img"
    for place in ("img", "build/img"):
        shutil.copytree(images, tool / "www/public" / place, dirs_exist_ok=True)
    shutil.copy(tool / "index.html", tool / "www/index.html")
    subprocess.run(["node", "build.mjs"], cwd=tool, check=True)
    return tool


def past(boards: Path) -> subprocess.Popen[str]:
    """The history of the tests, served by a Prometheus; the first line of output has the address, the begin and the end."""
    files = sorted(boards.glob("roce-*.json"))
    told = (*files, *sorted((ROOT / "tests/dashboards").glob("*_history.py")))
    names = hashlib.sha256(b"".join(place.read_bytes() for place in told)).hexdigest()[:12]
    folder = Path(os.environ.get("ROCE_PICTURES_PAST", CACHE / f"past-{SECONDS}-{names}"))
    command = [sys.executable, "tests/dashboards/past.py", folder, str(SECONDS), *files]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def wanted(boards: Path, out: Path, begin: str, end: str) -> list[dict[str, Any]]:
    """All pictures to take: the first screen of each dashboard."""
    shared = {"from": _instant(begin), "to": _instant(end)}
    every = [
        shared
        | {"dashboard": str((boards / f"{board}.json").resolve()), "variables": variables, "theme": theme}
        | {"width": width, "height": height, "menu": MENU if width < min(SCREENS) + 1 else 0}
        | {"file": str((out / f"{board.removeprefix('roce-')}-{state}-{theme}-{width}.png").resolve())}
        for board, states in CHOSEN.items()
        for state, variables in states.items()
        for theme in ("dark", "light")
        for width, height in SCREENS.items()
    ]
    if not os.environ.get("ROCE_PICTURES_README"):
        return every
    return [one for one in every if Path(one["file"]).stem in README.values()]


def _instant(seconds: str) -> str:
    return datetime.fromtimestamp(float(seconds), UTC).isoformat()


README = {
    "fleet": "fleet-incident-dark-1920",
    "host": "host-incident-light-1920",
    "port": "port-incident-dark-1920",
    "link": "link-incident-dark-1920",
    "cable": "link-cable-dark-1920",
    "jobs": "jobs-incident-dark-1920",
    "configuration": "configuration-incident-light-1920",
    "exporter": "exporter-incident-dark-1920",
}
"""The picture for each name in the README."""


def manifest() -> dict[str, dict[str, str]]:
    """For each picture of the README its board and the SHA-256 of the board's file, of what is seen of it, and of the picture."""
    folder = HERE.parent
    boards = {name: folder / f"roce-{picture.partition('-')[0]}.json" for name, picture in README.items()}
    return {
        f"{name}.png": {
            "board": board.name,
            "sha256": hashlib.sha256(board.read_bytes()).hexdigest(),
            "seen": seen_sum(board.read_text(encoding="utf-8")),
            "picture": hashlib.sha256((folder / f"pictures/{name}.png").read_bytes()).hexdigest(),
        }
        for name, board in boards.items()
    }


def main() -> None:
    """Take all pictures, and fail if a query failed.

    Raises:
        SystemExit: a program is missing; the line names it.
    """
    missing = [
        name
        for name in (os.environ.get("CHROMIUM", "chromium"), "node", "npm", "prometheus")
        if not shutil.which(name)
    ]
    if missing:
        raise SystemExit(
            f"pictures: missing {', '.join(missing)}: apt-get install chromium nodejs npm prometheus fonts-inter"
        )
    boards = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent
    out = ROOT / "build" / ("pictures" if boards == HERE.parent else f"pictures-{boards.name}")
    out.mkdir(parents=True, exist_ok=True)
    tool = build()
    with past(boards) as server:
        assert server.stdout is not None  # noqa: S101 - both are pipes
        url, begin, end = server.stdout.readline().split()
        pictures = out / "pictures.json"
        pictures.write_text(json.dumps(wanted(boards, out, begin, end)), encoding="utf-8")
        try:
            subprocess.run(["node", "take.mjs", url, pictures.resolve()], cwd=tool, check=True)
        finally:
            server.communicate()
    if boards == HERE.parent:
        for name, source in README.items():
            shutil.copy(out / f"{source}.png", HERE.parent / "pictures" / f"{name}.png")
        text = json.dumps(manifest(), indent=1) + "\n"
        (HERE.parent / "pictures/manifest.json").write_text(text, encoding="utf-8")
    print(f"pictures are in {out}")


if __name__ == "__main__":
    main()
