"""What /proc/PID/cgroup says on hosts of every kind: kubelets, container engines, Slurm, systemd, cgroup namespaces.

Constructed, with invented IDs: each group of cgroup_forms.tsv names the program, and where it is known the file, that makes such paths. The
forms were compared with the tests of other readers of these paths (ceems, containerd, opentelemetry, podman). Columns: what it is, the text
with escapes as in Python, kind and name of the place, and its other fields.
"""

from pathlib import Path

import pytest

from roce_exporter.owners.identify import CgroupPlace, parse_cgroups

UID = "2b801b7a-5266-4386-864e-45ed71136371"
UNDERSCORES = UID.replace("-", "_")
WORDS = {
    "{PODS}": f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORES}.slice",
    "{MINE}": "/user.slice/user-1000.slice/user@1000.service/app.slice",
    "{UID}": UID,
    "{U_ID}": UNDERSCORES,
    "{UID2}": UID.replace("2", "3"),
    "{STATIC}": "8bc9ba2e02ab9dbb6eb3f7fd4ea8a1b3",  # the UID of a static pod: a hash
    "{ID}": "20e061fc708d3b66dfe257b19552b34a1307a7347ed6b5bd0d8c5e76afb1a870",
    "{OTHER}": "bd4a8d1fa5e1b2cd8d1f0c3e9a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b",
}
TABLE = (Path(__file__).parent / "cgroup_forms.tsv").read_text("ascii")
FORMS = [line.split("\t") for line in TABLE.splitlines() if line and not line.startswith("#")]


def written_out(text: str) -> str:
    for word, whole in WORDS.items():
        text = text.replace(word, whole)
    return text.encode("ascii").decode("unicode_escape")


@pytest.mark.parametrize(
    ("text", "name", "more"), [(*form[1:], "")[:3] for form in FORMS], ids=[form[0] for form in FORMS]
)
def test_a_path_is_read(text, name, more) -> None:
    kind, _, name = written_out(name).partition("/")
    fields = dict(one.split("=", 1) for one in map(written_out, more.split()))
    assert parse_cgroups(written_out(text)) == CgroupPlace(kind, name, **fields)


def test_the_table_has_all_groups() -> None:
    assert len(FORMS) > 100
    assert len({form[0] for form in FORMS}) > 90
