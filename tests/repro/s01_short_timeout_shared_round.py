"""A client with a short scrape timeout starts the round that honest clients share: they get its failure, and so does everybody for 10 s."""
import asyncio, logging, os, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file

async def switch(reader, writer):  # answers every request after 0.6 s, as a switch under load does
    while await reader.readuntil(b"\r\n\r\n"):
        await asyncio.sleep(0.6)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

async def main():
    server = await asyncio.start_server(switch, "127.0.0.1", 0)
    file = tempfile.mkdtemp() + "/s.yml"
    open(file, "w").write(f"targets: {{sw: {{address: 'http://127.0.0.1:{server.sockets[0].getsockname()[1]}', module: nxos}}}}\n")
    alone = await Prober(read_switches_file(file)).probe("sw", "", 10.0)
    prober = Prober(read_switches_file(file))
    hurried = asyncio.create_task(prober.probe("sw", "", 0.5))
    await asyncio.sleep(0.05)
    beside = await prober.probe("sw", "", 10.0)
    later = await prober.probe("sw", "", 10.0)
    await hurried
    late = lambda a: sum("within" in f for f in a.readings.faults.values())
    print("sources late: alone", late(alone), "| beside a hurried client", late(beside), "| the next client", late(later))
    hurt = late(beside) > late(alone) or late(later) > late(alone)
    print("FAULT: one hurried client spoils the shared round and the kept answer" if hurt else "OK: every client gets its own time")
    sys.stdout.flush(); os._exit(hurt)

logging.disable()
asyncio.run(main())
