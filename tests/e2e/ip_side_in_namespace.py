"""Run in a network namespace with the rails r1 and r2 by test_ip_side_kernel.py: prints one JSON document."""

import dataclasses
import json
import os
import random
import subprocess
import sys

from roce_exporter.host.kernel.ip_netlink import read_ip_facts, read_ip_paths
from roce_exporter.host.recorded.recorded_ip import read_recorded_ip
from roce_exporter.host.recorded.tree import Tree

FILES = {
    "ip/address.json": ("address", "show"),
    "ip/neigh.json": ("-s", "neigh", "show"),
    "ip/route.json": ("-4", "route", "show", "table", "all"),
    "ip/route6.json": ("-6", "route", "show", "table", "all"),
    "ip/rule.json": ("-4", "rule", "show"),
    "ip/rule6.json": ("-6", "rule", "show"),
}

SETTLED = """
neigh add 10.0.1.9 lladdr 02:00:00:00:00:09 dev r1 nud reachable
neigh add 10.0.1.10 dev r1 nud failed
route add default via 10.0.1.254 dev r1 table 101
route add 10.9.0.0/16 via 10.0.1.254 dev r1 mtu 1400 advmss 1000 metric 7
route add table 200 10.4.0.0/16 nexthop via 10.0.1.9 dev r1 nexthop via 10.0.2.9 dev r2
route add blackhole 10.8.0.0/16
rule add from 10.0.1.1 lookup 101 pref 101
rule add not from 10.0.1.0/24 to 10.7.0.0/16 iif lo oif r2 fwmark 0x1/0xff lookup 102 suppress_prefixlength 8 pref 99
rule add from all pref 98 unreachable fwmark 3
rule add pref 97 goto 101
"""


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def batch(text, *flags):
    done = subprocess.run(
        ["ip", *flags, "-force", "-batch", "-"], input=text, text=True, capture_output=True, check=False
    )
    return done.stderr


def recorded():
    tree = Tree()
    for path, words in FILES.items():
        tree.files[path] = ip("-j", *words)[0].encode()
        tree.add(path)
    return read_recorded_ip(tree, "of this namespace")


def plain(facts):
    shown = dataclasses.asdict(facts)
    shown["neighbours"] = [
        {**one, "seconds": None} for one in sorted(shown["neighbours"], key=lambda one: one["address"])
    ]
    shown["routes"] = sorted(shown["routes"], key=str)
    return json.loads(json.dumps(shown))


def facts():
    sys.stderr.write(batch(SETTLED))
    held = recorded()
    rails = ("r1", "r2")
    return {
        "netlink": {rail: plain(read_ip_facts(rail)) for rail in rails},
        "printed": {rail: plain(held.facts(rail)) for rail in rails},
    }


def random_setup(generator):
    """Rules and routes of the kinds that hosts have, at random; some contradict each other."""
    for version, net, rails in ((4, "10.{}.0.0", "10.0.{}"), (6, "2001:db8:a{}::", "2001:db8:{}:")):
        lines = []
        for _ in range(14):
            rail, table = generator.choice((1, 2)), generator.choice(("main", "101", "102", "103"))
            length = generator.choice((9, 12, 16) if version == 4 else (40, 44, 48))
            prefix = generator.choice(("default", f"{net.format(generator.randrange(4))}/{length}"))
            gateway = rails.format(rail) + (".254" if version == 4 else ":fe")
            kind = generator.choice(("via",) * 6 + ("throw", "unreachable", "blackhole", "prohibit"))
            metric = generator.randrange(1, 5)
            where = f"via {gateway} dev r{rail}" if kind == "via" else ""
            if kind == "via" and generator.random() < 0.2:
                where += " mtu 1400"
            lines.append(
                f"route add {'' if kind == 'via' else kind} {prefix} {where} metric {metric} table {table}"
            )
        for _ in range(8):
            rail = generator.choice((1, 2))
            source = rails.format(rail) + (".1" if version == 4 else ":1")
            parts = [f"pref {generator.randrange(10, 30_000)}"]
            parts += [f"from {source}"] if generator.random() < 0.6 else []
            parts += (
                [f"to {net.format(generator.randrange(4))}/{16 if version == 4 else 48}"]
                if generator.random() < 0.4
                else []
            )
            parts += (
                [generator.choice(("iif lo", "iif r1", "oif r2", "fwmark 0x1", "fwmark 0x0/0xff"))]
                if generator.random() < 0.3
                else []
            )
            inverted = "not" if len(parts) > 1 and generator.random() < 0.15 else ""
            table = generator.choice(("101", "102", "103", "main"))
            action = generator.choice(
                (f"lookup {table}",) * 8 + ("unreachable", "prohibit", "nop", "goto 31000")
            )
            limit = (
                f"suppress_prefixlength {generator.choice((0, 9, 40))}"
                if action.startswith("lookup") and generator.random() < 0.2
                else ""
            )
            lines.append(f"rule add {inverted} {' '.join(parts)} {action} {limit}")
        lines.append(
            "rule add pref 31000 nop" if generator.random() < 0.5 else "rule add pref 31000 lookup 103"
        )
        batch("\n".join(lines), f"-{version}")


