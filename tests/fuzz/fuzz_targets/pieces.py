"""The format of several replies in one input: each is preceded by its length in two bytes, little-endian."""

import struct
from collections.abc import Iterator

LENGTH = struct.Struct("<H")


def split(data: bytes) -> Iterator[bytes]:
    """The pieces; the last may be shorter than announced."""
    while len(data) >= LENGTH.size:
        (length,) = LENGTH.unpack_from(data)
        yield data[LENGTH.size :][:length]
        data = data[LENGTH.size + length :]


def join(*pieces: bytes) -> bytes:
    """An input of these pieces."""
    return b"".join(LENGTH.pack(len(piece)) + piece for piece in pieces)
