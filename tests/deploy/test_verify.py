"""verify.sh accepts what the owner of a key signed, and says in one line why it refuses anything else."""

from __future__ import annotations

import hashlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from deploy_tools import DEPLOY, need
from release_keys import Keys, keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = DEPLOY / "release/verify.sh"


@pytest.fixture(scope="module")
def owner() -> Iterator[Keys]:
    with keys() as made:
        yield made


@pytest.fixture(scope="module")
def other() -> Iterator[Keys]:
    with keys() as made:
        yield made


@pytest.fixture(params=["gpgv", "gpg"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder for the PATH that has one of the two programs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    names = (
        "awk",
        "base64",
        "basename",
        "cat",
        "cp",
        "dirname",
        "grep",
        "mktemp",
        "rm",
        "sed",
        "sh",
        "sha256sum",
    )
    for name in (*names, str(request.param)):
        (folder / name).symlink_to(need(name, name))
    return folder


@pytest.fixture
def download(tmp_path: Path, owner: Keys) -> Path:
    """A folder with a signed file of 3 bytes and its public key."""
    folder = tmp_path / "download"
    folder.mkdir()
    (folder / "a b.pyz").write_bytes(b"abc")
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(b'abc').hexdigest()}  a b.pyz\n")
    owner.sign(folder)
    owner.public(tmp_path / "key.asc")
    return folder


def verified(tools: Path, *arguments: str | Path) -> tuple[int, str]:
    """The exit code, and the only line of the output."""
    environment = {"PATH": str(tools), "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    command = [SCRIPT, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    (line,) = (done.stdout + done.stderr).splitlines()
    assert bool(done.stderr) == bool(done.returncode)
    return done.returncode, line.replace("verify.sh: ", "")


@pytest.mark.parametrize("armour", [True, False], ids=["text", "binary"])
def test_a_signed_file_is_verified(
    tools: Path, download: Path, owner: Keys, tmp_path: Path, armour: bool
) -> None:
    key = owner.public(tmp_path / "given.key", armour=armour)
    file = download / "a b.pyz"
    assert verified(tools, f"--key={key}", file) == (0, f"{file}: verified")


def test_a_changed_file_is_refused(tools: Path, download: Path, tmp_path: Path) -> None:
    file = download / "a b.pyz"
    file.write_bytes(b"abd")
    code, line = verified(tools, f"--key={tmp_path}/key.asc", file)
    assert (code, line) == (1, f"{file} was changed: its SHA-256 is not that in {download}/SHA256SUMS")


def test_a_file_without_an_entry_is_refused(tools: Path, download: Path, tmp_path: Path) -> None:
    """Also if its name is the end of another name, or a pattern."""
    for name in ("b.pyz", "a.b.pyz"):
        (download / name).write_bytes(b"abc")
        code, line = verified(tools, f"--key={tmp_path}/key.asc", download / name)
        assert (code, line) == (1, f"{download}/{name} is not in {download}/SHA256SUMS")


def test_a_changed_list_is_refused(tools: Path, download: Path, tmp_path: Path) -> None:
    (download / "a b.pyz").write_bytes(b"abd")
    (download / "SHA256SUMS").write_text(f"{hashlib.sha256(b'abd').hexdigest()}  a b.pyz\n")
    code, line = verified(tools, f"--key={tmp_path}/key.asc", download / "a b.pyz")
    assert (code, line) == (1, f"{download}/SHA256SUMS was changed after it was signed")


def test_another_key_is_refused(tools: Path, download: Path, other: Keys, tmp_path: Path) -> None:
    key = other.public(tmp_path / "other.asc")
    code, line = verified(tools, f"--key={key}", download / "a b.pyz")
    assert (code, line) == (1, f"{download}/SHA256SUMS is signed with another key than {key}")


def test_no_signature_is_refused(tools: Path, download: Path, tmp_path: Path) -> None:
    (download / "SHA256SUMS.asc").unlink()
    code, line = verified(tools, f"--key={tmp_path}/key.asc", download / "a b.pyz")
    assert (code, line) == (1, f"{download}/SHA256SUMS.asc is missing: these files are not signed")


def test_a_signature_of_garbage_is_refused(tools: Path, download: Path, tmp_path: Path) -> None:
    (download / "SHA256SUMS.asc").write_text("signed, really\n")
    code, line = verified(tools, f"--key={tmp_path}/key.asc", download / "a b.pyz")
    assert (code, line) == (1, f"{download}/SHA256SUMS.asc is not a valid signature of {download}/SHA256SUMS")


def test_an_expired_signature_is_refused(tools: Path, download: Path, tmp_path: Path) -> None:
    with keys("--faked-system-time=20190101T000000") as old:
        old.sign(download, "--faked-system-time=20200101T000000", "--default-sig-expire=1d")
        key = old.public(tmp_path / "old.asc")
    code, line = verified(tools, f"--key={key}", download / "a b.pyz")
    assert (code, line) == (1, f"the signature of {download}/SHA256SUMS has expired")


def test_a_missing_program_and_a_key_that_is_none_are_named(
    tools: Path, download: Path, tmp_path: Path
) -> None:
    file = download / "a b.pyz"
    code, line = verified(tools, f"--key={tmp_path}/absent", file)
    assert (code, line) == (2, f"cannot read the key {tmp_path}/absent")
    assert verified(tools, file) == (2, "usage: verify.sh --key=PUBLIC_KEY FILE...")
    for name in ("gpg", "gpgv"):
        (tools / name).unlink(missing_ok=True)
    assert verified(tools, f"--key={tmp_path}/key.asc", file) == (2, "neither gpgv nor gpg is installed")
