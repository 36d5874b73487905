"""The extraction: it reads the names from C, and stops at unknown tables, formats and files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import extract
import pytest
from drivers import ETHTOOL, HW_COUNTERS, PLACES, Place

RXE = "drivers/infiniband/sw/rxe/rxe_hw_counters.c"


@pytest.fixture(autouse=True)
def _cpp() -> None:
    if shutil.which("cpp") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("cpp is not installed; CI needs it")
        pytest.skip("cpp is not installed (apt-get install cpp)")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel tree with only the folders that every tree has, and the RDMA core's names."""
    for folder in {Path(file).parent for place in PLACES for file in place.files}:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    core = tmp_path / "drivers/infiniband/core"
    core.mkdir()
    (core / "sysfs.c").write_text("static PORT_PMA_ATTR(symbol_error, 0, 16, 32);\n")
    return tmp_path


def write(tree: Path, file: str, text: str) -> None:
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(text)


def place(**more: object) -> Place:
    return Place("x", ETHTOOL, ("x.c",), **more)  # type: ignore[arg-type]  # the test writes the fields out


def of(tree: Path, text: str, **more: object) -> list[str]:
    write(tree, "x.c", text)
    return list(extract._of_place(tree, place(**more)))


def test_macros_make_names(tree: Path) -> None:
    text = """
    #include <linux/nothing.h>
    #define STAT(name) { #name, 0 }
    #define QUEUE(name) { "rx%d_"#name, 0 }
    #define PRIO(n) STAT(pfc_pri##n##_us)
    static const struct desc table[] = { STAT(rx_packets), QUEUE(bytes), PRIO(0), PRIO(1), };
    """
    assert of(tree, text, tables={"table": ("{name}",)}) == [
        "rx_packets",
        "rx{queue}_bytes",
        "pfc_pri0_us",
        "pfc_pri1_us",
    ]


def test_options_of_the_configuration_are_on(tree: Path) -> None:
    text = """
    static const char table[][32] = {
    #ifdef CONFIG_SOME_OPTION
      "optional",
    #endif
    #if IS_ENABLED(CONFIG_OTHER)
      "module",
    #endif
    #ifndef CONFIG_SOME_OPTION
      "never",
    #endif
    };
    """
    assert of(tree, text, tables={"table": ("{name}",)}) == ["optional", "module"]


def test_formats_of_functions_that_write_strings(tree: Path) -> None:
    text = """
    static const char * const ring[] = { "packets" };
    static void x_get_strings(struct net_device *dev, u8 *buf)
    {
        ethtool_sprintf(&buf, "[%d]: %s", i, ring[j]);
        ethtool_sprintf(&buf, "tx_priority_%u_xon", i);
        ethtool_sprintf(&p,
                "rx_%d_coalesced_%d", i, j);
        ethtool_puts(&buf, "alone");
    }
    static int other(void) { return sprintf(buf, "%d volts", v); }
    """
    assert of(tree, text, tables={"ring": ("[{queue}]: {name}",)}, formats=("[%d]: %s",)) == [
        "[{queue}]: packets",
        "tx_priority_{priority}_xon",
        "rx_{queue}_coalesced_{entry}",
        "alone",
    ]


def test_words_fill_a_table(tree: Path) -> None:
    text = 'static const struct d pfc[] = { { "rx_%s_pause" } };'
    words = {"pfc": ("prio{priority}", "global")}
    assert of(tree, text, tables={"pfc": ("{name}",)}, words=words) == [
        "rx_prio{priority}_pause",
        "rx_global_pause",
    ]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ('static const char fresh[][32] = { "rx_new" };', {}, "x.c: table fresh with 'rx_new'"),
        (
            'void x_get_strings(u8 *b)\n{\n ethtool_sprintf(&b, "new %s", s);\n}\n',
            {},
            "x.c: format 'new %s'",
        ),
        (
            'static const char t[][32] = { "rx_%s_pause" };',
            {"tables": {"t": ("{name}",)}},
            "x.c: 'rx_%s_pause' of t",
        ),
    ],
)
def test_an_unknown_table_stops_the_extraction(
    tree: Path, text: str, more: dict[str, object], message: str
) -> None:
    with pytest.raises(extract.UnknownError) as caught:
        of(tree, text, **more)
    assert str(caught.value) == message


def test_private_flags_and_self_tests_are_not_counters(tree: Path) -> None:
    text = 'static const char x_priv_flags[][32] = { "a" }; static const char x_tests_str_arr[][9] = { "b" };'
    assert of(tree, text) == []


def test_a_new_file_with_names_stops_the_extraction(tree: Path) -> None:
    write(tree, "drivers/infiniband/hw/newnic/stats.c", "static const struct rdma_stat_desc descs[] = {};")
    with pytest.raises(extract.UnknownError, match=r"newnic/stats\.c: a file with names of counters"):
        list(extract.names(tree))


def test_a_driver_that_gets_counters_stops_the_extraction(tree: Path) -> None:
    write(tree, "drivers/infiniband/sw/siw/siw_main.c", ".alloc_hw_port_stats = siw_alloc,")
    with pytest.raises(extract.UnknownError, match="siw: it has hardware counters now"):
        list(extract.names(tree))


def test_the_command_prints_a_list(tree: Path) -> None:
    write(tree, RXE, 'static const struct rdma_stat_desc rxe_counter_descs[] = { [A].name = "sent_pkts" };')
    command = [sys.executable, extract.__file__, str(tree)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == ("driver\tsource\tname\nib_core\tcounters\tsymbol_error\nrxe\thw_counters\tsent_pkts\n")


def test_the_command_names_an_unknown_table(tree: Path) -> None:
    write(tree, RXE, 'static const struct rdma_stat_desc fresh[] = { [A].name = "sent_pkts" };')
    command = [sys.executable, extract.__file__, str(tree)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == f"extract: unknown to drivers.py: {RXE}: table fresh with 'sent_pkts'\n"


def test_every_place_is_of_a_driver_and_a_source() -> None:
    assert {one.source for one in PLACES} == {HW_COUNTERS, ETHTOOL}
    assert all(set(one.port) <= set(one.tables) and set(one.words) <= set(one.tables) for one in PLACES)
