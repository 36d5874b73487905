"""What is kept of discovered targets is bounded by their number (4,096) and not by their size: one host with some addresses fills the memory.

A fix that bounds the sum of kept series is compared here with its constant instead of MOST_TARGETS."""
import asyncio, json, logging, os, resource, ssl, subprocess, sys, tempfile
from roce_exporter.switches.probe import MOST_SERIES, Prober
from roce_exporter.switches.targets import read_switches_file
ADDRESSES, PORTS, MOST = 4, 384, 4 << 30
one = lambda p, q: {"ipqosQueuingStats": {"attributes": {"dn": f"sys/ipqos/queuing/policy/out/sys/intf-[eth1/{p}]/queuingStats-c-out-8q-q{q}", "cmapName": f"c-out-8q-q{q}",
    "txPackets": "1", "txBytes": "2", "dropPackets": "0", "randDropPackets": "0", "randEcnMarkedPackets": "0", "currQueueDepth": "0"}}}
def reply(document, more=b""):
    body = json.dumps(document).encode(); return b"HTTP/1.1 200 OK\r\n" + more + b"Content-Length: %d\r\n\r\n" % len(body) + body
DME = reply({"imdata": [one(p, q) for p in range(1, PORTS + 1) for q in range(8)]})
NONE, LOGIN = reply({"ins_api": {"outputs": {"output": {"code": "400", "msg": "no"}}}}), reply({}, b"Set-Cookie: APIC-cookie=abc\r\n")
async def switch(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.decode().split("\r\n"):
                if line.lower().startswith("content-length:"): await reader.readexactly(int(line.split(":")[1]))
            writer.write(LOGIN if b"aaaLogin" in head else DME if b"/api/node" in head else NONE); await writer.drain()
    except (asyncio.IncompleteReadError, OSError): pass
async def main():
    d = tempfile.mkdtemp()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", d + "/key", "-out", d + "/crt"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); tls.load_cert_chain(d + "/crt", d + "/key")
    first = await asyncio.start_server(switch, "127.0.0.1", 0, ssl=tls); port = first.sockets[0].getsockname()[1]
    for n in range(2, ADDRESSES + 1): await asyncio.start_server(switch, f"127.0.0.{n}", port, ssl=tls)
    open(d + "/s.yml", "w").write(f"discovery: {{allow: [127.0.0.0/8], module: nxos, priorities: all, timeout: 15s, ports: {{https: {port}}}, tls: {{insecure_skip_verify: 'true'}}}}\n")
    prober, sizes, kept = Prober(read_switches_file(d + "/s.yml")), [], []
    from roce_exporter.exposition import Format
    for n in range(1, ADDRESSES + 1):
        answer = await prober.probe(f"127.0.0.{n}", "", 15.0); answer.renderer.render(answer.samples, Format.TEXT)
        sizes.append(int(open("/proc/self/statm").read().split()[1]) * 4096)
    each = (sizes[-1] - sizes[1]) / (ADDRESSES - 2)
    print(f"{ADDRESSES} addresses with {len(answer.samples[0].series)} series each: {each / 2**20:.0f} MiB kept per address; {MOST_SERIES} series may be kept")
    targets = MOST_SERIES // len(answer.samples[0].series) + 1
    bad = each * targets > MOST
    print(f"FAULT: {each * targets / 2**30:.1f} GiB may be kept for addresses that clients name" if bad else "OK: what is kept is bounded by its size")
    sys.stdout.flush(); os._exit(bad)
logging.disable()
asyncio.run(main())
