"""What the interpreter keeps of a switch must end with the series: a switch whose names change every round must not fill the memory.

A switch (broken, or hostile) that names other ports each round: 14 rounds of 60 new ports. Measured: RSS after rounds, and the
number of series that the interpreter of the target remembers, in this process.
"""
import asyncio
import gc
import pathlib
import re
import tempfile

import w_lib as w

from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file


def rss():
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024


async def main(server):
    path = pathlib.Path(tempfile.mkdtemp(prefix="w"), "switches.yml")
    path.write_text(f"targets:\n  leaf1: {{module: sonic, address: \"redis://127.0.0.1:{server.port}\", priorities: all}}\nlimits: {{cache: 50ms}}\n")
    prober, client, sizes = Prober(read_switches_file(str(path))), server.client(2), []
    base = {key: client.hgetall(key) for key in (b"COUNTERS_PORT_NAME_MAP", b"COUNTERS_QUEUE_NAME_MAP", b"COUNTERS_PG_NAME_MAP")}
    for turn in range(14):
        for key, row in base.items():
            client.delete(key)
            client.hset(key, mapping={name.replace(b"Ethernet", b"Ethernet%d0" % (turn + 1)): oid for name, oid in row.items()})
        answer = await prober.probe("leaf1", "", 10)
        count = sum(len(part.series) for part in answer.samples)
        gc.collect()
        sizes.append(rss())
        await asyncio.sleep(0.06)
    await prober.close()
    return count, sizes

with w.Redis(w.made_switch(60)) as server:
    count, sizes = asyncio.run(main(server))
growth = (sizes[-1] - sizes[4]) / (len(sizes) - 5)
w.say(f"{count} series a round, all new; RSS MiB after rounds 1, 5, 10, 14: {sizes[0]:.0f}, {sizes[4]:.0f}, {sizes[9]:.0f}, {sizes[-1]:.0f}")
w.end(growth > 0.5, f"memory grows by {growth:.1f} MiB a round: what a switch once named is kept until the process ends" if growth > 0.5 else "memory does not grow with names that come and go")
