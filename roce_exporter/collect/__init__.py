"""One collection of the whole host: every source of every device, each on its own, in bounded time.

**The problem.** A read from a driver can hang in the kernel, where neither a signal nor a timeout reaches it; its device
can be unplugged meanwhile, and the read can come back minutes later. None of this may cost another device, a client, a
descriptor or a thread.

**Which thread may touch what.** The event loop owns everything here: `Collector`, `DeviceWork`, `Account`, `SlowChain`.
A worker thread runs a `Task`, and a task touches one reader and nothing else, but for one look into `DeviceWork._slots`,
a dictionary that is replaced and never changed. What both sides share has a lock of its own: `InFlight` (which calls are
under way) and `Batch` (which jobs are left, what came of the others). No lock is held while the kernel works.

**Who closes what.** A reader opens descriptors on its first read, and only its reads use them. When a device goes away, or
is described differently, `DeviceWork` drops its slots first and then asks `InFlight.when_idle` to close each reader: at
once if no read of it is under way, otherwise in the thread of that read as it returns. A read that has not begun finds no
slot any more and opens nothing.

**What happens when a call comes back late.** A pass ends at its deadline with what there is, and a read that is still under
way is "no answer" from then on, without being waited for or begun again: keys name device, incarnation and source, and
a key is in flight once. When it returns, its result is dropped, what waited for it is closed, its thread ends, and the
next pass reads the source as before. A device that was replugged has another incarnation and is read meanwhile.

**Two chains.** The quick chain of a device is read in every pass, and the pass waits for it. The slow chain (transceivers,
settings, the description of the device) is due once a minute, is read after a pass by a worker of its own, and its
outcomes are entered by the next pass: with the same keys, the same deadline and the same `roce_exporter_source_*` metrics.

**Callers.** Simultaneous callers share one pass. A caller with less time than the pass needs gets what is ready and costs
the others nothing: only the end of the pass enters states, errors and log lines.
"""

from roce_exporter.collect.collector import Collector, Settings

__all__ = ["Collector", "Settings"]