def seen(source, destination):
    """What `ip route get` prints: network device, gateway, MTU, and whether it is an address of this host."""
    text, error = ip("-j", "route", "get", destination, "from", source)
    if error or not text.strip():
        return ("failed",)
    (row,) = json.loads(text)
    if row.get("type") in ("unreachable", "prohibit", "blackhole"):
        return ("failed",)
    mtu = next((one["mtu"] for one in row.get("metrics", ()) if "mtu" in one), 0)
    return (row["dev"], row.get("gateway", ""), mtu, row.get("type") == "local")


def shown(path):
    return ("failed",) if path.failure else (path.netdev, path.gateway, path.mtu, path.local)


def pairs(generator):
    found = []
    for _ in range(60):
        source = generator.choice(("10.0.1.1", "10.0.2.1"))
        found.append(
            (source, f"10.{generator.randrange(5)}.{generator.randrange(256)}.{generator.randrange(1, 255)}")
        )
        source = generator.choice(("2001:db8:1::1", "2001:db8:2::1"))
        found.append(
            (
                source,
                f"2001:db8:a{generator.randrange(5)}:{generator.randrange(9)}::{generator.randrange(1, 99)}",
            )
        )
    for source in ("10.0.1.1", "10.0.2.1"):
        found += [(source, one) for one in ("203.0.113.1", "10.0.1.1", "10.0.2.1", "10.0.1.77", "10.0.2.77")]
    return found


def lookups(seed):
    generator = random.Random(int(seed))  # noqa: S311 - a repeatable choice
    random_setup(generator)
    held, wrong, known = recorded(), [], 0
    asked = pairs(generator)
    for source, destination in asked:
        (ours,) = held.paths([(source, destination)])
        if ours.unknown:
            continue
        known += 1
        kernels = seen(source, destination)
        if shown(ours) != kernels:
            wrong.append([source, destination, shown(ours), kernels])
    return {"wrong": wrong, "compared": len(asked), "known": known}


def paths():
    generator = random.Random(1)  # noqa: S311 - a repeatable choice
    random_setup(generator)
    asked = pairs(generator)
    ours = map(shown, read_ip_paths(asked))
    return [[pair, one, seen(*pair)] for pair, one in zip(asked, ours, strict=True) if one != seen(*pair)]


def capped():
    batch(
        "\n".join(f"route add 77.{a}.{b}.0/24 via 10.0.2.254 dev r2" for a in range(20) for b in range(256))
    )
    read_ip_facts("r2")
    before = len(os.listdir("/proc/self/fd"))
    found = read_ip_facts("r2")
    more = len(os.listdir("/proc/self/fd")) - before
    return {
        "routes": sum(one.table in (254, 255) and ":" not in one.destination for one in found.routes),
        "capped": list(found.capped),
        "descriptors": more,
    }


def leaks():
    def read():
        read_ip_facts("r1")
        read_ip_paths([("10.0.1.1", "10.0.1.9")])

    read()
    before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(30):
        read()
    after = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    return {"descriptors": after[0] - before[0], "threads": after[1] - before[1]}


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    work = {"facts": facts, "lookups": lookups, "paths": paths, "capped": capped, "leaks": leaks}[what]
    sys.stdout.write(json.dumps(work(*words)))
