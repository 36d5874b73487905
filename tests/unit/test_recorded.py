"""Recordings: folders and archives, moments in turn, symbolic links inside; malformed files are named."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import tarfile
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel import host

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded import tree
from roce_exporter.host.recorded.archive import load_tree
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.recorded.tree import MAX_BYTES, RecordingError, Tree

STATE = "sys/class/infiniband/mlx5_0/ports/1/state"
DEVICE = "sys/class/infiniband/mlx5_0"
COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "tar": bytes}


def write(root: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            place.symlink_to(text.removeprefix("-> "))
        else:
            place.write_text(text)
    return str(root)


def packed(files: dict[str, str], name: str) -> bytes:
    """A tar archive, compressed according to the suffix of its name."""
    place = io.BytesIO()
    with tarfile.open(fileobj=place, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            if text.startswith("-> "):
                member.type, member.linkname = tarfile.SYMTYPE, text.removeprefix("-> ")
            else:
                member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return COMPRESS[name.rpartition(".")[2]](place.getvalue())


def pack(place: Path, files: dict[str, str]) -> str:
    place.write_bytes(packed(files, place.name))
    return str(place)


HOST = {
    STATE: "4: ACTIVE\n",
    f"{DEVICE}/device": "-> ../../../devices/pci0000:3a/0000:3b:00.0",
    "sys/devices/pci0000:3a/0000:3b:00.0/driver": "-> ../../../bus/pci/drivers/mlx5_core",
    "sys/devices/pci0000:3a/0000:3b:00.0/net/eth2/mtu": "9000\n",
}


@pytest.mark.parametrize("prefix", ["", "host/", "./host/"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_folder_and_an_archive_are_equivalent(tmp_path, prefix, packed) -> None:
    files = {prefix + path: text for path, text in HOST.items()}
    path = pack(tmp_path / "h.tar.gz", files) if packed else write(tmp_path / "h", files)
    kernel = load_recording(path)
    kernel.begin()
    assert kernel.entries("class/infiniband") == ("mlx5_0",)
    assert kernel.text("class/infiniband/mlx5_0/ports/1/state") == "4: ACTIVE"
    assert kernel.link("class/infiniband/mlx5_0/device") == "0000:3b:00.0"
    assert kernel.link("class/infiniband/mlx5_0/device/driver") == "mlx5_core"
    assert kernel.entries("class/infiniband/mlx5_0/device/net") == ("eth2",)
    assert kernel.text("class/infiniband/mlx5_0/device/net/eth2/mtu") == "9000"
    for absent in ("class/infiniband/mlx5_1", "class/infiniband/mlx5_0/device/driver/x", "class/net"):
        with pytest.raises(Absent):
            kernel.entries(absent)


def test_rdma_json_alone_is_a_host() -> None:
    port = {"ifname": "ionic_0", "port": 1}
    kernel = host(
        {
            "rdma/statistic.json": [port | {"tx_rdma_cnp_pkts": 5}],
            "rdma/mode_supported.json": [port | {"supported optional-counters": ["a", "b"]}],
            "rdma/mode.json": [port | {"optional-counters": ["b"]}],
            "rdma/resource.json": [{"ifindex": 0, "ifname": "ionic_0", "qp": 3, "cq": 4}],
        }
    )
    (device,) = kernel.rdma_devices()
    assert kernel.rdma_statistics(device, 1) == {"tx_rdma_cnp_pkts": 5}
    assert kernel.rdma_optional_counters(device, 1) == {"a": False, "b": True}
    assert kernel.rdma_resources(device) == {"qp": 3, "cq": 4}
    with pytest.raises(Absent):
        kernel.rdma_statistics(device, 2)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"rdma/dev.json": "{"}, "rdma/dev.json: not JSON"),
        ({"rdma/statistic.json": "[" * 100_000}, "rdma/statistic.json: not JSON .nested too deeply"),
        ({"dcb/eth0.pfc.json": '{"a":' * 100_000}, "dcb/eth0.pfc.json: not JSON .nested too deeply"),
        ({"rdma/dev.json": "{}"}, "rdma/dev.json: not a list"),
        ({"rdma/link.json": '[{"port":1}]'}, "rdma/link.json: not a list of objects with an ifname"),
        ({"rdma/statistic.json": '[{"ifname":"a","x":"y"}]'}, "x of a is 'y', not a whole number"),
        ({"rdma/statistic.json": '[{"ifname":"a","x":1.5}]'}, "x of a is 1.5, not a whole number"),
        ({"rdma/link.json": '[{"ifname":"a","port":"one"}]'}, "port of a is 'one'"),
        ({"rdma/statistic.json": '[{"ifname":"a","x":-1}]'}, "x of a is -1, not a whole number"),
        (
            {"rdma/statistic.json": '[{"ifname":"a","x":18446744073709551616}]'},
            "x of a is 18446744073709551616",
        ),
        (
            {"rdma/mode.json": '[{"ifname":"a","optional-counters":1}]'},
            "optional-counters of a is 1, not a list",
        ),
        (
            {"rdma/mode.json": '[{"ifname":"a","optional-counters":[1]}]'},
            "optional-counters of a is .1., not a",
        ),
        ({"dcb/eth0.pfc.json": '{"pfc_cap": 18446744073709551616}'}, "pfc_cap holds 18446744073709551616"),
        (
            {
                "ip/address.json": "[]",
                "ip/neigh.json": '[{"dev":"a","dst":"::1","state":["STALE"],"updated":1e999}]',
            },
            "ip/neigh.json: not what `ip -j` prints",
        ),
        ({"dcb/eth0\nx.pfc.json": "{"}, "dcb/eth0 x.pfc.json: not JSON"),
        ({f"{number}/sys/a": "" for number in range(1001)}, "over 1000 moments"),
        ({"readme": "hello"}, "holds none of"),
        ({}, "holds none of"),
    ],
)
def test_a_malformed_recording_is_named_in_one_line(tmp_path, files, message) -> None:
    (tmp_path / "h").mkdir()
    with pytest.raises(RecordingError, match=message) as caught:
        load_recording(write(tmp_path / "h", files))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_whose_part_cannot_be_read_is_refused_with_its_name(tmp_path, monkeypatch) -> None:
    """`os.walk` passes over it: its values would be missing as on a host that does not have them."""
    path, scan = write(tmp_path, {"sys/a": "1", "rdma/dev.json": "[]"}), os.scandir

    def refuse(place: str) -> object:
        if str(place).endswith("/sys"):
            raise PermissionError(13, "Permission denied", place)
        return scan(place)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(RecordingError, match="/sys: Permission denied; check the path and its permissions"):
        load_recording(path)


@pytest.mark.parametrize("keep", [0, 1, 10, 50, 100])
def test_a_truncated_archive_is_refused(tmp_path, keep) -> None:
    place = tmp_path / "h.tar.gz"
    pack(place, {STATE: "4: ACTIVE\n"} | {f"sys/class/net/e{n}/mtu": f"{n}\n" for n in range(50)})
    whole = place.read_bytes()
    place.write_bytes(whole[: min(keep, len(whole) - 9)])
    with pytest.raises(RecordingError, match="not a whole tar archive"):
        load_recording(str(place))


FORMS = ("h.tar.gz", "h.tar.bz2", "h.tar.xz", "h.tar")


@pytest.mark.parametrize("name", FORMS)
def test_every_usual_form_of_archive_is_read(tmp_path, name) -> None:
    assert (
        load_recording(pack(tmp_path / name, {STATE: "4: ACTIVE\n"})).text(STATE.removeprefix("sys/"))
        == "4: ACTIVE"
    )


@pytest.mark.parametrize("name", FORMS[:3])
def test_an_archive_with_a_hole_in_it_is_refused(tmp_path, name) -> None:
    text = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(5000))
    content = bytearray(packed({STATE: text}, name))
    content[len(content) // 2 : len(content) // 2 + 64] = bytes(64)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordingError, match="not a whole tar archive") as caught:
        load_recording(str(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)


def test_an_endless_chain_of_headers_is_refused(tmp_path) -> None:
    """Python's tar reader is recursive for the member that a long name belongs to."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1
    (tmp_path / "h.tar").write_bytes((header.tobuf() + b"x".ljust(512, b"\0")) * 2000)
    with pytest.raises(RecordingError, match="not a whole tar archive"):
        load_recording(str(tmp_path / "h.tar"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [FORMS[0], *(pytest.param(one, marks=pytest.mark.ci) for one in FORMS[1:3])])
def test_a_header_that_unpacks_to_far_too_much_is_refused(tmp_path, name) -> None:
    """Not only the files: the tar reader keeps a name of any length in memory."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, MAX_BYTES
    compress = COMPRESS[name.rpartition(".")[2]]
    (tmp_path / name).write_bytes(compress(header.tobuf() + bytes(MAX_BYTES)))
    with pytest.raises(RecordingError, match="a header of over 1048576 bytes"):
        load_recording(str(tmp_path / name))


def test_a_header_that_is_read_in_parts_has_the_same_limit() -> None:
    """As `tarfile` reads it from Python 3.14.10 on."""
    limited = tree._Limited(io.BytesIO(bytes(2 * tree.READ_BYTES)))
    parts = iter(lambda: limited.read(1 << 16), b"")
    with pytest.raises(RecordingError, match="a header of over 1048576 bytes"):
        deque(parts, maxlen=0)
    assert limited.tell() <= tree.READ_BYTES


@pytest.mark.parametrize("path", ["a" * 5000, "a/" * 2500 + "a"])
def test_a_path_that_no_host_has_is_refused(tmp_path, path) -> None:
    with pytest.raises(RecordingError, match="a path of more than 4096 bytes"):
        load_recording(pack(tmp_path / "h.tar.gz", {path: "x"}))
    with pytest.raises(RecordingError, match="a path of more than 4096 bytes"):
        load_recording(pack(tmp_path / "h.tar.gz", {"sys/a": f"-> {path}"}))


def test_names_count_with_their_memory(tmp_path, monkeypatch) -> None:
    """Each parent folder of a file is stored under its full path."""
    deep = "a/" * 500
    monkeypatch.setattr(tree, "MAX_NAME_BYTES", 1 << 20)
    load_tree(pack(tmp_path / "one.tar.gz", {f"{number}/{deep}": "x" for number in range(1)}))
    with pytest.raises(RecordingError, match="names of over"):
        load_tree(pack(tmp_path / "many.tar.gz", {f"{number}/{deep}": "x" for number in range(6)}))


def test_an_endless_archive_of_empty_members_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tree, "MAX_ARCHIVE_BYTES", 1 << 20)
    files = {f"sys/{number}": "" for number in range(2100)}
    with pytest.raises(RecordingError, match="GiB unpacked"):
        load_tree(pack(tmp_path / "h.tar.gz", files))
    assert load_tree(pack(tmp_path / "h.tar.gz", dict(list(files.items())[:1000]))).files


def test_an_archive_that_unpacks_to_far_too_much_is_refused(tmp_path) -> None:
    place = tmp_path / "bomb.tar.gz"
    pack(place, {f"sys/class/net/{n}": "0" * (1 << 24) for n in range(5)})
    with pytest.raises(RecordingError, match="over 64 MiB"):
        load_recording(str(place))


def test_paths_out_of_the_archive_are_ignored(tmp_path) -> None:
    kernel = load_recording(pack(tmp_path / "h.tar.gz", {"../../etc/passwd": "x", STATE: "4: ACTIVE\n"}))
    assert kernel.entries("class/infiniband") == ("mlx5_0",)


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "l"]), max_size=12))
def test_no_path_leads_out_of_the_tree_or_in_circles(parts) -> None:
    held = Tree(files={"a/b": b""}, links={"a/l": "..", "l": "/a/l/l"})
    for path in (*held.files, *held.links):
        held.add(path)
    try:
        found = held.resolve("/".join(parts))
    except Absent:
        return
    assert found in held.files or found in held.folders


def test_moments_are_taken_apart_at_once(tmp_path, monkeypatch) -> None:
    """And not by a search of all paths for each of a thousand."""
    files = {f"{number}/sys/a": "x" for number in range(50)}
    calls, content = [], Tree.content
    monkeypatch.setattr(Tree, "content", lambda one: calls.append(1) or content(one))
    assert len(load_recording(pack(tmp_path / "h.tar.gz", files)).moments) == 50
    assert len(calls) < 5
