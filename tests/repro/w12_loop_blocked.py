"""A switch of 1,024 ports must not hold up the others: what one step of the event loop takes while the page of the large one is requested for the first time and again.

Measured in CPU time of the loop's thread per callback, and of the process between two turns of a task that only sleeps: other programs on the
machine, which made the wall time of another request fail, do not count. Needs redis-server."""
import asyncio, gc, sys, tempfile, time
from asyncio import events
from pathlib import Path

sys.path += ["tests", "bench"]
import sonic_switch
from sonic_redis import RedisServer
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import ProbeLimits, SwitchesFile, SwitchTarget
from roce_exporter.web.connection import Request
from roce_exporter.web.switch_pages import SwitchPages

STEP, TURN = 0.020, 0.100
steps, turns, run = [0.0], [0.0], events.Handle._run


def timed(handle):
    begin = time.thread_time()
    run(handle)
    steps.append(time.thread_time() - begin)


async def turn():
    last = time.process_time()
    while True:
        await asyncio.sleep(0.005)
        now = time.process_time()
        turns.append(now - last)
        last = now


async def main(socket):
    target = SwitchTarget("big", "sonic", "unix", socket, {"unix": 0}, timeout=120)
    pages = SwitchPages(Prober(SwitchesFile({"big": target}, (), ProbeLimits(cache_seconds=0))), OwnRegistry())
    headers = {"accept-encoding": "gzip", "x-prometheus-scrape-timeout-seconds": "120"}
    request, ticks = Request("GET", "/probe", headers, "target=big"), asyncio.create_task(turn())
    for name in ("first", "next", "third"):
        steps[:], turns[:] = [0.0], [0.0]
        page = await pages.pages[0].answer(request)
        print(f"{name} round, {len(page.body):,} bytes: longest step {max(steps) * 1e3:.0f} ms, most CPU between two turns {max(turns) * 1e3:.0f} ms")
        worst.append((max(steps), max(turns)))
    ticks.cancel()


worst = []
gc.set_threshold(*gc.get_threshold()[:2], 1000)  # as `serve` does with switches
with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
    server = RedisServer(Path(folder)).start()
    try:
        sonic_switch.load(server.socket, 1024)
        events.Handle._run = timed
        asyncio.run(main(server.socket))
    finally:
        server.stop()
bad = any(step > STEP or gap > TURN for step, gap in worst)
print("FAULT: one large switch holds the event loop" if bad else "OK: a large switch does not hold up others")
sys.exit(bad)
