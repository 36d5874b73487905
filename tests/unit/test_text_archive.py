"""A recorded host as a text: what each line means, what is refused and how, and that everything is the same after a round trip."""

import errno
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.host.recorded import archive, tree
from roce_exporter.host.recorded.archive import FIRST, LAST, load_tree, print_tree, read_text, write_tree
from roce_exporter.host.recorded.capture import capture
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.recorded.tree import PATH_BYTES, READ_BYTES, RecordingError, Tree, collect_tree

STATS = b"NIC statistics:\n     rx_bytes: 5\n     tx_bytes: 6\n"
BASE = f"{FIRST}\nsys/a: 1\nsys/bin = base64\n|/w==\nsys/s =\n|{STATS.decode().strip().replace(chr(10), chr(10) + '|')}\n{LAST}\n"


def read(*lines: str, base: str = BASE) -> Tree:
    def read_base(name: str) -> Tree:
        assert name == "other-1.x"
        return read_text(io.BytesIO(base.encode()), read_base)

    return read_text(io.BytesIO("\n".join((FIRST, *lines, LAST, "")).encode()), read_base)


@pytest.mark.parametrize(
    ("lines", "content"),
    [
        (("sys/a: 9000",), {"sys/a": b"9000\n"}),
        (("sys/a:  : -> = ! ",), {"sys/a": b" : -> = ! \n"}),
        (("sys/0000:3b:00.0/a: x: y",), {"sys/0000:3b:00.0/a": b"x: y\n"}),
        (("# why", "sys/a =", "# b: 1", "a =", "|1", "|", "| 2"), {"sys/a": b"", "a": b"1\n\n 2\n"}),
        (("a =", "\\1", "b =", "|1", "\\2", "c =", "|"), {"a": b"1", "b": b"1\n2", "c": b"\n"}),
        (("a =", "|\tä|\\", "||"), {"a": "\tä|\\\n|\n".encode()}),
        (("a = base64", "|/wAH", "|CQ=="), {"a": b"\xff\0\7\t"}),
        (("a -> ../b", 'c -> "d e"'), {"a": "../b", "c": "d e"}),
        (("a ! EINVAL", "b ! 524"), {"a": errno.EINVAL, "b": 524}),
        (('"a b": 1', '"a\\udcff\\n" =', '"- c" ! EIO'), {"a b": b"1\n", "a\udcff\n": b"", "- c": errno.EIO}),
        (("base: 1", "end: 2", "base1 -> x"), {"base": b"1\n", "end": b"2\n", "base1": "x"}),
        (("@ 0", "a: 1", "b: 2", "@ 3", "- b", "@ 12", "a: 3"), {"0/a": b"1\n", "0/b": b"2\n", "3/a": b"1\n", "12/a": b"3\n"}),
        (("a: 1", "@ 0", "b: 2"), {"a": b"1\n", "0/b": b"2\n"}),
        (
            ("@ 0", "s =", *(f"|{line}" for line in STATS.decode().splitlines()), "@ 1", "s ~", "|     tx_bytes: 7"),
            {"0/s": STATS, "1/s": STATS.replace(b"6", b"7")},
        ),
        (("base other-1.x", "- sys/bin", "sys/a ! EIO", "7/b: 1"), {"sys/a": errno.EIO, "sys/s": STATS, "7/b": b"1\n"}),
        (("base other-1.x", "sys/s ~", "|     rx_bytes:8", "sys/bin: 1", "- sys/a"), {"sys/s": STATS.replace(b" 5", b"8"), "sys/bin": b"1\n"}),
    ],
)  # fmt: skip
def test_lines_mean_files_links_and_errors(lines, content) -> None:
    assert read(*lines).content() == content


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("sys/a 1",), "line 2: not `PATH: LINE` or another form"),
        (("sys/a:1",), "line 2: not `PATH: LINE`"),
        (("",), "line 2: not `PATH: LINE`"),
        (("-a: 1",), "line 2: not `PATH: LINE`"),
        (("a = base32",), "line 2: not `PATH: LINE`"),
        (("a: 1", "base other-1.x"), "line 3: .*only the second line is `base NAME`"),
        (("base ../other",), "line 2: .*only the second line is `base NAME`"),
        (("base /etc/passwd",), "line 2: not `PATH: LINE`"),
        (("a: 1", "b: 2", "a -> x"), "line 4: a path that is named above; remove one"),
        (("a: 1", '"a" ='), "line 3: a path that is named above"),
        (("base other-1.x", "- sys/a", "sys/a: 1"), "line 4: a path that is named above"),
        (("- a",), "line 2: not in the base or the moment before; remove the line"),
        (("base other-1.x", "- sys/b"), "line 3: not in the base"),
        (("@ 0", "a: 1", "@ 1", "- b"), "line 5: not in the base or the moment before"),
        *(((f'"{path}": 1',), "line 2: not a path below the host") for path in ("/a", "../a", "a/../b", "a//b", "a/", ".", "./a", "..")),
        *(((f"{path}: 1",), "line 2: not the name of a file") for path in ('""', '"a\\u0000"', '"\\ud800"', '"\\x"')),
        (("a -> /b", 'b -> "\\ud800"'), "line 3: not the name of a file, or not a string of JSON"),
        (("3/a: 1",), "line 2: a path in a moment; write `@ 3`, then the path without the number"),
        *((("@ 1", f"@ {number}"), "line 3: not a number above the last; number") for number in ("1", "0", "02", "x", "-1", "")),
        (("base other-1.x", "@ 1"), "line 3: a moment in a text with a base; write `1/PATH`"),
        (("a: 1", "|b"), "line 2: lines of content follow; write `PATH =` before them"),
        (("@ 0", "\\b"), "line 2: lines of content follow"),
        (("a =", "\\1", "|2"), "line 2: a line with .* is not the last; write | before it"),
        (("a = base64", "|x"), "line 2: not base64; write the lines that `base64 FILE` prints"),
        (("a = base64", "|????"), "line 2: not base64"),
        (("a ~", "|1"), "line 2: not a file in the base or the moment before; write all of it"),
        (("base other-1.x", "sys/s ~", "|     xx_bytes: 1"), "line 3: 0 lines of the file begin as `|     xx_bytes"),
        (("base other-1.x", "sys/s ~", "|     rx_bytes: 1", "|     rx_bytes: 2"), "line 3: 0 lines of the file"),
        (("base other-1.x", "sys/s ~", "\\     rx_bytes: 1"), "line 3: 1 lines of the file"),
        (("@ 0", "a =", "|b: 1", "|b: 2", "@ 1", "a ~", "|b: 3"), "line 7: 2 lines of the file begin as `|b: 3`; write all"),
        (("a ! EWHAT",), "line 2: EWHAT is not an error of Linux; write its name, as EINVAL, or its number"),
        (("a ! errorcode",), "line 2: errorcode is not an error"),
        (("a ! 0",), "line 2: 0 is not an error"),
        (("a: 1\r",), "line 2: not printable; end lines as on Unix, and write such content as `PATH = base64`"),
        (("a =", "|b\x07"), "line 3: not printable"),
        (("a: 1", "b: " + "x" * READ_BYTES), f"line 3: over {READ_BYTES} bytes; write such content as `PATH = base64`"),
        (("a: 1", LAST, "b: 1"), "line 4: follows `end`; remove it, or move `end` to the last line"),
        (("a: 1", LAST), "line 4: follows `end`"),
        (("a: 1", "a/b: 2"), "^a is a folder and a file or link; remove one of them"),
        (("a/b/c -> x", "a/b -> x"), "^a/b is a folder and a file or link"),
        (("a" * (PATH_BYTES + 1) + ": 1",), "line 2: not `PATH: LINE`"),
        ((f'"{"ab" * PATH_BYTES}": 1',), f"a path of more than {PATH_BYTES} bytes"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_line_is_named_with_its_number_and_the_remedy(lines, message) -> None:
    with pytest.raises(RecordingError, match=message) as caught:
        read(*lines)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"recording 2\nend\n", "line 1: not `recording 1`, the form that this version reads; update"),
        (b"recording 1\nend", "line 2: not a whole line; copy the file again, or add the line end"),
        (b"recording 1\na: 1\n", "line 3: the last line `end` is missing; copy the file again, or add it"),
        (b"recording 1\na =\n|1\n", "line 3: the last line `end` is missing"),
        (b"recording 1\na: \xff\nend\n", "line 2: not UTF-8; write such content as `PATH = base64`"),
        (b"recording 1\r\nend\r\n", "line 1: not printable; end lines as on Unix"),
        (b"recording 1", "line 1: not a whole line"),
    ],
)
def test_a_file_that_is_no_whole_text_is_refused_with_its_name(tmp_path, content, message) -> None:
    (tmp_path / "h.txt").write_bytes(content)
    with pytest.raises(RecordingError, match=f"^recording {tmp_path}/h.txt: {message}"):
        load_tree(str(tmp_path / "h.txt"))


