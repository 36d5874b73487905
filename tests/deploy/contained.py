"""Run the command of an image as an engine would: `contained.py ROOT CONFIG ARGUMENT...`; CONFIG is its OCI configuration as JSON.

Read-only root, read-only /sys of the host, a /proc, the host's network, the image's user by number, no capability, no
new privileges. Control groups and other namespaces are not applied. Nothing is installed in ROOT, and none of this
machine's files are reachable.
"""

import json
import os
import sys

from sandbox import (
    CLONE_NEWNS,
    LIBC,
    MS_BIND,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    check,
)


def close(root: str) -> None:
    """Enter the root file system, with no writable place.

    Raises:
        OSError: a mount failed.
    """
    check(LIBC.unshare(CLONE_NEWNS), "unshare")
    check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    for source, place in ((root, root), ("/sys", f"{root}/sys")):
        check(LIBC.mount(source.encode(), place.encode(), None, MS_BIND, None), place)
        check(
            LIBC.mount(None, place.encode(), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None),
            f"{place} read-only",
        )
    check(LIBC.mount(b"proc", f"{root}/proc".encode(), b"proc", 0, None), "proc")
    os.chroot(root)
    os.chdir("/")


def main() -> None:
    """Apply the restrictions and run the command."""
    root, text, *arguments = sys.argv[1:]
    config = json.loads(text)
    user, group = (int(part) for part in config["User"].split(":"))
    environment = dict(entry.split("=", 1) for entry in config["Env"])
    if "NOTIFY_SOCKET" in os.environ:
        environment["NOTIFY_SOCKET"] = os.environ["NOTIFY_SOCKET"]
    close(root)
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    command = [*config["Entrypoint"], *(arguments or config["Cmd"])]
    os.execve(command[0], command, environment)  # noqa: S606 - the image has no shell


if __name__ == "__main__":
    main()
