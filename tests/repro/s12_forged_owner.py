"""A user of the host names a cgroup of the subtree that systemd delegates to him like a pod, a container or a job: the exporter believes it."""
import os, sys
from roce_exporter.owners.identify import parse_cgroups
POD, ID = "11111111-2222-3333-4444-555555555555", "a" * 64
MINE = "/user.slice/user-1000.slice/user@1000.service/app.slice"
OTHER = "66666666-7777-8888-9999-000000000000"
A_POD = f"/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope"
forged = {  # path, and the kind and name of place that nobody but root could have made
    f"{MINE}/pod{POD}/{ID}": "unit", f"{MINE}/docker-{ID}.scope": "unit", f"{MINE}/slurmstepd.scope/job_4711/step_0": "unit",
    f"{A_POD}/slurmstepd.scope/job_4711/step_0": "pod", f"{A_POD}/pod{OTHER}/{'b' * 64}": "pod"}
wrong = []
for path, kind in forged.items():
    place = parse_cgroups(f"0::{path}\n")
    right = place.kind == kind and place.pod_uid in ("", POD)
    print("ok   " if right else "WRONG", path[:60] + "...", "->", place.kind, place.name)
    if not right: wrong.append(path)
print(f"FAULT: {len(wrong)} of {len(forged)} forged cgroups are taken for another owner" if wrong else "OK: names below a delegated cgroup decide nothing")
sys.stdout.flush(); os._exit(bool(wrong))