def test_sizes_are_limited_before_anything_is_kept(monkeypatch) -> None:
    for name, lines in (("MAX_BYTES", ("a = base64", *("|" + "x" * 50,) * 30)), ("MAX_PATHS", ("#",) * 1001)):
        monkeypatch.setattr(archive, name, 1000)
        message = (
            "over 64 MiB; a recorded host" if name == "MAX_BYTES" else "over 1000 lines; a recorded host"
        )
        with pytest.raises(RecordingError, match=rf"^{message}"):
            read(*lines)
        monkeypatch.undo()


def test_moments_and_bases_count_with_what_they_repeat(monkeypatch) -> None:
    moments = tuple(f"@ {number}" for number in range(1, 100))
    monkeypatch.setattr(tree, "MAX_PATHS", 150)
    assert len(read("@ 0", "a: 1", *moments).files) == 100
    with pytest.raises(RecordingError, match="or over 150 paths"):
        read("@ 0", "a: 1", "b: 1", *moments)
    monkeypatch.setattr(tree, "MAX_BYTES", 100)
    with pytest.raises(RecordingError, match="a recorded host is far smaller"):
        read("@ 0", "a: 12", *moments)


def write(folder: Path, name: str, *lines: str) -> None:
    (folder / f"{name}.txt").write_text("\n".join((FIRST, *lines, LAST, "")))


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (None, "line 2: base other.txt: no such file in the same folder; copy it there"),
        (("base third",), "line 2: base other.txt: line 2: a base with a base; name third in its place"),
        (("a: 1", "|"), "line 2: base other.txt: line 2: lines of content follow"),
    ],
)
def test_a_base_is_one_level_deep_in_the_same_folder(tmp_path, base, message) -> None:
    write(tmp_path, "host", "base other", "b: 2")
    if base:
        write(tmp_path, "other", *base)
    with pytest.raises(RecordingError, match=f"^recording .*/host.txt: {message}"):
        load_tree(str(tmp_path / "host.txt"))
    write(tmp_path, "other", "a: 1")
    assert load_tree(str(tmp_path / "host.txt")).files == {"a": b"1\n", "b": b"2\n"}


