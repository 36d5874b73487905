"""`roce-exporter tool namespaces`: the helper with CAP_SYS_ADMIN that reports the RDMA devices of other network namespaces."""

import argparse
import contextlib
import grp
import logging
import os
import time

from roce_exporter.cli.daemon import READY, STOPPING, notify, stop_event
from roce_exporter.cli.options import OptionError
from roce_exporter.host_sources.namespace_helper import NamespaceHelper, check_entry, open_helper

LOG = logging.getLogger(__name__)


async def namespaces(options: argparse.Namespace) -> int:
    """Report until SIGTERM or SIGINT. Raises OptionError: no CAP_SYS_ADMIN, no such group, or the socket cannot be made."""
    try:
        check_entry()
    except OSError as error:
        raise OptionError(
            f"network namespaces cannot be entered: {error.strerror}; run this as root, or give it CAP_SYS_ADMIN"
        ) from None
    stop = stop_event()
    helper = NamespaceHelper(options.namespaces_folder, time.monotonic)
    path = options.rdma_namespaces
    name = options.namespaces_group
    try:
        group = grp.getgrnam(name).gr_gid if name else -1
        server = await open_helper(helper, path, group)
    except KeyError:
        raise OptionError(f"--namespaces.group={name}: no such group") from None
    except OSError as error:
        remedy = "; choose a path in a folder that exists" if isinstance(error, FileNotFoundError) else ""
        raise OptionError(f"--rdma.namespaces={path}: {error.strerror or error}{remedy}") from None
    folder = options.namespaces_folder
    LOG.info("reports the RDMA devices of the network namespaces in %s on %s", folder, path)
    notify(READY)
    async with server:
        await stop.wait()
        notify(STOPPING)
    with contextlib.suppress(FileNotFoundError):  # from Python 3.13 on asyncio removes it
        os.unlink(path)
    return 0
