"""Raw names that are deliberately no metric, each with the reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from roce_exporter.catalog.row import ANY, HW_COUNTERS


class LeftOut(NamedTuple):
    """Names of one dialect that match a regular expression as a whole, and why they are left out."""

    dialect: str
    pattern: re.Pattern[str]
    reason: str


def _of(dialect: str, pattern: str, reason: str) -> LeftOut:
    return LeftOut(dialect, re.compile(pattern), reason)


LEFT_OUT = (
    _of(ANY, "lifespan", "a setting: for how many milliseconds the kernel may serve a cached value"),
    _of(
        "mlx5",
        "vport_.+",
        "the same counter of the VF or SF behind a representor, read on that function itself",
    ),
    _of("bnxt_re", "active_.+", "objects in use, which RDMA netlink tells as roce_resource_*"),
    _of(
        "bnxt_re",
        "watermark_.+|.+_watermark",
        "the most that was ever in use: max_over_time of roce_resource_*",
    ),
    _of(
        "bnxt_re",
        "max_(qp|cq|mr|pd|srq|ah|mw)s?|hw_retransmission|fw_service_prof_type_sup",
        "a limit or an ability, which never changes",
    ),
    _of("bnxt_re", "link_state", "the state of the link, which roce_port_state tells"),
    _of("bnxt_re", "db_fifo_register|dbq_dbr_fifo_reg", "the raw content of a register"),
    _of("bnxt_re", "resize_cq_cnt|te_bypassed", "activity that says nothing about health"),
    _of(
        "irdma",
        "RetransSegs|InOptErrors|InProtoErrors|InSegs|OutSegs",
        "TCP segments: iWARP, not RoCE",
    ),
    _of(
        "hns",
        "rx_buffer|trp_rx_sof|cq_cqe|cq_poe|cq_notify",
        "internals without a documented unit or meaning",
    ),
    _of("mana", "current_rate", "a rate in device units that are not documented"),
    _of(
        "efa",
        "submitted_cmds|completed_cmds|keep_alive_rcvd|alloc_.+_err|create_.+_err|reg_mr_err|mmap_err",
        "administration by the driver: an application sees the error itself",
    ),
)


def left_out(dialect: str, source: str, raw: str) -> str:
    """Why this raw name is deliberately no metric; empty when it is not."""
    if source == HW_COUNTERS:
        for entry in LEFT_OUT:
            if entry.dialect in (ANY, dialect) and entry.pattern.fullmatch(raw):
                return entry.reason
    return ""
