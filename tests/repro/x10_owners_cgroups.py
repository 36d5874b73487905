#!/usr/bin/env python3
"""The owner of each text of /proc/PID/cgroup in a table (default captures/cgroups.tsv of ../shared; columns there: `\\n` is a line feed, `kind` may be empty).

A row is right if the owner contains `owner_contains`, has the kind where one is named, and differs from the owners of the other rows with the same
`differs_within`. Run with the Python that has roce_exporter."""
import csv, pathlib, sys
from roce_exporter.model.owner import ProcessFacts
from roce_exporter.owners.identify import owner_of
from xcommon import check, done

table = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "../shared/captures/cgroups.tsv"
rows = list(csv.DictReader(open(table), delimiter="\t", quoting=csv.QUOTE_NONE))
owners = {r["id"]: owner_of(ProcessFacts(7, 1.0, "python3", "ada", r["cgroup"].replace("\\n", "\n"))) for r in rows}
right = 0
for r in rows:
    o = owners[r["id"]]; name, kind = o[0], o[1]
    others = [owners[x["id"]][0] for x in rows if x is not r and r["differs_within"] and x["differs_within"] == r["differs_within"]]
    why = "; ".join(filter(None, ["" if r["owner_contains"] in name else f"not {r['owner_contains']}", "" if not r["kind"] or r["kind"] == kind else f"kind not {r['kind']}", "merged with another" if name in others else ""]))
    right += not why; check(not why, f"{r['id']} {r['what']}: {name}" + (f"   ({why})" if why else ""))
print(f"{right} of {len(rows)} right"); done()
