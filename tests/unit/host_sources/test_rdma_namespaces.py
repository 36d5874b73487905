"""RDMA devices of other network namespaces: what is hidden, the helper and its socket."""

import asyncio
import contextlib
import errno
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from descriptors import open_descriptors
from kernel import host
from waiting import until

from roce_exporter.catalog.named import KERNEL_LOG_EVENTS
from roce_exporter.cli import main
from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.kernel import Absent
from roce_exporter.host_sources import HostSources, namespace_helper
from roce_exporter.host_sources.namespace_helper import (
    MOST_DEVICES,
    REST,
    NamespaceHelper,
    NamespaceReport,
    decode_report,
    encode_report,
    list_namespaces,
    open_helper,
    read_namespace,
)
from roce_exporter.host_sources.rdma_namespaces import RdmaNamespaces
from roce_exporter.model import RdmaDevice
from roce_exporter.normalise.series import Samples, Series

MLX5 = RdmaDevice(0, "mlx5_0", "", "roce", "")


def host_of(*nodes: str, shared: bool = False) -> Any:
    """A host that sees mlx5_0 alone of the devices that have these nodes in `infiniband_verbs`."""
    verbs = {f"infiniband_verbs/uverbs{number}/ibdev": name for number, name in enumerate(nodes)}
    files = {"infiniband/mlx5_0/node_type": "1: CA\n"} | verbs
    if nodes:
        files["infiniband_verbs/abi_version"] = "6\n"
    kernel: Any = host({f"sys/class/{path}": text for path, text in files.items()})
    kernel.rdma_namespaces_shared, kernel.rdma_devices = lambda: shared, lambda: (MLX5,)
    return kernel


ALL = ("mlx5_0", "mlx5_1", "mlx5_2")


async def read(kernel: Any, socket: str = "") -> tuple[dict[str, Any], str]:
    around = HostSources([RdmaNamespaces(kernel, socket)], lambda: 0.0, 20)
    await around.read_once()
    (found,), (state,) = around.samples(), around.states()
    shown = {
        ",".join((series.row.name, *series.labels)): value
        for series, value in zip(found.series, found.values, strict=True)
    }
    return shown, state.error


@pytest.mark.parametrize(
    ("nodes", "shared", "socket", "unseen"),
    [
        (ALL, False, "", 2),
        (("mlx5_0",), True, "/nowhere", 0),
        ((), False, "", None),  # without uverbs the number is unknown
        ((), True, "", 0),
    ],
)
async def test_hidden_devices_are_counted_without_the_helper(nodes, shared, socket, unseen) -> None:
    counted = {} if unseen is None else {"roce_exporter_rdma_devices_unseen": unseen}
    found = await read(host_of(*nodes, shared=shared), socket)
    assert found == ({"roce_rdma_namespaces_shared": int(shared), **counted}, "")


class Visits:
    """Namespaces that the helper visits: what each holds, or why it cannot be visited."""

    def __init__(self, folder: Path, **found: Any) -> None:
        self.found = found
        self.threads: list[int] = []
        for name in found:
            (folder / name).touch()

    def __call__(self, name: str, _: str) -> dict[str, dict[str, int]]:
        self.threads.append(threading.get_ident())
        found = self.found[name]
        if isinstance(found, OSError):
            raise found
        assert isinstance(found, dict)
        return found


@pytest.mark.parametrize(
    ("nodes", "unseen"), [(ALL, {"roce_exporter_rdma_devices_unseen": 1}), ((), {})], ids=["", "no uverbs"]
)
async def test_the_helper_reports_what_is_hidden(tmp_path, nodes, unseen) -> None:
    """What the exporter sees itself is not repeated, and a namespace that cannot be visited is counted."""
    folder = tmp_path / "netns"
    folder.mkdir()
    visits = Visits(
        folder,
        pod_a={"mlx5_1": {"qp": 3, "mr": 7}},
        pod_b=PermissionError(errno.EPERM, "no"),
        own={"mlx5_0": {"qp": 1}},
    )
    helper = NamespaceHelper(str(folder), lambda: 0.0, visits, timeout=600)
    path = str(tmp_path / "helper.sock")
    async with await open_helper(helper, path):
        shown, error = await read(host_of(*nodes), path)
    assert (shown, error) == (
        {
            "roce_rdma_namespaces_shared": 0,
            "roce_namespace_objects,pod_a,mlx5_1,qp": 3,
            "roce_namespace_objects,pod_a,mlx5_1,mr": 7,
            "roce_exporter_rdma_namespaces_unseen": 1,
            **unseen,
        },
        "",
    )
    assert threading.get_ident() not in visits.threads, "the thread of the helper stays where it is"


