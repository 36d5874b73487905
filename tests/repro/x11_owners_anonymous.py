#!/usr/bin/env python3
"""With --owners.anonymous no user's name reaches a label: neither by the user and command, nor by the name of a unit or a path that contains it.
Run with the Python that has roce_exporter."""
from roce_exporter.model.owner import ProcessFacts
from roce_exporter.owners.identify import owner_of
from xcommon import check, done

for what, cgroup in {"JupyterHub's unit per user": "0::/system.slice/jupyter-ada-singleuser.service", "a unit of the user's systemd": "0::/user.slice/user-1000.slice/user@1000.service/app.slice/ada-training.service",
                     "a folder per user": "0::/batch/ada/job.7", "rootless LXC": "0::/lxc.payload.ada_trainer", "the root cgroup, by the command": "0::/"}.items():
    o = owner_of(ProcessFacts(7, 1.0, "ada-train", "ada", cgroup), anonymous=True)
    check(not any("ada" in str(x) for x in o), f"{what}: {o[0]} {[x for x in o if 'ada' in str(x)]}")
done()