def test_a_base_that_is_a_link_is_not_read(tmp_path) -> None:
    (tmp_path / "inside").mkdir()
    write(tmp_path, "other", "a: 1")
    write(tmp_path / "inside", "host", "base other")
    (tmp_path / "inside/other.txt").symlink_to("../other.txt")
    with pytest.raises(RecordingError, match=r"base other\.txt: no such file in the same folder"):
        load_tree(str(tmp_path / "inside/host.txt"))


STATE = "sys/class/infiniband/mlx5_0/ports/1/state"


def test_a_recorded_error_is_raised_where_the_host_raised_it(tmp_path) -> None:
    write(
        tmp_path,
        "host",
        f"{STATE} ! EINVAL",
        "ethtool/eth0.stats ! ETIMEDOUT",
        "proc/sys/kernel/hostname ! 524",
    )
    kernel = load_recording(str(tmp_path / "host.txt"))
    kernel.begin()
    assert kernel.entries("class/infiniband/mlx5_0/ports/1") == ("state",)
    reads = {
        errno.EINVAL: lambda: kernel.text("class/infiniband/mlx5_0/ports/1/state"),
        errno.ETIMEDOUT: lambda: kernel.ethtool_statistics("eth0"),
        524: kernel.hostname,
    }
    for number, call in reads.items():
        with pytest.raises(OSError, match=re.escape(f"[Errno {number}]")) as caught:
            call()
        assert type(caught.value) is not archive.RecordingError
        assert caught.type.__name__ != "Absent"
    (seen,) = kernel.open_files(["class/infiniband/mlx5_0/ports/1/state"]).read()
    assert isinstance(seen, OSError)
    assert seen.errno == errno.EINVAL


