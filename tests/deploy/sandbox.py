"""Run Python under the restrictions of a unit file: `sandbox.py UNIT USER ENVIRONMENT ARGUMENT...`.

The closest approximation to systemd where it is not PID 1. It applies the system call filter, with the lists that
systemd's own tool prints, the address families, the capability set, NoNewPrivileges, MemoryDenyWriteExecute, the
read-only file system and PrivateUsers (or, without it, the one capability of the unit). It omits the settings that need control groups or PID 1, and the hiding of
files. ENVIRONMENT is a virtual environment.
"""

import ctypes
import errno
import os
import pwd
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_SET_MDWE = (
    4,
    8,
    24,
    38,
    47,
    65,
)
PR_CAP_AMBIENT_RAISE = 2
CAPABILITY_VERSION = 0x20080522
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
EQUAL = 4
"""SCMP_CMP_EQ of libseccomp, whose newer constants are not in any header that Python reads."""

FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16, "AF_PACKET": 17}
CAPABILITIES = {"CAP_NET_RAW": 13}
"""Those that a unit may keep here."""
LIBC = ctypes.CDLL(None, use_errno=True)


class Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`: which argument, how, and with what value."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


class Rule(NamedTuple):
    """What happens to a system call, if its arguments compare so."""

    call: str
    compared: tuple[Comparison, ...] = ()
    action: int = ALLOW


def unit_lines(unit: str) -> dict[str, list[str]]:
    """The values of every key, in order; an empty value clears the earlier ones, as in systemd."""
    lines: dict[str, list[str]] = {}
    for line in Path(unit).read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            lines[key] = [*lines.get(key, []), value] if value else []
    return lines


def system_calls(words: list[str]) -> set[str]:
    """The calls that these values of SystemCallFilter allow."""
    allowed: set[str] = set()
    for value in words:
        named = {call for word in value.lstrip("~").split() for call in _expanded(word)}
        allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed | set(_expanded("@default"))


def _expanded(name: str) -> Iterator[str]:
    if not name.startswith("@"):
        yield name
        return
    command = ["systemd-analyze", "syscall-filter", "--no-pager", name]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            yield from _expanded(word)


def filter_calls(allowed: set[str], families: list[str]) -> None:
    """Allow only these system calls, and sockets of these families, from here on.

    Raises:
        OSError: the kernel or libseccomp refused.
    """
    calls = [Rule(call) for call in allowed - {"socket"}]
    sockets = [Rule("socket", (Comparison(0, EQUAL, FAMILIES[family], 0),)) for family in families]
    load_filter([*calls, *sockets])


def load_filter(rules: list[Rule]) -> None:
    """From here on do what these rules say, and refuse all other system calls with EPERM.

    Raises:
        OSError: the kernel or libseccomp refused.
    """
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(REFUSE))
    for rule in rules:
        # a call that this architecture does not have is negative
        if (number := seccomp.seccomp_syscall_resolve_name(rule.call.encode())) >= 0:
            compared = (Comparison * len(rule.compared))(*rule.compared)
            result = seccomp.seccomp_rule_add_array(
                context, rule.action, number, len(rule.compared), compared
            )
            check(result, f"seccomp_rule_add {rule.call}")
    check(seccomp.seccomp_load(context), "seccomp_load")


def close_the_file_system(shown: list[str]) -> None:
    """Make everything read-only, and keep these folders accessible to all users, wherever they are."""
    check(LIBC.unshare(CLONE_NEWNS), "unshare")
    check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    _show(shown)
    with Path("/proc/self/mounts").open() as mounts:
        places = [line.split()[1].encode().decode("unicode_escape") for line in mounts]
    for place in places:
        if not place.startswith(("/proc", "/dev")):
            # a mount that cannot be remounted is below another mount, where it is not reachable either
            LIBC.mount(None, place.encode(), None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)


def _show(folders: list[str]) -> None:
    held = [(folder, os.open(folder, os.O_PATH)) for folder in folders]
    for folder, descriptor in held:
        closed = [place for place in reversed(Path(folder).parents) if not place.stat().st_mode & 1]
        if closed:
            check(LIBC.mount(b"none", bytes(closed[0]), b"tmpfs", 0, b"mode=755"), f"cover {closed[0]}")
        if closed or not Path(folder).exists():
            Path(folder).mkdir(parents=True)
            source = f"/proc/self/fd/{descriptor}".encode()
            check(LIBC.mount(source, folder.encode(), None, MS_BIND, None), f"show {folder}")
        os.close(descriptor)


def become(user: str, capabilities: list[str]) -> None:
    """Become this user, with these capabilities; without any, in a user namespace that has no other user.

    Raises:
        KeyError: a capability that cannot be tested here.
    """
    kept = {CAPABILITIES[name] for name in capabilities}
    for capability in set(range(64)) - kept:
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    check(LIBC.prctl(PR_SET_KEEPCAPS, int(bool(kept)), 0, 0, 0), "PR_SET_KEEPCAPS")
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    if kept:
        keep(kept)
        return
    LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # otherwise /proc/self remains root's after the change of user
    check(LIBC.unshare(CLONE_NEWUSER), "PrivateUsers")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{entry.pw_gid} {entry.pw_gid} 1")
    Path("/proc/self/uid_map").write_text(f"{entry.pw_uid} {entry.pw_uid} 1")


def keep(capabilities: set[int]) -> None:
    """Have these capabilities and no other, also in the program that is executed: capset(2), PR_CAP_AMBIENT.

    Raises:
        OSError: the kernel refused.
    """
    bits = sum(1 << capability for capability in capabilities)
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    # effective, permitted and inheritable: of capabilities 0 to 31, then of the others
    check(LIBC.capset(header, struct.pack("=6I", bits, bits, bits, 0, 0, 0)), "capset")
    for capability in capabilities:
        check(LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0), "PR_CAP_AMBIENT")


def check(result: int, what: str) -> None:
    """Do nothing if a call of the C library or libseccomp succeeded.

    Raises:
        OSError: it failed; `what` names it.
    """
    if result:
        number = abs(result) if result != -1 else ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main() -> None:
    """Apply the restrictions and run the program."""
    unit, user, environment, *arguments = sys.argv[1:]
    lines = unit_lines(unit)
    allowed = system_calls(lines["SystemCallFilter"])
    families = " ".join(lines["RestrictAddressFamilies"]).split()
    close_the_file_system([str(Path(environment).resolve()), sys.base_prefix])
    become(user, " ".join(lines.get("AmbientCapabilities", [])).split())
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "NoNewPrivileges")
    if LIBC.prctl(PR_SET_MDWE, 1, 0, 0, 0):
        sys.stderr.write("this kernel is older than 6.3: MemoryDenyWriteExecute is not tried\n")
    filter_calls(allowed, families)
    python = f"{environment}/bin/python"
    os.execv(python, [python, *arguments])  # noqa: S606 - it becomes the program


if __name__ == "__main__":
    main()
