"""Limits of a device: what the exporter reads through uverbs is what `ibv_devinfo` prints, and no context stays open."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import Exporter, value
from nic import kernel, run

DEVICE = "rxe_lim"


@pytest.fixture(scope="module", autouse=True)
def _rxe() -> Iterator[None]:
    run("modprobe", "rdma_rxe")
    run("rdma", "link", "add", DEVICE, "type", "rxe", "netdev", "lo")
    yield
    run("rdma", "link", "del", DEVICE)


def needs_context() -> bool:
    """Whether RDMA netlink does not report limits, as Linux 7.3 does and 6.12 does not."""
    return kernel() < (7, 3)


def printed() -> dict[str, int]:
    """The limits as rdma-core prints them."""
    lines = re.findall(r"^\s*max_(qp|cq|mr):\s+(\d+)$", run("ibv_devinfo", "-v", "-d", DEVICE), re.MULTILINE)
    assert len(lines) == 3
    return {kind: int(most) for kind, most in lines}


def held(exporter: Exporter) -> list[str]:
    """The files of uverbs that the exporter has open."""
    folder = Path(f"/proc/{exporter.process.pid}/fd")
    names = [os.readlink(file) for file in folder.iterdir() if file.is_symlink()]
    return [name for name in names if "infinibandevent" in name or name.startswith("/dev/infiniband")]


def test_limits_are_those_of_ibv_devinfo_and_the_context_is_closed() -> None:
    exporter = Exporter("--owners.limits", "--sampler.mode=off")
    try:
        samples = exporter.scrape()
        found = {
            kind: value(samples, f"roce_resource_{kind}_limit", device=DEVICE) for kind in ("qp", "cq", "mr")
        }
        assert found == printed()
        assert value(samples, "roce_exporter_source_up", device=DEVICE, source="limits") == 1
        assert value(exporter.scrape(), "roce_resource_ctx", device=DEVICE) == 0
        assert held(exporter) == []
    finally:
        assert exporter.stop() == 0


def test_without_the_option_no_context_is_opened() -> None:
    exporter = Exporter("--sampler.mode=off")
    try:
        samples = exporter.scrape()
        assert value(samples, "roce_resource_qp", device=DEVICE) is not None
        limit = None if needs_context() else printed()["qp"]
        assert value(samples, "roce_resource_qp_limit", device=DEVICE) == limit
        source = None if needs_context() else 1
        assert value(samples, "roce_exporter_source_up", device=DEVICE, source="limits") == source
        assert held(exporter) == []
    finally:
        assert exporter.stop() == 0


def test_a_device_that_may_not_be_opened_is_a_failure_of_that_source_alone() -> None:
    if not needs_context():
        pytest.skip("this kernel reports limits without a context")
    (name,) = [
        place.name
        for place in Path("/sys/class/infiniband_verbs").glob("uverbs*")
        if (place / "ibdev").read_text().strip() == DEVICE
    ]
    node = Path("/dev/infiniband") / name
    mode = node.stat().st_mode
    node.chmod(0o600)
    exporter = Exporter("--owners.limits", "--sampler.mode=off")
    try:
        samples = exporter.scrape()
        assert value(samples, "roce_exporter_source_up", device=DEVICE, source="limits") == 0
        assert value(samples, "roce_resource_qp", device=DEVICE) is not None
    finally:
        assert exporter.stop() == 0
        node.chmod(mode)
