"""/debug/probe hides the password itself and leaves forms from which it is read back: a switch that echoes the request's head shows it."""
import asyncio, base64, logging, os, sys, tempfile
from roce_exporter.web.switch_pages import probe_document
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
PASSWORD = 'pa"ss w/rd&1'

async def switch(reader, writer):  # an error page that repeats the request, as many web servers do
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n"); body = b""
            for line in head.decode().split("\r\n"):
                if line.lower().startswith("content-length:"): body = await reader.readexactly(int(line.split(":")[1]))
            import json
            page = json.dumps({"you sent": (head + body).decode()}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: APIC-cookie=a\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
    except (asyncio.IncompleteReadError, OSError): pass

async def main():
    server = await asyncio.start_server(switch, "127.0.0.1", 0); d = tempfile.mkdtemp(); open(d + "/pw", "w").write(PASSWORD + "\n")
    open(d + "/s.yml", "w").write(f"targets: {{sw: {{address: 'http://127.0.0.1:{server.sockets[0].getsockname()[1]}', module: nxos, basic_auth: {{username: monitor, password_file: pw}}}}}}\n")
    answer = await Prober(read_switches_file(d + "/s.yml")).probe("sw", "", 5.0, record=True)
    page = str(probe_document(answer))
    import json, urllib.parse
    token = base64.b64encode(f"monitor:{PASSWORD}".encode()).decode()
    forms = {"plain": PASSWORD, "base64": token, "JSON": json.dumps(PASSWORD)[1:-1], "URL": urllib.parse.quote(PASSWORD), "JSON in JSON": json.dumps(json.dumps(PASSWORD)[1:-1])[1:-1]}
    found = [name for name, text in forms.items() if text in page]
    print("forms of the password on the page:", found)
    print(f"FAULT: the page shows the password as {', '.join(found)}" if found else "OK: no form of the password is shown")
    sys.stdout.flush(); os._exit(bool(found))

logging.disable()
asyncio.run(main())
