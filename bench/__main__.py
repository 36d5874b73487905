"""`python bench [TABLE...]` measures and prints tables; without names, every table of TABLES.

Everything compared is measured in the same run, in turn, so that other load on the machine affects all of it alike:
rely on the ratios, not on the milliseconds. `docs/performance.md` explains each table and holds the last results.
"""

from __future__ import annotations

import sys

import board_queries
import calls
import ethernet
import ethtool_names
import exposition
import fast_loop
import features
import firmware
import fleet
import growth
import lab
import limit
import links
import owners
import parts
import pause
import probe_cost
import probe_faults
import probe_vote
import rules
import scrape
import series
import start
import storm_detection
import switches
import wire_live
import wire_speed

TABLES = {
    "scrape": scrape.main,
    "limit": limit.main,
    "parts": parts.main,
    "features": features.main,
    "firmware": firmware.main,
    "calls": calls.main,
    "exposition": exposition.main,
    "ethernet": ethernet.main,
    "names": ethtool_names.main,
    "loop": fast_loop.main,
    "start": start.main,
    "growth": growth.main,
    "lab": lab.main,
    "fleet": fleet.main,
    "series": series.main,
    "boards": board_queries.main,
    "links": links.main,
    "storms": storm_detection.main,
    "switches": switches.main,
    "pause": pause.main,
    "owners": owners.main,
    "rules": rules.main,
    "wire": wire_speed.main,
    "live": wire_live.main,
    "probe_vote": probe_vote.main,
    "probe_cost": probe_cost.main,
    "probe_faults": probe_faults.main,
}
"""In the order of printing; fleet, boards, links, storms, rules, wire, live and those of probes take the longest."""


def main() -> int:
    """Print the requested tables; return 2 for an unknown name."""
    wanted = sys.argv[1:] or list(TABLES)
    if unknown := [name for name in wanted if name not in TABLES]:
        print(f"bench: no table {', '.join(unknown)}; there are {', '.join(TABLES)}", file=sys.stderr)
        return 2
    sys.argv[1:] = []
    for name in wanted:
        print(f"\n## {name}\n", flush=True)
        TABLES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
