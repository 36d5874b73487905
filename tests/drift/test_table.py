"""The tables of names per driver and kernel in the documents are those of the lists and the catalogue."""

from __future__ import annotations

import pytest
from series import CORE, SERIES, Named, names_of
from table import DOCUMENTS, MODULES, ROOT, by_driver, fate, filled, share


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_table_is_drawn_from_the_lists(document: str) -> None:
    """Rewrite it with `python tests/drift/table.py`."""
    assert (ROOT / document).read_text() == filled(document)


def test_every_driver_has_a_line() -> None:
    assert {named.driver for series in SERIES for named in names_of(series)} == set(MODULES)


def test_a_name_is_counted_by_its_fate() -> None:
    one = Named("bnxt_re", "hw_counters", "np_cnp_pkts")
    left, fresh = one._replace(name="rp_cnp_ignored"), one._replace(name="fresh")
    assert [fate(named) for named in (one, left, fresh)] == ["mapped", "left out", "open"]
    assert fate(Named(CORE, "counters", "symbol_error")) == "mapped"
    assert str(share([one, left, fresh, one])) == "4: 2 + 1"
    assert str(share([])) == "-"


def test_the_table_ends_with_the_sum() -> None:
    total = share(names_of(SERIES[0]))
    assert by_driver().splitlines()[-1].split(" | ")[1] == str(total)