async def test_clients_do_not_decide_how_often_namespaces_are_visited(tmp_path) -> None:
    now = [0.0]
    visits = Visits(tmp_path, pod_a={"mlx5_1": {"qp": 1}})
    helper = NamespaceHelper(str(tmp_path), lambda: now[0], visits, timeout=600)
    await asyncio.gather(*(helper.document() for _ in range(5)))
    assert len(visits.threads) == 1
    now[0] = REST
    await helper.document()
    assert len(visits.threads) == 2


async def test_the_socket_is_closed_to_other_users(tmp_path) -> None:
    helper = NamespaceHelper(str(tmp_path), lambda: 0.0, Visits(tmp_path))
    path = str(tmp_path / "helper.sock")
    async with await open_helper(helper, path):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    async with await open_helper(helper, path, os.getgid()):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o660


async def test_a_client_that_sends_changes_nothing(tmp_path) -> None:
    """No input is read. The kernel may reset a connection that is closed with unread input."""
    helper = NamespaceHelper(str(tmp_path / "netns"), lambda: 0.0)
    path = str(tmp_path / "helper.sock")
    async with await open_helper(helper, path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 1000)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        reader, writer = await asyncio.open_unix_connection(path)
        assert decode_report(await reader.read()) == NamespaceReport({}, {})
        writer.close()


async def test_without_the_helper_the_error_is_one_line_with_the_remedy(tmp_path) -> None:
    shown, error = await read(host_of(*ALL), str(tmp_path / "none.sock"))
    assert shown == {}
    assert "--rdma.namespaces=" in error
    assert "is `roce-exporter tool namespaces` running?" in error


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"devices": 1, "failed": {}}',
        b'{"devices": [{}], "failed": {}}',
        b'{"devices": [{"namespace": "a", "device": "b", "objects": {"qp": "many"}}], "failed": {}}',
        b'{"devices": [{"namespace": "a", "device": "b", "objects": {"qp": -1}}], "failed": {}}',
        b'{"devices": [{"namespace": "a", "device": "b", "objects": {"qp": 99999999999}}], "failed": {}}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_document_of_another_program_is_refused(document) -> None:
    with pytest.raises(ValueError, match="roce-exporter tool namespaces"):
        decode_report(document)


def test_a_report_survives_the_socket_and_is_bounded() -> None:
    report = NamespaceReport({("a", "mlx5_1"): {"qp": 3}}, {"b": "EPERM"})
    assert decode_report(encode_report(report)) == report
    many = NamespaceReport({("a", str(number)): {} for number in range(MOST_DEVICES + 1)}, {})
    assert len(decode_report(encode_report(many)).devices) == MOST_DEVICES


def test_a_visit_that_is_refused_leaves_no_descriptor(tmp_path) -> None:
    (tmp_path / "pod_a").touch()
    entered: list[int] = []

    def enter(descriptor: int) -> None:
        entered.append(os.fstat(descriptor).st_ino)
        raise PermissionError(errno.EPERM, "no")

    with pytest.raises(PermissionError):
        read_namespace("pod_a", str(tmp_path), enter)
    assert entered == [(tmp_path / "pod_a").stat().st_ino]
    # Only those of this file: a thread that an earlier test has left opens its own.
    links = (Path("/proc/self/fd", one) for one in open_descriptors())
    assert not [one for one in links if one.is_symlink() and os.readlink(one) == str(tmp_path / "pod_a")]


def test_a_file_that_is_no_namespace_is_not_entered(tmp_path) -> None:
    """The kernel's own answer: EINVAL, or EPERM without the capability."""
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="setns") as caught:
        read_namespace("file", str(tmp_path))
    assert caught.value.errno in (errno.EINVAL, errno.EPERM)


