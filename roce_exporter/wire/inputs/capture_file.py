"""Capture files: pcap, pcap with nanoseconds, and pcapng, from a path or standard input, in blocks of a few megabytes.

Packet records are located as a batch of offsets, which costs a tenth of an object per packet. Files compressed with gzip (RFC 1952) or zstd (RFC 8878) are decompressed on
the way. Memory is bounded by the size of one block, whatever a compressed file grows to.
"""

from __future__ import annotations

import select
import time
import zlib
from collections.abc import Callable, Iterator
from io import FileIO
from typing import IO, TYPE_CHECKING, TypeAlias

from roce_exporter.wire.frames import Frames, InputError, merged
from roce_exporter.wire.inputs.pcap_records import HEADER_BYTES, LARGEST, PcapRecords

if TYPE_CHECKING:
    from roce_exporter.wire.inputs.pcapng_blocks import PcapngBlocks

    Stream: TypeAlias = "FileIO | _Unpacked"
    """A file without a buffer, or the content of one that is compressed."""

BLOCK = 4 << 20  # bytes that a batch is made of
GATHER = 0.1  # seconds
SLACK = 256
"""Zero bytes after the data, so that the header of the last frame can be read in full width."""

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

SECTION = b"\x0a\x0d\x0d\x0a"


class CaptureFile:
    """The frames of one file or stream."""

    def __init__(self, stream: Stream, name: str) -> None:
        """Read the file header. Raises InputError: the file is neither pcap nor pcapng, or is compressed in a way that cannot be read."""
        self._stream = stream
        self._name = name
        try:
            self._first = read_at_least(stream, HEADER_BYTES)
            if (content := decompressed(stream, self._first)) is not None:
                self._stream = content
                self._first = read_at_least(content, HEADER_BYTES)
            self._records, self._skip = _records_of(self._first)
        except BaseException as error:
            stream.close()
            if isinstance(error, InputError):
                raise InputError(f"{name}: {error}") from None
            raise
        self.fault = ""
        """Why reading ended before the end of the file; empty as long as it did not."""

    def __iter__(self) -> Iterator[Frames]:
        """The frames, batch by batch. Damage ends the iteration and is described in `fault`."""
        try:
            yield from self._batches()
        except InputError as error:
            self.fault = f"{self._name}: {error}; the counts are those up to there"
        except OSError as error:
            self.fault = f"{self._name}: {error.strerror or error}; the counts are those up to there"
        finally:
            self._stream.close()

    def _batches(self) -> Iterator[Frames]:
        room = bytearray(LARGEST + BLOCK + SLACK)
        end = len(self._first) - self._skip
        room[:end] = self._first[self._skip :]
        with memoryview(room) as view:
            ended = False
            while not ended:
                count, ended = _read_into(self._stream, view[end : end + BLOCK])
                end += count
                parts: list[Frames] = []
                begin, damage = self._split(room, end, parts)
                yield from merged(parts)
                if damage:
                    raise damage
                end -= begin
                if end > LARGEST:
                    raise InputError("a record is longer than 1 MiB, so the file is damaged")
                view[:end] = view[begin : begin + end]
        if end:
            raise InputError(f"ends within a record, {end} bytes are left over")

    def _split(self, room: bytearray, end: int, parts: list[Frames]) -> tuple[int, InputError | None]:
        """Add the frames of the complete records; where the next record begins, and what is wrong with it."""
        begin = 0
        while True:
            try:
                following, found = self._records.split(room, begin, end)
            except InputError as error:
                return begin, error
            parts += found
            if following == begin:
                return begin, None
            begin = following


def open_capture(path: str) -> CaptureFile:
    """The capture at a path, or on standard input for `-`. Raises InputError: the file cannot be opened or is no capture."""
    name = "standard input" if path == "-" else path
    try:
        # Unbuffered: a buffer would keep the newest packets of a live stream, and a block is read at once anyway.
        return CaptureFile(FileIO(0 if path == "-" else path, closefd=path != "-"), name)
    except OSError as error:
        raise InputError(
            f"{name}: {error.strerror}; name a pcap or pcapng file, or - for standard input"
        ) from None


