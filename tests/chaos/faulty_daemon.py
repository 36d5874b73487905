"""The daemon with a fault injected into one of its background tasks; run as a program, with the daemon's own flags.

The environment variable FAULT names the task: `first_collection` or `accept`, without which there is nothing to serve, or the work of a part.
"""

import os
import sys
from typing import NoReturn

from roce_exporter import exporter
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor
from roce_exporter.cli import entry
from roce_exporter.collect.collector import Collector
from roce_exporter.fastloop import Sampler
from roce_exporter.host_sources import HostSources
from roce_exporter.owners import Surveyor
from roce_exporter.web import Server


def fail(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("a fault put in by the test")


async def fail_later(*_: object, **__: object) -> NoReturn:
    fail()


ENDING = {"first_collection": (Collector, "_collect", fail_later), "accept": (Server, "_admit", fail)}
LASTING = {
    "exporter": (Collector, "is_outdated", fail_later),
    "sampler": (Sampler, "supervise", fail),
    "fast_loop": (Sampler, "_claim", fail),
    "surveyor": (Surveyor, "samples", fail),
    "host_sources": (HostSources, "run", fail_later),
    "health_watch": (HealthWatch, "note", fail),
    "auditor": (Auditor, "follow", fail),
}
"""By the source that is down then; of the fast loop's thread it is `sampler`."""

if __name__ == "__main__":
    owner, name, replacement = (ENDING | LASTING)[os.environ["FAULT"]]
    setattr(owner, name, replacement)
    exporter.FOLLOW_SECONDS = 0.1
    sys.exit(entry.main())
