"""The collector performancecounter of windows_exporter, built for Linux with the values of a file in place of Windows."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from deploy_tools import cache_folder, cache_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = "github.com/prometheus-community/windows_exporter"
VERSION = "v0.31.8"

OURS = Path(__file__).with_name("windows_exporter")
PLACES = {
    "main.go": "cmd/roce_check/main.go",
    "pdh.go": "internal/pdh/pdh.go",
    "mi.go": "internal/mi/mi.go",
    "collectors.go": "pkg/collector/collectors.go",
}
THEIRS = (
    "go.mod",
    "go.sum",
    "internal/collector/performancecounter/performancecounter.go",
    "internal/collector/performancecounter/types.go",
    "internal/config/config.go",
    "internal/config/flatten.go",
    "internal/types/const.go",
)
ONLY_WINDOWS = "//go:build windows\n"

Values = dict[str, dict[str, dict[str, float | None]]]
"""Object, counter, instance, value; None: there is an instance, and it has no valid value."""


class Scrape(NamedTuple):
    """What one run printed."""

    status: int
    metrics: str
    errors: str


def collector_program() -> Path:
    """The program, built once for this version and our own files; without Go the test is skipped: Debian's is too old."""
    if not (go := shutil.which("go")):
        pytest.skip("Go is not installed; it builds windows_exporter's collector")
    ours = b"".join(one.read_bytes() for one in sorted(OURS.glob("*.go")))
    folder = cache_folder() / f"windows_exporter-{VERSION}-{hashlib.sha256(ours).hexdigest()[:12]}"
    program = folder / "roce_check"
    with cache_lock("windows_exporter"):
        if not program.exists():
            _build(go, program)
    return program


def _build(go: str, program: Path) -> None:
    module = _module(go)
    folder = program.parent / "module"
    for name in THEIRS:
        _put(folder / name, (module / name).read_text().replace(ONLY_WINDOWS, ""))
    for name, place in PLACES.items():
        _put(folder / place, (OURS / name).read_text())
    build = [go, "build", "-mod=mod", "-o", program, "./cmd/roce_check"]
    done = subprocess.run(build, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def _module(go: str) -> Path:
    """The folder of the module; without the module proxy the test is skipped."""
    command = [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd="/", text=True, check=False)
    answer = json.loads(done.stdout or "{}")
    if done.returncode or "Dir" not in answer:
        pytest.skip(f"{MODULE}@{VERSION} cannot be downloaded: {answer.get('Error', 'no reply')}")
    return Path(answer["Dir"])


def _put(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def scrape(program: Path, configuration: Path, values: Mapping[str, object], folder: Path) -> Scrape:
    """One collection with this configuration and these values."""
    file = folder / "pdh_values.json"
    file.write_text(json.dumps(values))
    done = subprocess.run(
        [program, f"--config.file={configuration}"],
        env={**os.environ, "PDH_VALUES": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Scrape(done.returncode, done.stdout, done.stderr)