@pytest.fixture
def other_namespace(tmp_path) -> Iterator[Path]:
    """A folder with a real network namespace, which a process holds open."""
    command = ("unshare", "--net", "sh", "-c", "echo x && exec cat")  # it speaks from within the namespace
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.read(1) != b"x":
            pytest.skip("no network namespace can be made here: that needs CAP_SYS_ADMIN")
        (tmp_path / "pod").symlink_to(f"/proc/{process.pid}/ns/net")
        yield tmp_path
        process.stdin.close()


def test_a_visit_moves_its_thread_alone(other_namespace) -> None:
    """After entering a real namespace, the next socket of that thread is there, and this thread is where it was."""
    here = os.readlink("/proc/thread-self/ns/net")
    there = os.readlink(other_namespace / "pod")
    visited = os.readlink(there if there.startswith("/") else other_namespace / there)
    seen: list[str] = []

    def go() -> None:
        with contextlib.suppress(Absent):  # most machines have no RDMA netlink
            read_namespace("pod", str(other_namespace))
        seen.append(os.readlink("/proc/thread-self/ns/net"))

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    assert seen == [visited] != [here]
    assert os.readlink("/proc/thread-self/ns/net") == here


@pytest.mark.parametrize("removed", [False, True], ids=["", "removed before"])
async def test_the_command_reports_until_it_is_stopped(other_namespace, removed) -> None:
    """The helper as a process, with a real namespace: one document per connection, and no socket left afterwards.

    From Python 3.13 on asyncio removes the socket before the helper does; here the test does.
    """
    path = other_namespace.parent / "helper.sock"
    command = (sys.executable, "-m", "roce_exporter", "tool", "namespaces", f"--rdma.namespaces={path}")
    file = other_namespace.parent / "roce.yml"
    file.write_text(f"namespaces.folder: {other_namespace}")
    process = await asyncio.create_subprocess_exec(
        *command, f"--config.file={file}", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        assert b"reports the RDMA devices" in await process.stderr.readline()
        reader, writer = await asyncio.open_unix_connection(path)
        report = decode_report(await reader.read())
        writer.close()
        # Devices where this kernel has RDMA netlink, and else the reason.
        assert report.devices or report.failed in ({}, {"pod": "EPROTONOSUPPORT"})
        if removed:
            path.unlink()
    finally:
        process.terminate()
        assert await process.wait() == 0
    assert not path.exists()


def test_a_host_without_named_namespaces_has_none(tmp_path) -> None:
    assert list_namespaces(str(tmp_path / "netns")) == ()


def test_without_the_capability_the_command_does_not_start(tmp_path, capsys, monkeypatch) -> None:
    def refuse(descriptor: int) -> None:
        assert os.readlink(f"/proc/self/fd/{descriptor}") == os.readlink("/proc/thread-self/ns/net")
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), "setns")

    monkeypatch.setattr(namespace_helper, "_enter", refuse)
    assert main(["tool", "namespaces", f"--rdma.namespaces={tmp_path}/helper.sock"]) == 2
    assert " ".join(capsys.readouterr().err.split()) == (
        "roce-exporter: network namespaces cannot be entered: Operation not permitted; run this as root, or give it CAP_SYS_ADMIN"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_a_wrong_group_and_socket(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(namespace_helper, "_enter", lambda descriptor: None)
    assert main(["tool", "namespaces", "--namespaces.group=no-such-group"]) == 2
    assert "no such group" in capsys.readouterr().err
    (tmp_path / "file").touch()
    for name, said in (
        ("none/helper.sock", ": No such file or directory; choose a path in a folder that exists\n"),
        ("file", ": a file that is no socket is there\n"),
        (200 * "x", ": AF_UNIX path too long\n"),
    ):
        assert main(["tool", "namespaces", f"--rdma.namespaces={tmp_path}/{name}"]) == 2
        assert capsys.readouterr().err.endswith(f"{name}{said}")


async def test_names_that_are_no_text_are_listed_visited_and_shown(tmp_path) -> None:
    folder = tmp_path / "netns"
    folder.mkdir()
    for name in (b"pod-1", b"bad\xff", b'q"\n\\'):
        (folder / os.fsdecode(name)).touch()
    assert list_namespaces(str(folder)) == ("bad\\xff", "pod-1", 'q"\n\\')
    entered: list[str] = []

    def enter(descriptor: int) -> None:
        entered.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        raise PermissionError(errno.EPERM, "not permitted")

    for name in list_namespaces(str(folder)):
        with pytest.raises(PermissionError):
            read_namespace(name, str(folder), enter)
    assert sorted(map(os.fsencode, entered)) == sorted(
        os.fsencode(folder) + b"/" + name for name in (b"pod-1", b"bad\xff", b'q"\n\\')
    )
    made = [Samples((Series(KERNEL_LOG_EVENTS, ("odd\udcff", "x")),), (1,))]
    assert Renderer().render(made, Format.TEXT).isascii()


async def test_a_slow_round_goes_on_without_the_client_that_began_it(tmp_path, monkeypatch) -> None:
    """A client that loses its patience gets what there is so far, and the next one the whole round."""
    monkeypatch.setattr(namespace_helper, "ROUND_SECONDS", 0)
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    gate = threading.Event()

    def visit(name: str, _: str) -> dict[str, dict[str, int]]:
        if name == "b":
            gate.wait()
        return {"mlx5_0": {"qp": 1}}

    helper = NamespaceHelper(str(tmp_path), lambda: 0.0, visit, timeout=600)

    async def seen(count: int) -> None:
        while len(decode_report(await helper.document()).devices) < count:  # noqa: ASYNC110 - a visit has no event
            await asyncio.sleep(0)

    await seen(1)
    gate.set()
    await seen(2)


async def test_only_a_socket_makes_room_for_the_socket(tmp_path) -> None:
    helper = NamespaceHelper(str(tmp_path), lambda: 0.0)
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError, match="a file that is no socket is there"):
            await open_helper(helper, str(tmp_path / name))
    assert (tmp_path / "file").read_text() == "precious"
    for _ in range(2):  # the socket of an earlier run
        server = await open_helper(helper, str(tmp_path / "socket"))
        server.close()


async def test_a_client_that_does_not_read_keeps_no_descriptor(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(namespace_helper, "SEND_SECONDS", 0.1)
    folder = tmp_path / "netns"
    folder.mkdir()
    (folder / "a").touch()
    helper = NamespaceHelper(str(folder), lambda: 0.0, lambda name, _: {"x" * (1 << 22): {}})
    before = len(open_descriptors())
    async with await open_helper(helper, str(tmp_path / "helper.sock")):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        client.connect(str(tmp_path / "helper.sock"))
        await until(lambda: len(open_descriptors()) == before + 3)
        await until(lambda: len(open_descriptors()) == before + 2)
        client.close()


async def test_a_file_that_took_the_place_of_the_socket_keeps_its_group_and_mode(
    tmp_path, monkeypatch
) -> None:
    """The folder may belong to others, who may exchange the socket for a link."""
    secret, path = tmp_path / "secret", tmp_path / "helper.sock"
    secret.touch(0o600)
    start = asyncio.start_unix_server

    async def exchanged(*args: Any) -> asyncio.Server:
        server = await start(*args)
        path.unlink()
        path.symlink_to(secret)
        return server

    monkeypatch.setattr(asyncio, "start_unix_server", exchanged)
    async with await open_helper(NamespaceHelper(str(tmp_path), lambda: 0.0), str(path), group=os.getgid()):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


async def test_visits_that_do_not_return_hold_few_threads(tmp_path, monkeypatch) -> None:
    """Each namespace has another name, and each visit a thread."""
    monkeypatch.setattr(namespace_helper, "MOST_STUCK", 3)
    gate, begun = threading.Event(), []

    def visit(name: str, _: str) -> dict[str, dict[str, int]]:
        begun.append(name)
        gate.wait()
        return {}

    for name in "abcde":
        (tmp_path / name).touch()
    helper = NamespaceHelper(str(tmp_path), lambda: 0.0, visit, timeout=0.01)
    report = decode_report(await helper.document())
    gate.set()
    assert (begun, report.failed["d"], report.failed["e"]) == (["a", "b", "c"], "EBUSY", "EBUSY")