def test_an_error_where_none_is_played_is_refused(tmp_path) -> None:
    write(tmp_path, "host", "@ 0", "sys/a: 1", "rdma/dev.json ! EPERM")
    with pytest.raises(
        RecordingError, match=r"rdma/dev.json: only reads below sys/, proc/sys/ and ethtool/ can fail"
    ):
        load_recording(str(tmp_path / "host.txt"))


NAMES = st.one_of(
    st.sampled_from(["a", "b", "sys", "0", "1", "12", "00", "a:", "a b", "-", "@", "#", "|", "=", "end", "base", "ä", "\\", '"', "\udcff", "a\n"]),
    st.text(max_size=4).filter(lambda name: name not in ("", ".", "..") and not {"/", "\0"} & set(name)),
).filter(lambda name: not any(0xD800 <= ord(one) < 0xDC80 or 0xDCFF < ord(one) < 0xE000 for one in name))  # fmt: skip
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.sampled_from(
    ["", "a: 1", "a: 2", "b: 1", "b: 2", " c: 3", "c", "\t", "|", "\\", "ä ", "\r", "\x0c", "\u2028"]
)
CONTENT = st.one_of(
    st.lists(LINES, max_size=5).map(lambda lines: "\n".join(lines).encode()),
    st.lists(LINES, max_size=5).map(lambda lines: "".join(f"{line}\n" for line in lines).encode()),
    st.binary(max_size=200),
    PATHS,
    st.integers(1, 600),
)
FILES = st.dictionaries(PATHS, CONTENT, max_size=8)


def without_conflicts(content: dict[str, Any]) -> Tree:
    return collect_tree(
        (path, one) for path, one in content.items() if path not in collect_tree(content.items()).folders
    )


@given(FILES, FILES, st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_tree_is_the_same_after_a_round_trip(content, other, kept) -> None:
    """As moments, as a host with a base that has some of its files, and as it is."""
    base = without_conflicts(
        other | {path: one for (path, one), keep in zip(content.items(), kept, strict=False) if keep}
    )
    for whole in (
        without_conflicts(content),
        without_conflicts(
            {f"{n}/{path}": one for n, part in enumerate((content, other)) for path, one in part.items()}
        ),
    ):
        for text in (print_tree(whole), print_tree(whole, "other", base)):
            again = read_text(io.BytesIO(text.encode()), lambda _: base)
            assert (again.content(), again.folders) == (whole.content(), whole.folders)
            assert all(len(line) < 1000 for line in text.splitlines())


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (STATS, STATS.replace(b"5", b"7"), ["s ~", "|     rx_bytes: 7"]),
        (STATS, STATS.replace(b"tx", b"xx"), ["s =", "|NIC statistics:", "|     rx_bytes: 5", "|     xx_bytes: 6"]),
        (b"a: 1\na: 2\nb: 3\n", b"a: 1\na: 5\nb: 3\n", ["s =", "|a: 1", "|a: 5", "|b: 3"]),
        (b"a: 1\nb: 3\n", b"a: 2\nb: 4\n", ["s =", "|a: 2", "|b: 4"]),
        (b"0\n", b"1\n", ["s: 1"]),
        (b"0\n", b"\n", ["s =", "|"]),
        (b"0\n", b"1", ["s =", "\\1"]),
        (b"0\n", b"\0", ["s = base64", "|AA=="]),
        (b"0\n", "../t", ["s -> ../t"]),
        (b"0\n", errno.EIO, ["s ! EIO"]),
        (b"0\n", 524, ["s ! 524"]),
    ],
)  # fmt: skip
def test_a_difference_has_as_few_lines_as_are_safe(before, after, lines) -> None:
    text = print_tree(collect_tree([("s", after)]), "other", collect_tree([("s", before)]))
    assert text.splitlines() == [FIRST, "base other", *lines, LAST]


