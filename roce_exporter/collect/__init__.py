"""One collection of the whole host: every source of every device, each on its own, in bounded time."""

from roce_exporter.collect.collector import Collector, Settings

__all__ = ["Collector", "Settings"]
