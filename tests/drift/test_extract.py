"""The extraction: it reads the names from C, and stops at unknown tables, formats and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import extract
import pytest
from drivers import ETHTOOL, HW_COUNTERS, PLACES, Place
from tools import need

pytestmark = pytest.mark.ci

RXE = "drivers/infiniband/sw/rxe/rxe_hw_counters.c"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel tree with only the folders that every tree has, and the RDMA core's names."""
    need("cpp")
    for folder in {Path(file).parent for place in PLACES for file in place.files}:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    write(tmp_path, "drivers/infiniband/core/sysfs.c", "static PORT_PMA_ATTR(symbol_error, 0, 16, 32);\n")
    return tmp_path


def write(tree: Path, file: str, text: str) -> None:
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(text)


MACROS = """
#include <linux/nothing.h>
#define STAT(name) { #name, 0 }
#define QUEUE(name) { "rx%d_"#name, 0 }
#define PRIO(n) STAT(pfc_pri##n##_us)
static const struct desc table[] = { STAT(rx_packets), QUEUE(bytes), PRIO(0), PRIO(1), };
"""
OPTIONS = """
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
FUNCTION = """
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
WORDS = 'static const struct d pfc[] = { { "rx_%s_pause" } };'
NO_COUNTERS = (
    'static const char x_priv_flags[][32] = { "a" }; static const char x_tests_str_arr[][9] = { "b" };'
)
TABLE = {"table": ("{name}",)}


@pytest.mark.parametrize(
    ("text", "more", "names"),
    [
        pytest.param(
            MACROS,
            {"others": TABLE},
            ["rx_packets", "rx{queue}_bytes", "pfc_pri0_us", "pfc_pri1_us"],
            id="macros",
        ),
        pytest.param(OPTIONS, {"others": TABLE}, ["optional", "module"], id="all options are on"),
        pytest.param(
            FUNCTION,
            {"others": {"ring": ("[{queue}]: {name}",)}, "formats": ("[%d]: %s",)},
            [
                "[{queue}]: packets",
                "tx_priority_{priority}_xon",
                "rx_{queue}_coalesced_{entry}",
                "alone",
            ],
            id="formats of functions",
        ),
        pytest.param(
            WORDS,
            {"others": {"pfc": ("{name}",)}, "words": {"pfc": ("prio{priority}", "global")}},
            ["rx_prio{priority}_pause", "rx_global_pause"],
            id="words",
        ),
        pytest.param(NO_COUNTERS, {}, [], id="private flags and self-tests"),
    ],
)
def test_names_of_a_file(tree: Path, text: str, more: dict[str, Any], names: list[str]) -> None:
    write(tree, "x.c", text)
    assert list(extract._of_place(tree, Place("x", ETHTOOL, ("x.c",), **more))) == names


@pytest.mark.parametrize(
    ("text", "others", "message"),
    [
        ('static const char fresh[][32] = { "rx_new" };', {}, "x.c: table fresh with 'rx_new'"),
        ('void x_strings(u8 *b)\n{\n ethtool_sprintf(&b, "new %s", s);\n}\n', {}, "x.c: format 'new %s'"),
        ('static const char table[][32] = { "rx_%s_pause" };', TABLE, "x.c: 'rx_%s_pause' of table"),
    ],
)
def test_an_unknown_table_stops_the_extraction(
    tree: Path, text: str, others: dict[str, Any], message: str
) -> None:
    write(tree, "x.c", text)
    with pytest.raises(extract.UnknownError) as caught:
        list(extract._of_place(tree, Place("x", ETHTOOL, ("x.c",), others)))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "drivers/infiniband/hw/newnic/stats.c",
            "static const struct rdma_stat_desc descs[] = {};",
            "drivers/infiniband/hw/newnic/stats.c: a file with names of counters",
        ),
        (
            "drivers/infiniband/sw/siw/siw_main.c",
            ".alloc_hw_port_stats = siw_alloc,",
            "siw: it has hardware counters now",
        ),
        (
            RXE,
            'static const struct rdma_stat_desc fresh[] = { [A].name = "sent_pkts" };',
            f"{RXE}: table fresh with 'sent_pkts'",
        ),
    ],
)
def test_the_command_stops_at_something_new(
    tree: Path, file: str, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, file, text)
    assert extract.main([str(tree)]) == 1
    assert tuple(capsys.readouterr()) == ("", f"extract: unknown to drivers.py: {message}\n")


def test_the_command_prints_a_list(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, RXE, 'static const struct rdma_stat_desc rxe_counter_descs[] = { [A].name = "sent_pkts" };')
    assert extract.main([str(tree)]) == 0
    printed = "driver\tsource\tname\nib_core\tcounters\tsymbol_error\nrxe\thw_counters\tsent_pkts\n"
    assert capsys.readouterr().out == printed


def test_every_place_is_of_a_driver_and_a_source() -> None:
    assert {one.source for one in PLACES} == {HW_COUNTERS, ETHTOOL}
    assert all(set(one.words) <= set(one.tables) for one in PLACES)