def test_what_is_over_a_limit_of_the_reader_is_written_in_another_way() -> None:
    large = b"a: 1\n" + b"".join(b"%d\n" % number for number in range(200_000))
    assert len(large) > READ_BYTES
    before = collect_tree([("large", large), ("line", b"")])
    after = collect_tree([("large", large.replace(b"a: 1", b"a: 2")), ("line", b"x" * READ_BYTES)])
    text = print_tree(after, "other-1.x", before)
    assert text.startswith(f"{FIRST}\nbase other-1.x\nlarge =\n|a: 2\n|0\n")
    assert read_text(io.BytesIO(text.encode()), lambda _: before).content() == after.content()
    with pytest.raises(RecordingError, match="line 3: not a file in the base or the moment before"):
        read_text(io.BytesIO(f"{FIRST}\nbase other\nlarge ~\n|a: 2\n{LAST}\n".encode()), lambda _: before)


def test_moments_are_written_by_number() -> None:
    text = print_tree(collect_tree((f"{number}/a", b"1\n") for number in (10, 2, 0)))
    assert text.splitlines() == [FIRST, "@ 0", "a: 1", "@ 2", "@ 10", LAST]


@pytest.mark.parametrize("form", ["h", "h.tar.gz", "h.txt"])
async def test_every_form_holds_the_same(tmp_path, form) -> None:
    whole = collect_tree(
        {"sys/a": b"\xff\0", "sys/l": "../x y", "1/b c": b"", "1/d": b"1", "é": b"\n"}.items()
    )
    await write_tree(whole, str(tmp_path / form))
    again = load_tree(str(tmp_path / form))
    prefix = "host/" if form == "h.tar.gz" else ""
    assert again.content() == {prefix + path: one for path, one in whole.content().items()}


@pytest.mark.parametrize("form", ["h", "h.tar.gz", "h.txt"])
async def test_nothing_is_written_through_a_link(tmp_path, form) -> None:
    whole = collect_tree({"a": str(tmp_path / "outside"), "a/b": b"x"}.items())
    with pytest.raises(RecordingError, match="a is a folder and a file or link"):
        await write_tree(whole, str(tmp_path / form))
    assert not os.listdir(tmp_path)


DEVICE = "sys/class/infiniband/mlx5_0"
HOST = (
    f"{DEVICE}/board_id ! EACCES",
    f"{DEVICE}/node_type: 1: CA",
    f"{DEVICE}/ports/1/state: 4: ACTIVE",
    f"{DEVICE}/ports/1/counters/symbol_error ! EINVAL",
    f"{DEVICE}/ports/1/counters/port_rcv_data: 5",
    f"{DEVICE}/device -> ../../../devices/0000:3b:00.0",
    "sys/devices/0000:3b:00.0/driver -> ../../bus/pci/drivers/mlx5_core",
    "sys/devices/0000:3b:00.0/net/eth0 -> ../../../class/net/eth0",
    "sys/class/net/eth0/mtu: 9000",
    "ethtool/eth0.stats ! ETIMEDOUT",
)


@pytest.mark.parametrize(("form", "failed"), [("c.txt", {"board_id", "symbol_error", "eth0.stats"}), ("c.tgz", set()), ("c", set())])  # fmt: skip
async def test_capture_records_reads_that_fail_in_a_text(tmp_path, form, failed) -> None:
    write(tmp_path, "host", *HOST)
    summary = await capture(load_recording(str(tmp_path / "host.txt")), str(tmp_path / form), 1, 1.0)
    assert ", 3 failed reads (only a .txt contains them); " in str(summary)
    captured = load_tree(str(tmp_path / form))
    found = {path.rpartition("/")[2]: number for path, number in captured.errors.items()}
    assert found.keys() == failed
    assert set(found.values()) <= {errno.EACCES, errno.EINVAL, errno.ETIMEDOUT}
    prefix = "host/" if form == "c.tgz" else ""
    assert captured.files[f"{prefix}{DEVICE}/ports/1/counters/port_rcv_data"] == b"5\n"
    assert f"{prefix}sys/class/net/eth0/duplex" not in captured.content()


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_has_no_end_is_no_recording(kind, tmp_path) -> None:
    place = tmp_path / "fifo"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    with pytest.raises(RecordingError, match="is neither a folder nor a regular file"):
        load_recording(str(place))
