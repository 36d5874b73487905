"""The daemon with a fault injected into one of its background tasks; run as a program, with the daemon's own flags.

The environment variable FAULT names the task: `first_collection`, `supervision`, `fast_loop`, `accept` or `follow`.
"""

import os
import sys
from typing import NoReturn

from roce_exporter import exporter
from roce_exporter.cli import entry
from roce_exporter.collect.collector import Collector
from roce_exporter.fastloop import Sampler
from roce_exporter.web import Server


def fail(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("a fault put in by the test")


async def fail_later(*_: object, **__: object) -> NoReturn:
    fail()


PLACES = {
    "first_collection": (Collector, "_collect", fail_later),
    "supervision": (Sampler, "supervise", fail),
    "fast_loop": (Sampler, "_claim", fail),
    "accept": (Server, "_admit", fail),
    "follow": (Collector, "is_outdated", fail_later),
}

if __name__ == "__main__":
    owner, name, replacement = PLACES[os.environ["FAULT"]]
    setattr(owner, name, replacement)
    exporter.FOLLOW_SECONDS = 0.1
    sys.exit(entry.main())
