"""LinkFiles of a network device that went away while a look at it was under way are opened afterwards and never closed; the same for a device's readers."""
import os, threading, time, tempfile
from roce_exporter.fastloop.sampler import Sampler
from roce_exporter.fastloop.target import Pace
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.model import Device, Port, Netdev, DeviceReadings
root=tempfile.mkdtemp()
for i in range(50):
    b=f"{root}/class/net/eth{i}"; os.makedirs(b)
    for n,t in (("operstate","up"),("carrier_down_count","0"),("speed","100000")): open(f"{b}/{n}","w").write(t+"\n")
class K(LiveKernel):
    gate=None
    def ethtool_statistics(self, netdev):
        K.entered.set(); K.gate.wait()
        return ("rx_prio3_pause","rx_prio3_pause_duration"), (0,0)
k=K(root)
d=lambda n,e,i: DeviceReadings(Device(n,"mlx5_core","mlx5",incarnation=i,ports=(Port(1,"Ethernet",(Netdev(e,"port"),)),)),())
n0=len(os.listdir("/proc/self/fd"))
for i in range(50):
    K.gate=threading.Event(); K.entered=threading.Event()
    s=Sampler(k, time.monotonic, time.time, Pace())
    s.follow([d("mlx5_0",f"eth{i}",i)]); th=threading.Thread(target=s.tick); th.start(); K.entered.wait(2)
    s.follow([])                 # hot unplug while the driver answers
    K.gate.set(); th.join(5)
    del s
import gc; gc.collect()
left=len(os.listdir("/proc/self/fd"))-n0
print("descriptors left behind after 50 unplugs:", left)
print("FAULT: descriptors are left" if left > 0 else "OK: nothing is left open")
