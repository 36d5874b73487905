"""Who owns the RDMA objects of a device: contexts, queue pairs, memory regions, connections, and what they count.

**The problem.** The kernel lists the objects of a device with their process IDs. Listing queue pairs makes some drivers
query their firmware for each one, a process can end at any time and its ID be reused, and a read can hang. None of this
may delay a scrape or load a driver.

**Rounds.** The `Surveyor` lists every device once per `SurveyLimits.interval`, between scrapes. A scrape shows the result
of the last round that ended and waits for nothing. Kinds that the kernel lists from memory are read in one go; queue
pairs and connections part by part, and after a part that took t seconds the round pauses until t is at most
`SurveyLimits.load` of the time.

**Threads.** The event loop owns everything here except a `OwnerScan` and its `ProcessOwners`, which only the step under way may touch.
The steps of a round run in one worker thread through `collect/workers.py`, at most one per device and incarnation. A round
with a step that does not return ends without a result, and its list is closed in the thread of that step when it returns.
Processes that one device has read are known to the next ones for a few seconds: `identify.py`.

**Failures.** A kind that the kernel does not list has no series. If one kind fails, its series are missing and the
others are shown; if the device hangs or was removed, all are missing. Either way `roce_exporter_source_up` is 0. Numbers
of an earlier round are never shown as if they were current. Totals of counters continue after a failure.

**From process to owner.** `identify.py` makes an owner of a cgroup's path, `owner_scan.py` lists and adds up what processes hold,
`owner_totals.py` adds up what counter sets count and bounds the number of series.
"""

from roce_exporter.owners.surveyor import OWNERS, SurveyLimits, Surveyor

__all__ = ["OWNERS", "SurveyLimits", "Surveyor"]
