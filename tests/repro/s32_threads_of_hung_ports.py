"""A firmware that hangs under 300 functions: the fast loop gives up one thread per function, passes the unit's TasksMax=256, and ends the daemon."""
import logging, os, sys, threading, time
from roce_exporter.model import Device, DeviceReadings, Netdev, Port
from roce_exporter.fastloop import sampler as module
from roce_exporter.fastloop.target import Pace
logging.disable()
PORTS, TASKS, MOST = 300, 256, 64
module.TIMEOUT = 0.01                       # instead of 1 s per function
never = threading.Event()
class Kernel:
    def ethtool_statistics(self, netdev): never.wait(); raise OSError(5, "hung")
    def open_files(self, paths, size=64):
        class Files:
            def read(self, skip=()): return [b"up", b"0"][:len(paths)] if len(paths) > 1 else [b"100000"]
            def close(self): pass
        return Files()
start = threading.Thread.start
def limited(self):  # what the kernel says at TasksMax
    if len(os.listdir("/proc/self/task")) >= TASKS: raise RuntimeError("can't start new thread")
    start(self)
threading.Thread.start = limited
device = lambda n: DeviceReadings(Device(f"mlx5_{n}", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet", (Netdev(f"eth{n}", "port"),)),)), ())
sampler = module.Sampler(Kernel(), time.monotonic, time.time, Pace(idle=0.01))
sampler.follow([device(n) for n in range(PORTS)]); sampler.start()
end, most, fault = time.monotonic() + 12, 0, ""
while time.monotonic() < end and not fault and most < PORTS:
    time.sleep(0.015); most = max(most, len(os.listdir("/proc/self/task")))
    try: sampler.supervise()
    except RuntimeError as error: fault = str(error)
print(f"{PORTS} functions that hang: {most} threads (at most {MOST}); supervise: {fault or 'goes on'}")
bad = bool(fault) or most > MOST
print("FAULT: a thread per hung function, until none can be started and the daemon ends" if bad else "OK: the number of stuck threads is bounded")
sys.stdout.flush(); os._exit(bad)
