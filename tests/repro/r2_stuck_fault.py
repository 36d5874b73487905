"""Sampler: a look that hangs, is given up and then raises something that is no OSError stays 'stuck' for ever."""
import threading, time
from roce_exporter.fastloop.sampler import Sampler
from roce_exporter.fastloop.target import Pace
from roce_exporter.model import Device, Port, Netdev, DeviceReadings
gate = threading.Event()
class K:
    calls = 0
    def ethtool_statistics(self, netdev):
        K.calls += 1
        if netdev == "eth0" and not gate.is_set():
            gate.wait(); raise ValueError("a fault of ours")
        return ("rx_prio3_pause","rx_prio3_pause_duration","rx_prio3_pause_transition","tx_prio3_packets"), (0,0,0,0)
    def open_files(self, paths, size=64):
        class F:
            def read(self, skip=()): return [b"up", b"0"][:len(paths)] if len(paths)>1 else [b"100000"]
            def close(self): pass
        return F()
import logging; logging.basicConfig(level="ERROR")
d=lambda n,e: DeviceReadings(Device(n,"mlx5_core","mlx5",ports=(Port(1,"Ethernet",(Netdev(e,"port"),)),)),())
s=Sampler(K(), time.monotonic, time.time, Pace(idle=0.1))
s.follow([d("mlx5_0","eth0")]); s.start()
time.sleep(1.5); s.supervise(); gate.set(); time.sleep(2)
t=s._targets[("mlx5_0","eth0")]
n=K.calls; time.sleep(1.5)
print("stuck after the read came back:", t.stuck, "| looks in the 1.5 s after it:", K.calls-n, "| errors", t.errors)
print("FAULT: not polled any more" if t.stuck or K.calls == n else "OK: polled again")
