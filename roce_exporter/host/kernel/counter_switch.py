"""Switch on and off that the kernel makes counter sets of queue pairs.

The only module of the package that changes anything on a host. `roce-exporter counters` imports it, the daemon never does
(tests/contract/test_observe_only.py). Follows `nldev_stat_set_doit` in drivers/infiniband/core/nldev.c and
`rdma_counter_set_auto_mode` in counters.c next to it. Needs CAP_NET_ADMIN in the initial user namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.counter_set_netlink import (
    MODE_AUTO,
    STAT_AUTO_MODE_MASK,
    STAT_MODE,
    STAT_OPTIONAL,
    CounterMode,
    encode_question,
)
from roce_exporter.host.kernel.netlink import decode_values, encode_attribute, encode_u32, only_payload
from roce_exporter.host.kernel.rdma_netlink import NLDEV, check_device

if TYPE_CHECKING:
    from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
    from roce_exporter.model import RdmaDevice

STAT_SET = NLDEV | 16


OFF = CounterMode(MODE_AUTO, 0)
"""Without criteria the kernel makes no sets."""


def switch_counter_sets(rdma: RdmaNetlink, device: RdmaDevice, port: int, wanted: CounterMode) -> None:
    """Let the kernel make a counter set per type and process of queue pairs, as `wanted.mask` says; none with `OFF`.

    Only queue pairs of processes that go from RESET to INIT afterwards are bound. Sets that exist remain until their
    queue pairs are destroyed. Kernels before 6.15 ignore `wanted.optional`; `read_counter_mode` returns the mode then in use.

    Raises:
        PermissionError: EPERM, CAP_NET_ADMIN is missing.
        OSError: EOPNOTSUPP, the driver has no counters per port; EBUSY, sets of another mode exist; EINVAL, the kernel
            has no sets, or not of this mask; ENODEV, the device was removed.
    """
    change = encode_u32(STAT_MODE, MODE_AUTO) + encode_u32(STAT_AUTO_MODE_MASK, wanted.mask)
    if wanted.optional:
        change += encode_attribute(STAT_OPTIONAL, b"\x01")
    rdma.request(
        STAT_SET,
        encode_question(device, port) + change,
        lambda answers: check_device(decode_values(only_payload(answers)), device),
    )
