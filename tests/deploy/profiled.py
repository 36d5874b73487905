"""Run a command under a seccomp profile in the format of container engines: `profiled.py PROFILE COMMAND ARGUMENT...`.

It loads the filter as the last step before the command, as runc and crun do if the process may gain no privileges. The parser is
not theirs.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox import ALLOW, EQUAL, LIBC, PR_SET_NO_NEW_PRIVS, Comparison, Rule, check, load_filter

ERRNO = 0x00050000
ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
OPERATORS = {"SCMP_CMP_EQ": EQUAL, "SCMP_CMP_MASKED_EQ": 7}


def rules(profile: dict[str, Any]) -> Iterator[Rule]:
    """One rule per name and entry of the profile, whose default is EPERM.

    Raises:
        ValueError: the profile is for no such machine, or has another default.
    """
    if (profile["defaultAction"], profile["defaultErrnoRet"]) != ("SCMP_ACT_ERRNO", 1):
        raise ValueError("the default is not EPERM")
    if ARCHITECTURES[os.uname().machine] not in profile["architectures"]:
        raise ValueError(f"{os.uname().machine} is not in the profile")
    for entry in profile["syscalls"]:
        action = ERRNO | entry["errnoRet"] if entry["action"] == "SCMP_ACT_ERRNO" else ALLOW
        compared = tuple(
            Comparison(one["index"], OPERATORS[one["op"]], one["value"], one.get("valueTwo", 0))
            for one in entry.get("args", ())
        )
        for name in entry["names"]:
            yield Rule(name, compared, action)


def main() -> None:
    """Load the profile and run the command."""
    path, *command = sys.argv[1:]
    every = list(rules(json.loads(Path(path).read_text())))
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "NoNewPrivileges")
    load_filter(every)
    os.execv(command[0], command)  # noqa: S606 - it becomes the program


if __name__ == "__main__":
    main()
