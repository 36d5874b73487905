"""A fault in the kernel costs only its own series, and recovery is automatic.

The errors are the kernel's own: a driver returns them to the ioctl, the netlink or the sysfs code of Linux, which
treats them as it treats those of a real card.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import Exporter, about, value, wait_until

SICK, WELL = "mlx5_0", "bnxt_re0"

NAMES = {
    "rdma": "roce_cnp_sent_total",
    "port": "roce_port_receive_bytes_total",
    "state": "roce_port_up",
    "leg0/ethtool": "roce_pfc_receive_frames_total",
    "leg0/dcb": "roce_pfc_enabled",
}
"""For each table a metric that depends on it."""

FAULTS = [
    ("rdma", "EIO"),
    ("rdma", "EINVAL"),
    ("rdma", "ENODEV"),
    ("rdma", "ETIMEDOUT"),
    ("port", "EIO"),
    ("state", "EIO"),
    ("leg0/access", "EIO"),
    ("leg0/access", "ENODEV"),
    ("leg0/ethtool", "EIO"),
    ("leg0/dcb", "EIO"),
]


@pytest.fixture(autouse=True)
def _repaired(cards) -> Iterator[None]:
    """Any fault that a test leaves is removed."""
    yield
    nic = cards[SICK]
    for table in (*map(nic.table, ("rdma", "port", "state")), *map(nic.leg, ("access", "ethtool", "dcb"))):
        table.break_with("none")


def families(samples: dict[str, float]) -> set[str]:
    return {series.partition("{")[0] for series in samples}


def lives(samples: dict[str, float], table: str) -> bool:
    """Whether the metric that depends on a table is exported for the faulty device."""
    metric = NAMES["leg0/ethtool" if table == "leg0/access" else table]
    return any(series.startswith(metric + "{") for series in about(samples, SICK))


@pytest.mark.parametrize(("table", "fault"), FAULTS, ids="-".join)
def test_an_error_costs_its_source_and_nothing_else(cards, exporter, table, fault) -> None:
    before = exporter.scrape()
    assert lives(before, table)
    with cards[SICK].table(table).broken(fault):
        broken = exporter.scrape()
        assert not lives(broken, table)
        assert families(about(broken, WELL)) >= families(about(before, WELL))
        others = [
            one for one in NAMES if one not in (table, "leg0/ethtool" if table == "leg0/access" else table)
        ]
        assert [one for one in others if not lives(broken, one) and table != "leg0/access"] == []
    wait_until(lambda: families(about(exporter.scrape(), SICK)) >= families(about(before, SICK)))


def test_an_error_of_the_counters_is_reported(cards, exporter) -> None:
    """Broken is not absent: a table that fails is a source that is down, with the errno in its message."""
    with cards[SICK].table("rdma").broken("EIO"):
        samples = exporter.scrape()
        assert value(samples, "roce_exporter_source_up", device=SICK, source="hw_counters") == 0
        states = [
            one for one in exporter.snapshot()["sources"] if one["device"] == SICK and one["state"] == "down"
        ]
        assert states
        assert all(one["error"] for one in states)
    assert value(exporter.scrape(), "roce_exporter_source_up", device=SICK, source="hw_counters") == 1


def test_one_counter_that_fails_costs_itself(cards) -> None:
    """In sysfs every counter is a separate file, and in a directory of twenty-nine one EIO costs one series."""
    exporter = Exporter("--collect.timeout=3", "--sampler.mode=off", through=("unshare", "--mount", "--"))
    # RDMA netlink queries the driver for its first counter, so it fails as a whole, and sysfs takes over.
    broken = cards[SICK].table("rdma")
    assert next(iter(broken.values())) == "duplicate_request"
    with broken.broken("duplicate_request EIO"):
        samples = exporter.scrape()
        assert value(samples, "roce_transport_duplicate_requests_total", device=SICK) is None
        assert value(samples, "roce_cnp_sent_total", device=SICK) is not None
        assert value(samples, "roce_exporter_unreadable_values", device=SICK, source="hw_counters") == 1
    assert exporter.stop() == 0


@pytest.mark.parametrize("table", ["rdma", "port", "state", "leg0/ethtool", "leg0/dcb"])
def test_a_query_that_hangs_costs_one_device(cards, exporter, table) -> None:
    """The scrape is still answered, the other device's RDMA counters are present, and everything recovers after release.

    A hang in ethtool or DCB holds the RTNL, the lock of all network configuration: no process on the host can then
    query any network device. RDMA counters need no RTNL and must not be affected.
    """
    before = exporter.scrape()
    cards[WELL].table("rdma").set({"max_retry_exceeded": 4711})
    with cards[SICK].table(table).broken("hang"):
        for _ in range(3):
            hung = exporter.scrape(timeout=30)
            assert value(hung, "roce_transport_retries_exceeded_total", device=WELL) == 4711
            assert value(hung, "roce_exporter_source_up", device=WELL, source="hw_counters") == 1
    wait_until(lambda: families(about(exporter.scrape(), SICK)) >= families(about(before, SICK)))


def test_a_card_that_resets_is_reported_as_absent_and_comes_back(cards, exporter) -> None:
    """While firmware resets, mlx5 detaches its network device: every query gets ENODEV."""
    before = exporter.scrape()
    cards[SICK].leg("link").set({"detached": 1})
    away = exporter.scrape()
    assert not lives(away, "leg0/ethtool")
    assert lives(away, "rdma")
    cards[SICK].leg("link").set({"detached": 0})
    wait_until(lambda: families(about(exporter.scrape(), SICK)) >= families(about(before, SICK)))


def test_no_query_is_made_twice_in_a_scrape(cards, exporter) -> None:
    """One RDMA netlink query returns all counters of a port; every other way would query the firmware again."""
    exporter.scrape()
    before = cards[SICK].table("rdma").queries()
    exporter.scrape()
    assert cards[SICK].table("rdma").queries() - before == 1


def test_without_debugfs_no_series_is_lost(cards, exporter) -> None:
    """No series of the exporter needs debugfs: a sandbox that hides it loses none."""
    hidden = Exporter(
        "--sampler.mode=off",
        through=(
            "unshare", "--mount", "--",
            "sh", "-c", 'umount /sys/kernel/debug && exec "$@"', "sh",
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
        ),
    )  # fmt: skip
    assert not Path(f"/proc/{hidden.process.pid}/root/sys/kernel/debug/rocelab").exists()
    known = {
        name for name in families(about(exporter.scrape(), SICK)) if not name.startswith("roce_exporter")
    }
    # the owners of a new exporter appear after its first survey, for which no scrape waits
    wait_until(lambda: families(hidden.scrape()) >= known)
    assert hidden.stop() == 0
