"""Flags and help of `roce-exporter counters`."""

from __future__ import annotations

import argparse
import re

from roce_exporter.cli.shared_flags import add_log_flags
from roce_exporter.host.kernel.counter_set_netlink import BY_PID, BY_TYPE

CRITERIA = {"type": BY_TYPE, "pid": BY_PID}

HELP = """\
Show or change how the kernel makes counter sets of queue pairs. This is the only command that changes a setting of the
host. Counters per process (roce_owner_*_total) need counter sets; `serve` reads them and never switches them on.

what `enable` changes
  For each port, the kernel gives each thread that creates queue pairs (pid), each type of queue pair (type), or each
  combination (type,pid) its own set of hardware counters. mlx5 and ionic have them. Other drivers accept the mode and make
  no sets. The setting is lost with the device: the udev rule in deploy/systemd sets it again.
for which queue pairs
  Those of user processes that go from RESET to INIT afterwards. Queue pairs that exist, and those of the kernel (NVMe, NFS,
  iSER), are not counted. Start jobs after `enable`.
what it costs
  A NIC has a limited number of sets; a queue pair for which none is left works, and is counted by the port only. Each read of
  a port's counters queries all its sets.
never add them up
  The counters of a port include those of its sets, also of sets that no longer exist.
how to undo it
  `roce-exporter counters disable`. New queue pairs then get no set. Existing sets remain until their queue pairs are
  destroyed, and until then the kernel rejects another `enable` (EBUSY). It also does while sets made by hand exist
  ("rdma statistic qp show").

exit status
  0: done; 1: a port could not be changed or read, or no device matches; 2: invalid flags
"""


def add_counter_flags(parser: argparse.ArgumentParser) -> None:
    """The action, the ports, and what the sets are made by."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = HELP
    parser.add_argument(
        "action",
        choices=("show", "enable", "disable"),
        help="show: print the mode of every port and its number of sets; enable, disable: change it (needs CAP_NET_ADMIN)",
    )
    parser.add_argument(
        "--auto",
        dest="auto",
        type=_criteria,
        default=BY_TYPE | BY_PID,
        metavar="CRITERIA",
        help="with enable: make a set per type, pid, or type,pid (type,pid)",
    )
    parser.add_argument(
        "--optional-counters",
        dest="optional",
        action="store_true",
        help="with enable: sets also have the port's optional counters (CNPs, marks, bytes of mlx5; Linux 6.15) that `rdma "
        "statistic set link DEVICE/PORT optional-counters NAMES` has enabled before",
    )
    for flag, meaning in (("include", "only"), ("exclude", "no")):
        parser.add_argument(
            f"--device.{flag}",
            dest=f"device_{flag}",
            type=_device_pattern,
            metavar="REGEX",
            help=f"{meaning} devices whose full name matches REGEX",
        )
    add_log_flags(parser)


def criteria_text(mask: int) -> str:
    """The criteria as `rdma statistic` prints them."""
    return ",".join(name for name, bit in CRITERIA.items() if mask & bit)


def _criteria(text: str) -> int:
    names = text.split(",")
    if not set(names) <= set(CRITERIA):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of type, pid, or type,pid")
    return sum(CRITERIA[name] for name in set(names))


def _device_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid regular expression: {error}") from None
