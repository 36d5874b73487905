"""RDMA objects, counter sets and processes of a recording: `rdma -j resource show`, `rdma -j statistic qp show`, /proc."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel import host, tree_of

from roce_exporter.host.kernel import Absent, ObjectKernel
from roce_exporter.host.recorded.rdma_text import (
    HeldObjects,
    print_counter_set,
    print_object,
    print_processes,
    read_processes,
)
from roce_exporter.host.recorded.recorded import RecordedKernel
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject

RXE0 = RdmaDevice(0, "rxe0", "", "", "")
RXE1 = RdmaDevice(1, "rxe1", "", "", "")

# Rows as rdma of iproute2 6.1 printed them for Soft-RoCE devices of Linux 6.12, re-typed (recorded).
QUEUE_PAIRS = """[{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":41,"rqpn":41,"type":"RC","state":"RTS","rq-psn":3494462,
"sq-psn":4091026,"path-mig-state":"MIGRATED","pdn":26,"pid":16856,"comm":"ib_write_bw"},{"ifindex":0,"ifname":"rxe0",
"port":1,"lqpn":1,"type":"GSI","state":"RTS","sq-psn":3,"comm":"ib_core"}]"""


def recorded(**files: object) -> RecordedKernel:
    """A host with these files of `rdma/`; `__` is a hyphen."""
    return host({f"rdma/{name.replace('__', '-')}.json": rows for name, rows in files.items()})


def listed(kernel: ObjectKernel, device: RdmaDevice, kind: ObjectKind) -> list[RdmaObject]:
    objects = kernel.open_objects(device, kind)
    return [one for part in iter(objects.next_part, None) for one in part]


def test_queue_pairs_of_a_process_and_of_the_kernel() -> None:
    kernel = recorded(resource__qp=QUEUE_PAIRS, resource__cm_id="\n")
    assert listed(kernel, RXE0, ObjectKind.QUEUE_PAIR) == [
        RdmaObject(ObjectKind.QUEUE_PAIR, 16856, "", 1, 41, 41, "RC", "RTS"),
        RdmaObject(ObjectKind.QUEUE_PAIR, 0, "ib_core", 1, 1, 0, "GSI", "RTS"),
    ]
    assert listed(kernel, RXE1, ObjectKind.QUEUE_PAIR) == [], "a device without objects"
    assert listed(kernel, RXE0, ObjectKind.CONNECTION) == [], "a command that prints nothing"
    with pytest.raises(Absent, match=r"no rdma/resource-mr\.json in this recording"):
        kernel.open_objects(RXE0, ObjectKind.MEMORY_REGION)
    with pytest.raises(Absent, match=r"no rdma/statistic-qp\.json"):
        kernel.counter_sets(RXE0, 1)


CONNECT = {"port": 1, "lqpn": 9, "qp-type": "RC", "state": "CONNECT", "comm": "nvme_rdma"}
CONNECTED = RdmaObject(ObjectKind.CONNECTION, 0, "nvme_rdma", 1, 9, 0, "RC", "CONNECT")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (CONNECT | {"dst-addr": "198.51.100.7:4420"}, CONNECTED._replace(peer="198.51.100.7")),
        (CONNECT | {"dst-addr": "2001:db8::7:4420"}, CONNECTED._replace(peer="2001:db8::7")),
        (CONNECT | {"dst-addr": "fe80::1:0"}, CONNECTED._replace(peer="fe80::1")),
        ({"mrlen": 4096, "pid": 0}, RdmaObject(ObjectKind.MEMORY_REGION, size=4096)),
        ({"mrlen": 4096, "comm": None}, RdmaObject(ObjectKind.MEMORY_REGION, size=4096)),
        (
            {"cqe": 1023, "users": 2, "pid": 0, "comm": "ib_core"},
            RdmaObject(ObjectKind.COMPLETION_QUEUE, kernel="ib_core"),
        ),
    ],
)
def test_a_row_is_an_object(row, expected) -> None:
    """The peer has no port number. Of a process that ended older versions print an ID of 0, newer ones a command that is null."""
    kernel = recorded(**{f"resource__{expected.kind.value}": [{"ifname": "rxe0"} | row]})
    assert listed(kernel, RXE0, expected.kind) == [expected]


def test_counter_sets_of_a_port() -> None:
    rows = [
        {"ifname": "rxe0", "port": 1, "cntn": 4, "qp-type": "RC", "pid": 7, "comm": "a", "out_of_sequence": 3, "lqpn": [1, 2]},
        {"ifname": "rxe0", "port": 2, "cntn": 5, "out_of_sequence": 1, "lqpn": [8]},
    ]  # fmt: skip
    kernel = recorded(statistic__qp=rows)
    assert kernel.counter_sets(RXE0, 1) == (CounterSet(1, 4, 7, "RC", {"out_of_sequence": 3}),)
    assert kernel.counter_sets(RXE0, 2) == (CounterSet(2, 5, 0, "", {"out_of_sequence": 1}),)
    assert kernel.counter_sets(RXE1, 1) == ()


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("resource__qp", {"lqpn": -1}, "rdma/resource-qp.json: lqpn of rxe0 is -1, not a whole number"),
        ("resource__qp", {"state": 6}, "rdma/resource-qp.json: state of rxe0 is 6, not a text"),
        ("resource__mr", {"mrlen": "1k"}, "rdma/resource-mr.json: mrlen of rxe0 is '1k', not a whole number"),
        ("resource__cq", {"comm": []}, "rdma/resource-cq.json: comm of rxe0 is .., not a text"),
        (
            "resource__cm_id",
            {"dst-addr": "gpu7:4"},
            "dst-addr of rxe0 is 'gpu7:4', not an address and a port",
        ),
        ("statistic__qp", {"port": 1}, "rdma/statistic-qp.json: cntn of rxe0 is None, not a whole number"),
        ("statistic__qp", {"port": 1, "cntn": 1, "x": "y"}, "x of rxe0 is 'y', not a whole number"),
        ("resource__ctx", {"port": "1"}, "rdma/resource-ctx.json: port of rxe0 is '1', not a whole number"),
    ],
)
def test_garbage_is_one_line_that_names_the_file(name, row, message) -> None:
    with pytest.raises(RecordingError, match=message.replace("..", r"\[\]")) as caught:
        recorded(**{name: [{"ifname": "rxe0"} | row]})
    assert "\n" not in str(caught.value)


def test_every_moment_has_its_own_objects() -> None:
    row = {"ifname": "rxe0", "type": "RC", "state": "RTS", "pid": 7}
    kernel = host(*({"rdma/resource-qp.json": [row | {"lqpn": number}]} for number in (5, 6)))
    numbers = []
    for _ in range(3):
        kernel.begin()
        numbers += [one.number for one in listed(kernel, RXE0, ObjectKind.QUEUE_PAIR)]
    assert numbers == [5, 6, 5]


def test_a_list_comes_in_parts_and_ends() -> None:
    objects = tuple(RdmaObject(ObjectKind.QUEUE_PAIR, number=number) for number in range(120))
    held = HeldObjects(objects)
    parts = list(iter(held.next_part, None))
    assert [len(part) for part in parts] == [50, 50, 20]
    assert sum(parts, ()) == objects
    held = HeldObjects(objects)
    held.next_part()
    held.close()
    held.close()
    assert held.next_part() is None


# Content of /proc/PID as Linux 6.12 prints it, shortened (constructed).
PROC = {
    "proc/stat": "cpu  1 2 3\nbtime 1760000000\nprocesses 7\n",
    "proc/42/stat": "42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 4 0 12345 88046829568 2097 18446744073709551615\n",
    "proc/42/comm": "a) b (c\n",
    "proc/42/cgroup": "0::/system.slice/a.service\n",
    "proc/42/status": "Name:\ta) b (c\nTgid:\t42\nUid:\t1000\t1001\t1000\t1000\n",
    "etc/passwd": "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:/bin/sh\nbob:x:1000:1000::/:/bin/sh\n",
}
ALICE = ProcessFacts(42, 1760000123.45, "a) b (c", "alice", "0::/system.slice/a.service\n")


def test_a_process_with_a_name_that_contains_parentheses() -> None:
    assert host(PROC).process(42) == ALICE
    assert host(PROC).process_start(42) == ALICE.created


def test_files_of_processes_that_are_missing() -> None:
    """Without the boot time a process began after 1970; without status its user is unknown; without stat it is absent."""
    nameless = {path: text for path, text in PROC.items() if path != "etc/passwd"}
    assert host(nameless).process(42).user == "1000"
    only = host({"proc/42/stat": PROC["proc/42/stat"]})
    assert only.process(42) == ProcessFacts(42, 123.45, "a) b (c", "", "")
    for kernel, pid in ((host({"proc/42/comm": "a\n"}), 42), (host(PROC), 43)):
        with pytest.raises(Absent, match="No such process"):
            kernel.process(pid)


def test_a_thread_is_its_process() -> None:
    files = PROC | {
        "proc/57/stat": PROC["proc/42/stat"].replace("42 (a) b (c)", "57 (NCCL Service 0)").replace("12345", "12400"),
        "proc/57/status": "Name:\tNCCL Service 0\nTgid:\t42\nPid:\t57\nUid:\t1000\t1000\t1000\t1000\n",
        "proc/57/comm": "NCCL Service 0\n",
        "proc/57/cgroup": PROC["proc/42/cgroup"],
    }  # fmt: skip
    assert host(files).process(57) == ALICE._replace(created=1760000124.0)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("proc/42/stat", "42 (a) S 1 2", r"recording HOST: proc/42/stat: no start time in field 22; copy it"),
        ("proc/42/stat", "", r"proc/42/stat: no start time in field 22"),
        ("proc/42/status", "Name:\ta\n", r"recording HOST: proc/42/status: no line `Uid:`; copy it"),
        ("proc/stat", "cpu 1 2\n", r"recording HOST: proc/stat: no line `btime`; copy it"),
    ],
)
def test_garbage_of_proc_is_one_line_that_names_the_file(path, text, message) -> None:
    with pytest.raises(RecordingError, match=message):
        host(PROC | {path: text})


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), min_size=1, max_size=15)
FACTS = st.builds(
    ProcessFacts,
    pid=st.integers(1, 1 << 22),
    created=st.integers(10**11, 2 * 10**11).map(lambda ticks: ticks / 100),
    command=NAMES,
    user=st.one_of(
        st.just("root"),
        st.integers(1, 10**9).map(str),
        st.from_regex(r"[a-z_][a-z0-9_-]{0,30}", fullmatch=True),
    ),
    cgroups=st.just("0::/a.slice\n"),
)


@given(st.lists(FACTS, max_size=5, unique_by=lambda one: one.pid))
def test_printed_processes_are_read_as_they_were(facts) -> None:
    files = print_processes({one.pid: one for one in facts})
    found = read_processes(tree_of(files), "HOST")
    assert {pid: one._replace(created=0) for pid, one in found.items()} == {
        one.pid: one._replace(created=0) for one in facts
    }
    for one in facts:
        assert found[one.pid].created == pytest.approx(one.created, abs=0.006)


COUNTS = st.integers(0, 2**64 - 1)
TEXTS = st.text(max_size=10)
KINDS = {
    ObjectKind.QUEUE_PAIR: ("port", "number", "remote", "type", "state"),
    ObjectKind.CONNECTION: ("port", "number", "type", "state", "peer"),
    ObjectKind.MEMORY_REGION: ("size",),
    ObjectKind.COMPLETION_QUEUE: (),
    ObjectKind.CONTEXT: (),
}


@st.composite
def objects(draw: st.DrawFn) -> RdmaObject:
    kind = draw(st.sampled_from(ObjectKind))
    made = {
        "port": draw(COUNTS),
        "number": draw(COUNTS),
        "remote": draw(COUNTS),
        "type": draw(TEXTS),
        "state": draw(TEXTS),
        "size": draw(COUNTS),
        "peer": draw(st.one_of(st.just(""), st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str))),
    }
    owner = draw(st.one_of(st.builds(dict, pid=st.integers(1, 1 << 22)), st.builds(dict, kernel=TEXTS)))
    if ":" in made["peer"]:
        made["peer"] = made["peer"].partition("%")[0]
    return RdmaObject(kind, **owner, **{name: made[name] for name in KINDS[kind]})


@given(objects(), TEXTS)
def test_printed_objects_are_read_as_they_were(one, comm) -> None:
    row = {"ifindex": 0, "ifname": "rxe0"} | print_object(one, comm if one.pid else "")
    kernel = recorded(**{f"resource__{one.kind.value}": [row]})
    assert listed(kernel, RXE0, one.kind) == [one]


RAW = st.text(min_size=1, max_size=20).filter(
    lambda name: name not in {"ifindex", "ifname", "port", "cntn", "qp-type", "pid", "comm", "lqpn"}
)


@given(
    st.builds(
        CounterSet, COUNTS, COUNTS, st.integers(0, 1 << 22), TEXTS, st.dictionaries(RAW, COUNTS, max_size=4)
    )
)
def test_printed_counter_sets_are_read_as_they_were(one) -> None:
    row = {"ifname": "rxe0"} | print_counter_set(one, "a")
    assert recorded(statistic__qp=[row]).counter_sets(RXE0, one.port) == (one,)
