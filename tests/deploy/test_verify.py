"""verify.sh accepts what the owner of a key signed, and says in one line why it refuses anything else."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, ran
from release_keys import Keys, keys
from tools import need

pytestmark = pytest.mark.ci  # gpg

PROGRAMS = [
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
]


@pytest.fixture(scope="module")
def owners() -> Iterator[tuple[Keys, Keys]]:
    """Two keys: of the owner, and of another."""
    with keys() as owner, keys() as other:
        yield owner, other


@pytest.fixture(params=["gpgv", "gpg"])
def tools(request, tmp_path) -> Path:
    """A folder for the PATH that has one of the two programs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in (*PROGRAMS, str(request.param)):
        (folder / name).symlink_to(need(name))
    return folder


@pytest.fixture
def file(tmp_path, owners) -> Path:
    """A signed file of 3 bytes; its public key is in the folder above."""
    folder = tmp_path / "download"
    folder.mkdir()
    (folder / "a b.pyz").write_bytes(b"abc")
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(b'abc').hexdigest()}  a b.pyz\n")
    owners[0].sign(folder)
    owners[0].public(tmp_path / "key.asc")
    return folder / "a b.pyz"


def verified(tools: Path, *arguments: str | Path) -> tuple[int, str]:
    """The exit code, and the only line of the output."""
    environment = {"PATH": str(tools), "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    done = ran(DEPLOY / "release/verify.sh", *arguments, env=environment)
    (line,) = (done.stdout + done.stderr).splitlines()
    assert bool(done.stderr) == bool(done.returncode)
    return done.returncode, line.replace("verify.sh: ", "")


@pytest.mark.parametrize("armour", [True, False], ids=["text", "binary"])
def test_a_signed_file_is_verified(tools, file, owners, tmp_path, armour) -> None:
    key = owners[0].public(tmp_path / "given.key", armour=armour)
    assert verified(tools, f"--key={key}", file) == (0, f"{file}: verified")


def changed_file(file: Path) -> None:
    file.write_bytes(b"abd")


def changed_list(file: Path) -> None:
    file.write_bytes(b"abd")
    (file.parent / "SHA256SUMS").write_text(f"{hashlib.sha256(b'abd').hexdigest()}  {file.name}\n")


def no_signature(file: Path) -> None:
    (file.parent / "SHA256SUMS.asc").unlink()


def garbage(file: Path) -> None:
    (file.parent / "SHA256SUMS.asc").write_text("signed, really\n")


def expired(file: Path) -> None:
    with keys("--faked-system-time=20190101T000000") as old:
        old.sign(file.parent, "--faked-system-time=20200101T000000", "--default-sig-expire=1d")
        old.public(file.parents[1] / "key.asc")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed_file, "{file} was changed: its SHA-256 is not that in {sums}"),
        (changed_list, "{sums} was changed after it was signed"),
        (no_signature, "{sums}.asc is missing: these files are not signed"),
        (garbage, "{sums}.asc is not a valid signature of {sums}"),
        (expired, "the signature of {sums} has expired"),
    ],
)
def test_what_was_changed_is_refused(tools, file, change, said) -> None:
    change(file)
    expected = said.format(file=file, sums=file.parent / "SHA256SUMS")
    assert verified(tools, f"--key={file.parents[1]}/key.asc", file) == (1, expected)


def test_a_file_without_an_entry_is_refused(tools, file, tmp_path) -> None:
    """Also if its name is the end of another name, or a pattern."""
    for name in ("b.pyz", "a.b.pyz"):
        other = file.with_name(name)
        other.write_bytes(b"abc")
        expected = f"{other} is not in {file.parent}/SHA256SUMS"
        assert verified(tools, f"--key={tmp_path}/key.asc", other) == (1, expected)


def test_another_key_is_refused(tools, file, owners, tmp_path) -> None:
    key = owners[1].public(tmp_path / "other.asc")
    expected = f"{file.parent}/SHA256SUMS is signed with another key than {key}"
    assert verified(tools, f"--key={key}", file) == (1, expected)


def test_a_missing_program_and_a_key_that_is_none_are_named(tools, file, tmp_path) -> None:
    assert verified(tools, f"--key={tmp_path}/absent", file) == (2, f"cannot read the key {tmp_path}/absent")
    assert verified(tools, file) == (2, "usage: verify.sh --key=PUBLIC_KEY FILE...")
    for name in ("gpg", "gpgv"):
        (tools / name).unlink(missing_ok=True)
    assert verified(tools, f"--key={tmp_path}/key.asc", file) == (2, "neither gpgv nor gpg is installed")
