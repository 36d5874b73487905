"""The kernel log names another function or namespace: a pod's VF that is called eth0 there counts as an event of the host's eth0."""
import os, sys
from roce_exporter.model import decode_record
from roce_exporter.model import Device, Netdev, Port
from roce_exporter.normalise.log_lines import event_of, read_line
from roce_exporter.host_sources.kernel_log import LogDevices
LINKS = {"class/infiniband/mlx5_0/device": "0000:3b:00.0", "class/net/eth0/device": "0000:3b:00.0"}
class Kernel:
    def link(self, path):
        if path in LINKS: return LINKS[path]
        raise FileNotFoundError(2, "none", path)
    def text(self, path): raise FileNotFoundError(2, "none", path)
devices = LogDevices()
devices.update(Kernel(), [Device("mlx5_0", "mlx5_core", "mlx5", pci="0000:3b:00.0", ports=(Port(1, "Ethernet", (Netdev("eth0", "port"),)),))])
CASES = ((b"4,1,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n", True),
         (b"4,2,1,-;mlx5_core 0000:3b:00.2 eth0: Link down\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.2\n", False),   # a VF in a pod
         (b"4,3,1,-;NETDEV WATCHDOG: eth0 (veth): transmit queue 3 timed out\n", False))                            # a veth in a pod
wrong = 0
for raw, ours in CASES:
    line = read_line(decode_record(raw)); found = devices.concerned(line.names)
    print(event_of(line) or "no event", line.names, "->", found or "nobody"); wrong += bool(found) != ours
print(f"FAULT: {wrong} events of other devices are counted for the host's port" if wrong else "OK: an event belongs to the device of its bus address or driver")
sys.exit(bool(wrong))
