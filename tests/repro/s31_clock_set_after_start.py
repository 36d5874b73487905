"""The clock is set after the start (NTP on a host without a battery clock): `since` in /health.json stays in the old time for ever, `time` does not."""
import asyncio, os, sys, tempfile, time
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.host.kernel.live import LiveKernel
root, now, apart = tempfile.mkdtemp(), 1000.0, 0.0   # monotonic seconds, and what the wall clock is ahead of them
def write(path, text): os.makedirs(os.path.dirname(path), exist_ok=True); open(path, "w").write(text + "\n")
b = f"{root}/class/infiniband/mlx5_0"
def state(text): write(b + "/ports/1/state", text)
write(b + "/node_guid", "0200:00ff:fe00:0001"); write(b + "/ports/1/link_layer", "Ethernet"); write(b + "/ports/1/counters/port_rcv_data", "5"); state("4: ACTIVE")
async def main():
    global now, apart
    exporter = Exporter(Collector(LiveKernel(root, netlink=False), Settings(refresh=0.0), time.monotonic))
    health = HealthWatch(exporter.observe, lambda: now, lambda: now + apart); exporter.parts.append(health)
    for _ in range(3): await exporter.observe(); await health.judge(); now += 60
    apart = 1_700_000_000.0                          # NTP has set the clock
    state("1: DOWN")
    for _ in range(3): await exporter.observe(); await health.judge(); now += 60
    document = health.document(); port = document["ports"][0]
    since = [port["since"], *(reason["since"] for reason in port["reasons"] if "since" in reason)]
    print("time", document["time"], "| health", port["health"], "| since", since)
    off = max(abs(document["time"] - one) for one in since)
    bad = off > 3600
    print(f"FAULT: a port that failed two minutes ago says that it did {off / 86400:.0f} days ago" if bad else "OK: times agree with the clock as it is now")
    sys.stdout.flush(); os._exit(bad)
asyncio.run(main())
