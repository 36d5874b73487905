"""OpenPGP keys that are thrown away after a test."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import need


class Keys:
    """A home of gpg with a key of each name that may sign."""

    def __init__(self, home: Path, names: tuple[str, ...], *options: str) -> None:
        self.home = home
        for name in names:
            make = ("--passphrase=", *options, "--quick-generate-key", name)
            self.run(*make, "ed25519", "sign", "never")

    def run(self, *arguments: str | Path) -> bytes:
        """What gpg prints."""
        command = [need("gpg"), f"--homedir={self.home}", "--batch", "--yes", "--quiet", *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def public(self, place: Path, *, armour: bool = True) -> Path:
        """The public key, as text or as it is."""
        place.write_bytes(self.run(*(["--armor"] if armour else []), "--export"))
        return place

    def sign(self, folder: Path, *options: str) -> None:
        """Sign the hashes of a folder."""
        sums = folder / "SHA256SUMS"
        self.run(*options, "--armor", f"--output={sums}.asc", "--detach-sign", sums)


@contextmanager
def keys(*options: str, names: tuple[str, ...] = ("Test <test@example.com>",)) -> Iterator[Keys]:
    """Keys in a folder with a short name: the name of the agent's socket has a limit."""
    with tempfile.TemporaryDirectory(prefix="gpg", ignore_cleanup_errors=True) as home:
        Path(home).chmod(0o700)
        try:
            yield Keys(Path(home), names, *options)
        finally:
            subprocess.run(["gpgconf", f"--homedir={home}", "--kill", "all"], check=False)
