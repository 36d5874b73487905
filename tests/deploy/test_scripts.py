"""The scripts of deploy/ are valid, and shellcheck has nothing to say about them."""

import pytest
from deploy_tools import DEPLOY, ran
from tools import need

SCRIPTS = sorted(
    path
    for path in DEPLOY.rglob("*")
    if path.is_file() and path.read_bytes().startswith((b"#!/bin/sh\n", b"#!/bin/bash\n"))
)


def test_each_script_is_shell() -> None:
    assert len(SCRIPTS) >= 15
    for script in SCRIPTS:
        done = ran("sh" if script.read_text().startswith("#!/bin/sh") else "bash", "-n", script)
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.nightly
def test_shellcheck_has_nothing_to_say() -> None:
    done = ran(need("shellcheck"), "--severity=warning", *SCRIPTS)
    assert (done.returncode, done.stdout) == (0, "")
