"""The fast loop: a few counters of every network device, looked at between the scrapes."""

from roce_exporter.sampler.pace import MODES, OFF, Pace
from roce_exporter.sampler.sampler import Sampler

__all__ = ["MODES", "OFF", "Pace", "Sampler"]
