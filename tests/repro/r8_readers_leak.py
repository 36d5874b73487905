"""A device unplugged while one of its reads is stuck: its reader's descriptors are never closed."""
import asyncio, os, threading, time, tempfile, shutil
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.host.kernel.live import LiveKernel
root=tempfile.mkdtemp()
def make():
    c=f"{root}/class/infiniband/mlx5_0/ports/1/counters"; os.makedirs(c)
    for i in range(40): open(f"{c}/c{i}","w").write("1\n")
    open(f"{root}/class/infiniband/mlx5_0/node_guid","w").write("0200:00ff:fe00:0001\n")
    open(f"{root}/class/infiniband/mlx5_0/ports/1/link_layer","w").write("Ethernet\n")
gate=threading.Event(); stick=False
def pread(fd,n,o):
    p=os.readlink(f"/proc/self/fd/{fd}")
    if stick and p.endswith("/c39"): gate.wait()
    return os.pread(fd,n,o)
async def main():
    global stick
    n0=len(os.listdir("/proc/self/fd"))
    for i in range(5):
        make(); gate.clear(); stick=False
        if i==0: c=Collector(LiveKernel(root,pread,netlink=False),Settings(timeout=0.5),time.monotonic)
        await c.collect(1)
        stick=True; await c.collect(1)          # the read of c39 hangs
        shutil.rmtree(f"{root}/class/infiniband/mlx5_0"); await c.collect(1)   # unplugged meanwhile
        gate.set(); await asyncio.sleep(0.2); stick=False; await c.collect(1)
    c.close(); await asyncio.sleep(0.2)
    import gc; gc.collect()
    left=len(os.listdir("/proc/self/fd"))-n0
    print("descriptors left behind after 5 unplugs with a stuck read:", left)
    print("FAULT: descriptors are left" if left > 0 else "OK: nothing is left open")
asyncio.run(main())
