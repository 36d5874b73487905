"""One client that asks for /metrics again and again makes the exporter read NIC and driver as often: nothing sets a least time between two collections."""
import asyncio, os, sys, tempfile, time
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages
SECONDS, MOST = 3, 5  # collections per second
root = tempfile.mkdtemp()
def write(path, text): os.makedirs(os.path.dirname(path), exist_ok=True); open(path, "w").write(text + "\n")
for n in range(4):
    b = f"{root}/class/infiniband/mlx5_{n}"
    write(b + "/node_guid", f"0200:00ff:fe00:000{n}"); write(b + "/ports/1/link_layer", "Ethernet"); write(b + "/ports/1/state", "4: ACTIVE"); write(b + "/ports/1/counters/port_rcv_data", "5")
class Kernel(LiveKernel):
    passes = 0
    def begin(self): Kernel.passes += 1
async def main():
    exporter = Exporter(Collector(Kernel(root, netlink=False), Settings(), time.monotonic))
    application = Application((HostPages(exporter),)); server = Server(application, None, private=application.private); (address,) = await server.start(["127.0.0.1:0"])
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rsplit(":", 1)[1]))
    end, asked = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])); asked += 1
    rate = Kernel.passes / SECONDS
    print(f"one client, {asked / SECONDS:.0f} requests per second: {rate:.0f} collections per second (at most {MOST})")
    bad = rate > MOST
    print(f"FAULT: one client makes the host's drivers answer {rate:.0f} times per second" if bad else "OK: collections have a least distance")
    sys.stdout.flush(); os._exit(bad)
asyncio.run(main())
