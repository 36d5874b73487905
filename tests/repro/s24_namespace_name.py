"""A network namespace whose name is not UTF-8: its helper's report makes every scrape of the host fail."""
import asyncio, os, sys, tempfile, time
from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.kernel import Absent
from roce_exporter.normalise.series import Samples
from roce_exporter.host_sources.namespace_helper import NamespaceHelper, open_helper
from roce_exporter.host_sources.rdma_namespaces import RdmaNamespaces
class Kernel:
    def rdma_namespaces_shared(self): return False
    def rdma_devices(self): return ()
    def entries(self, path): raise Absent(2, "none", path)
async def main():
    d = tempfile.mkdtemp(); folder = d + "/netns"; os.mkdir(folder)
    for name in (b"pod-1", b"bad\xff", b'q"\n\\'): open(os.fsencode(folder) + b"/" + name, "w").close()
    helper = NamespaceHelper(folder, time.monotonic, lambda name, folder: {"mlx5_0": {"qp": 1}})
    await open_helper(helper, d + "/s")
    found = await RdmaNamespaces(Kernel(), d + "/s").read()
    try: text, error = Renderer().render([Samples(tuple(found), tuple(found.values()))], Format.TEXT).decode(), ""
    except UnicodeEncodeError as fault: text, error = "", repr(fault)[:40]
    print("series of namespaces:", text.count("\nroce_namespace_objects{"), "| rendering:", error or "works")
    bad = bool(error)
    print("FAULT: one odd name in /run/netns costs the whole exposition" if bad else "OK: odd names are escaped")
    sys.stdout.flush(); os._exit(bad)
asyncio.run(main())
