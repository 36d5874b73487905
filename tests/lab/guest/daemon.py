"""The exporter as in production: the installed wheel, unprivileged, read over HTTP."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
NOBODY = (
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--bounding-set=-all",
    "--no-new-privs",
)
LISTENS = re.compile(r"listens on (127\.0\.0\.1:\d+)")


def get(url: str, timeout: float = 60.0) -> str:
    """The body of a reply.

    Raises:
        OSError: no reply in time.
    """
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def parse(exposition: str) -> dict[str, float]:
    """Every sample by the text of its series in the exposition."""
    lines = (line.rpartition(" ") for line in exposition.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}


def wait_until(ask: Callable[[], Any], seconds: float = 60.0, pause: float = 0.1) -> Any:
    """The result of `ask` as soon as it is true; the limit only ends a test that has failed."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < end, "timed out"
        time.sleep(pause)
    return found


class Exporter:
    """One running exporter."""

    def __init__(self, *flags: str, through: tuple[str, ...] = NOBODY) -> None:
        self.log = Path(f"/run/exporter-{os.urandom(4).hex()}.log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *through,
                    COMMAND,
                    "--web.listen-address=127.0.0.1:0",
                    "--metrics.set=full",
                    "--collect.min-interval=0.001",
                    *flags,
                ],
                stderr=log,
                stdout=log,
            )
        self.address = wait_until(self._address)
        wait_until(self._is_ready)

    def _address(self) -> str:
        assert self.process.poll() is None, self.log.read_text()
        found = LISTENS.search(self.log.read_text())
        return found[1] if found else ""

    def _is_ready(self) -> bool:
        try:
            return bool(get(f"http://{self.address}/-/ready"))
        except OSError:
            return False

    def scrape(self, timeout: float = 60.0) -> dict[str, float]:
        """Every sample of one scrape."""
        return parse(get(f"http://{self.address}/metrics", timeout))

    def events(self) -> list[dict[str, Any]]:
        """The last storms, newest first."""
        found: list[dict[str, Any]] = json.loads(get(f"http://{self.address}/debug/events"))["storms"]
        return found

    def snapshot(self) -> dict[str, Any]:
        """The readings of every source, and the samples made from them."""
        return json.loads(get(f"http://{self.address}/debug/snapshot"))

    def stop(self) -> int:
        """Terminate it as systemd would; returns its exit status."""
        self.process.terminate()
        return self.process.wait(timeout=60)


def value(samples: dict[str, float], name: str, **labels: str) -> float | None:
    """The sample of that name whose labels include these; None without one, an error for several."""
    wanted = [f'{label}="{text}"' for label, text in labels.items()]
    found = [
        number
        for series, number in samples.items()
        if series.partition("{")[0] == name and all(pair in series for pair in wanted)
    ]
    assert len(found) <= 1, f"{len(found)} series of {name} {labels}"
    return found[0] if found else None


def about(samples: dict[str, float], device: str) -> dict[str, float]:
    """The samples of one RDMA device."""
    return {series: number for series, number in samples.items() if f'device="{device}"' in series}


def scrape_after_survey(exporter: Exporter, devices: Iterable[str]) -> dict[str, float]:
    """A scrape after a survey of owners of each device that began after this call: the second one that ends."""

    def ends() -> list[float]:
        samples, name = exporter.scrape(), "roce_owner_survey_timestamp_seconds"
        return [value(samples, name, device=device) or 0.0 for device in devices]

    for _ in range(2):
        before = ends()
        # Each scrape takes time from a survey on the guest's one processor.
        wait_until(lambda before=before: all(map(float.__gt__, ends(), before)), seconds=120, pause=0.5)
    return exporter.scrape()
