"""Two network devices exchange their names (udev at hot plug, `ip link set name`): until the next inventory each port shows the other's counters."""
import asyncio, os, sys, tempfile, time
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.host.kernel.live import LiveKernel
root, hardware = tempfile.mkdtemp(), {"eth0": 0, "eth1": 1}   # name -> function whose hardware it is
def write(path, text): os.makedirs(os.path.dirname(path), exist_ok=True); open(path, "w").write(text + "\n")
def tree():
    for name, n in hardware.items():
        b = f"{root}/class/infiniband/mlx5_{n}"
        write(f"{b}/node_guid", f"0200:00ff:fe00:000{n + 1}"); write(f"{b}/ports/1/link_layer", "Ethernet"); write(f"{b}/ports/1/state", "4: ACTIVE")
        write(f"{b}/ports/1/counters/port_rcv_data", "5"); write(f"{b}/ports/1/gid_attrs/ndevs/0", name); write(f"{b}/ports/1/gids/0", f"fe80:0000:0000:0000:0000:0000:0000:000{n + 1}")
        write(f"{b}/ports/1/gid_attrs/types/0", "RoCE v2"); write(f"{root}/class/net/{name}/mtu", "9000"); write(f"{root}/class/net/{name}/ifindex", str(n + 2))
        write(f"{root}/class/net/{name}/address", f"02:00:00:00:00:0{n + 1}"); write(f"{root}/class/net/{name}/operstate", "up")
        folder = f"{b}/device/net"; os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder): os.rmdir(f"{folder}/{old}")
        os.mkdir(f"{folder}/{name}")
class Kernel(LiveKernel):
    def ethtool_statistics(self, netdev): return ("rx_prio3_pause", "rx_prio3_pause_duration"), (0, 111 if hardware[netdev] == 0 else 999)
def pauses(snapshot):
    return {r.device: r.values[r.names.index("rx_prio3_pause_duration")] for d in snapshot.devices for r in d.readings if "rx_prio3_pause_duration" in r.names}
async def main():
    tree(); collector = Collector(Kernel(root, netlink=False), Settings(), time.monotonic)
    await collector.collect(); await asyncio.sleep(0.3); before = pauses(await collector.collect())
    hardware.update({"eth0": 1, "eth1": 0}); tree()
    seen = []
    for _ in range(3): await asyncio.sleep(0.5); seen.append(pauses(await collector.collect()))
    print("pause of mlx5_0 and mlx5_1 before:", before, "| at the next three scrapes:", seen)
    wrong = sum(any(one.get(device, value) != value for device, value in before.items()) for one in seen)
    bad = wrong > 1 or not before
    print(f"FAULT: {wrong} of 3 scrapes after the swap show the other port's pause" if bad else "OK: a renamed network device is noticed by the next scrape")
    collector.close(); sys.stdout.flush(); os._exit(bad)
asyncio.run(main())