def _records_of(first: bytes) -> tuple[PcapRecords | PcapngBlocks, int]:
    """The format of a file, and the length of its header."""
    if len(first) < HEADER_BYTES:
        raise InputError("is empty or shorter than the header of a capture; write it with `tcpdump -w`")
    if first[:4] != SECTION:
        return PcapRecords.from_header(first), HEADER_BYTES
    from roce_exporter.wire.inputs.pcapng_blocks import PcapngBlocks  # noqa: PLC0415 - the start of a plain pcap is shorter

    return PcapngBlocks(), 0


def _read_into(stream: Stream, view: memoryview) -> tuple[int, bool]:
    """As much as there is, of a pipe what comes within GATHER seconds of the first bytes: a batch costs the same for one packet and a thousand.

    Returns the bytes read, and whether the stream has ended.
    """
    if not isinstance(stream, FileIO):
        count = stream.readinto(view) or 0
        return count, not count
    readable = select.poll()  # unlike select, for descriptors of any number
    readable.register(stream, select.POLLIN)
    count, until = 0, 0.0
    while count < len(view):
        left = until - time.monotonic()
        if until and not (left > 0 and readable.poll(left * 1000)):
            return count, False
        more = stream.readinto(view[count:])
        if not more:
            return count, True
        count += more
        until = until or time.monotonic() + GATHER
    return count, False


def read_at_least(stream: Stream, size: int) -> bytes:
    """That many bytes; fewer at the end of the stream. A pipe returns what it has."""
    found = b""
    while len(found) < size and (more := stream.read(size - len(found))):
        found += more
    return found


def decompressed(stream: Stream, first: bytes) -> Stream | None:
    """The content of a stream that is compressed, whose first bytes have been read; None if it is not compressed.

    Raises:
        InputError: it is compressed with zstd, and no package for that is installed.
    """
    if first.startswith(GZIP):
        # Imported where they are used, as zstd is: most captures are not compressed.
        import gzip  # noqa: PLC0415

        reader = gzip.GzipFile(fileobj=_Begun(stream, first), mode="rb")  # type: ignore[call-overload] # it only reads
        return _Unpacked(reader, (OSError, EOFError, zlib.error), "gzip", stream.close)
    return _zstd(_Begun(stream, first), stream.close) if first.startswith(ZSTD) else None


class _Begun:
    """A stream whose first bytes have been read."""

    def __init__(self, stream: Stream, first: bytes) -> None:
        self._stream = stream
        self._first = first

    def read(self, size: int) -> bytes:
        found, self._first = self._first[:size], self._first[size:]
        return found or self._stream.read(size) or b""


class _Unpacked:
    """A reader of a compressed stream, with its errors as ours."""

    def __init__(
        self, reader: IO[bytes], errors: tuple[type[Exception], ...], kind: str, close: Callable[[], None]
    ) -> None:
        self._reader = reader
        self._errors = errors
        self._kind = kind
        self.close = close

    def read(self, size: int, /) -> bytes:
        try:
            return self._reader.read(size)
        except EOFError:
            raise InputError(f"the {self._kind} file is cut off") from None
        except self._errors as error:
            raise InputError(f"the {self._kind} file is damaged: {error}") from None

    def readinto(self, view: memoryview, /) -> int:
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)


def _zstd(stream: _Begun, close: Callable[[], None]) -> Stream:
    """The content of a zstd file, by Python 3.14 or by the package zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - Python 3.14
    except ImportError:
        pass
    else:
        return _Unpacked(zstd.ZstdFile(stream), (zstd.ZstdError,), "zstd", close)  # type: ignore[call-overload,unused-ignore] # it only reads
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - no package of the extra
    except ImportError:
        raise InputError(
            "is compressed with zstd; install the package zstandard, or: zstdcat FILE | roce-exporter wire -"
        ) from None
    reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    return _Unpacked(reader, (zstandard.ZstdError,), "zstd", close)
