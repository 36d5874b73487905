"""The fast loop: polls a few counters of every network device between the scrapes.

**Which thread may touch what.** One worker at a time runs `Sampler.tick`. `follow`, `samples`, `supervise`, `start` and `close`
belong to the event loop. All use of a `Target` except its `read` happens under the sampler's lock, which is not held
during a kernel call.

**Who closes what.** A target opens the files of its link on its first read. A removed network device is closed at once,
or by the thread that reads it as soon as that read returns. A read is claimed and a device dropped under one lock, so no
read begins after its device was closed. A storm under way there ends with the reason `device_gone`.

**What happens when a call returns late.** `supervise` gives up a read after a second, together with its thread: the
network device is stuck, the state of its detectors is unknown, and a new worker continues with the other devices. When the
read returns or fails, its thread marks the device as free, drops the result and ends; the device is read again when due.

**Faults of the exporter.** At one network device they are counted and logged like an error of the kernel. A fault of the
loop itself, or the failure to start a thread, is raised by `supervise` and ends the daemon: without the loop it must not
serve storm metrics.
"""

from roce_exporter.fastloop.sampler import Sampler
from roce_exporter.fastloop.target import MODES, OFF, Pace

__all__ = ["MODES", "OFF", "Pace", "Sampler"]
