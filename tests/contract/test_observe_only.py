"""The exporter observes only: no module has a request of netlink that changes a setting of the host."""

import ast
from collections import defaultdict

from package_modules import MODULES, nodes

CHANGING = {
    "RDMA_NLDEV_CMD_SET": 2,
    "RDMA_NLDEV_CMD_NEWLINK": 3,
    "RDMA_NLDEV_CMD_DELLINK": 4,
    "RDMA_NLDEV_CMD_SYS_SET": 7,
    "RDMA_NLDEV_CMD_STAT_SET": 16,
    "RDMA_NLDEV_CMD_STAT_DEL": 18,
    "RDMA_NLDEV_CMD_NEWDEV": 27,
    "RDMA_NLDEV_CMD_DELDEV": 28,
}
"""Requests of RDMA netlink that change something (include/uapi/rdma/rdma_netlink.h)."""


def test_no_module_has_requests_that_change_something() -> None:
    """Every `NLDEV | NUMBER` is a request."""
    sent: dict[str, set[int]] = defaultdict(set)
    for module in MODULES:
        for node in nodes(module):
            match node:
                case ast.BinOp(
                    left=ast.Name(id="NLDEV") | ast.Attribute(attr="NLDEV"), right=ast.Constant(value=number)
                ):
                    sent[module.stem].add(number)
    changing = {name: found for name in sent if (found := sent[name] & set(CHANGING.values()))}
    assert changing == {}
    assert {1, 5, 9, 17, 24} <= sent["rdma_netlink"], "requests that read are found"
    assert {10, 11, 12, 13, 22} <= sent["object_netlink"]
