"""16 ports whose reads all hang (a firmware that does not answer): the collector leaves a thread per port and source, 256 after three scrapes, as many as the unit's TasksMax."""
import asyncio, logging, os, sys, tempfile, threading, time
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.host.kernel.live import LiveKernel
logging.disable()
PORTS, MOST = 16, 96
root, never, hang = tempfile.mkdtemp(), threading.Event(), False
def write(path, text): os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True); open(f"{root}/{path}", "w").write(text + "\n")
for n in range(PORTS):
    b = f"class/infiniband/mlx5_{n}"
    write(b + "/node_guid", f"0200:00ff:fe00:{n:04x}"); write(b + "/ports/1/link_layer", "Ethernet"); write(b + "/ports/1/state", "4: ACTIVE")
    write(b + "/ports/1/counters/port_rcv_data", "5"); write(b + "/ports/1/hw_counters/out_of_sequence", "7")
    write(b + "/ports/1/gid_attrs/ndevs/0", f"eth{n}"); write(b + "/ports/1/gids/0", f"fe80:0000:0000:0000:0000:0000:0000:{n:04x}"); write(b + "/ports/1/gid_attrs/types/0", "RoCE v2")
    write(f"{b}/device/net/eth{n}/x", ""); write(f"class/net/eth{n}/mtu", "9000"); write(f"class/net/eth{n}/carrier_changes", "1")
def wait():
    if hang: never.wait()
def pread(descriptor, size, offset): wait(); return os.pread(descriptor, size, offset)
class Kernel(LiveKernel):
    def ethtool_statistics(self, netdev): wait(); return ("rx_prio3_pause",), (1,)
for name in dir(LiveKernel):
    if name.startswith(("ethtool_", "dcb", "transceiver", "mac_address", "virtual_functions", "devlink")) and name != "ethtool_statistics":
        def hanging(self, *args, _real=getattr(LiveKernel, name)): wait(); return _real(self, *args)
        setattr(Kernel, name, hanging)
async def main():
    global hang
    collector = Collector(Kernel(root, pread, netlink=False), Settings(timeout=0.6, overtake=0.05, refresh=0.1), time.monotonic)
    for _ in range(3): await collector.collect(); await asyncio.sleep(0.2)
    before, hang = len(os.listdir("/proc/self/task")), True
    for _ in range(6): await collector.collect(); await asyncio.sleep(0.1)
    print(f"{PORTS} ports: {before} threads before, {len(os.listdir('/proc/self/task'))} after six scrapes with reads that hang (at most {MOST})")
    bad = len(os.listdir("/proc/self/task")) > MOST
    print("FAULT: a thread per port and source; the unit allows 256 tasks in all" if bad else "OK: a device that hangs holds few threads")
    sys.stdout.flush(); os._exit(bad)
asyncio.run(main())
