"""The fast loop: a few counters of every network device, looked at between the scrapes.

**Which thread may touch what.** One worker at a time runs `Sampler.tick`. `follow`, `samples`, `supervise`, `start` and `close`
belong to the event loop. Everything about a `Target` but its `read` happens under the sampler's lock, which is not
held while the kernel works.

**Who closes what.** A target opens the files of its link on its first read. A network device that goes away is closed at
once, or by the thread that reads it as soon as that read is back; a read is claimed and a device dropped under one lock,
so no read begins after its device was closed. A storm under way there ends, with `device_gone` as its reason.

**What happens when a call comes back late.** `supervise` gives a read up after a second, together with its thread: the
network device is stuck, its detectors know nothing, and a new worker goes on with the others. When the read returns, in
whatever way, its thread marks the device as free, drops what it read and ends; the device is read again when it is due.

**Faults of the exporter.** At one network device they are counted and logged as an error of the kernel is. A fault of the
loop itself, or no thread to be had to go on with, is raised by `supervise`, and ends the daemon: it must not serve as if
it watched.
"""

from roce_exporter.sampler.pace import MODES, OFF, Pace
from roce_exporter.sampler.sampler import Sampler

__all__ = ["MODES", "OFF", "Pace", "Sampler"]
