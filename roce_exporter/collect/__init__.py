"""One collection of the whole host: every source of every device, each on its own, in bounded time.

**The problem.** A read from a driver can hang in the kernel, where neither a signal nor a timeout reaches it; its device
can be unplugged meanwhile, and the read can come back minutes later. None of this may cost another device, a client, a
descriptor or a thread.

**Which thread may touch what.** The event loop owns everything here: `Collector`, `DeviceWork`, `Account`, `SlowChain`.
A worker thread runs a `Task`. A task touches one reader and nothing else, except that it reads `DeviceWork._slots`,
a dictionary that is replaced and never changed. Two objects are shared and have their own locks: `InFlight` (the calls
under way) and `Batch` (the remaining jobs and the results so far). No lock is held during a kernel call.

**Who closes what.** A reader opens descriptors on its first read, and only its reads use them. When a device goes away, or
is described differently, `DeviceWork` first drops its slots and then calls `InFlight.when_idle` to close each reader: at
once if no read of it is under way, otherwise in the thread of that read as it returns. A read that has not begun no longer
finds a slot and opens nothing.

**What happens when a call returns late.** A pass ends at its deadline with the results so far. A read still under way is
reported as "no answer" from then on, and is neither waited for nor started again: a key consists of device, incarnation
and source, and is in flight at most once. When the read returns, its result is dropped, its reader is closed if a close is
pending, its thread ends, and the next pass reads the source as before. A network device with three such reads, or one where the
host has many (`workers.has_room`), is not read further until one returns: each of them holds a thread. The RDMA device counts by itself:
its counters need no RTNL, which a query of a network device that hangs holds. A replugged device has another incarnation, so it is
read in the meantime.

**Two chains.** The quick chain of a device is read in every pass, and the pass waits for it. The slow chain (transceivers,
settings, MAC addresses, the description of the device) is due once a minute and is read after a pass by its own worker. The
next pass enters its outcomes, with the same keys, the same deadline and the same `roce_exporter_source_*` metrics.

**Callers.** Simultaneous callers share one pass. A caller with less time than the pass needs gets what is ready and does
not affect the others: states, errors and log lines are entered only at the end of the pass.
"""
