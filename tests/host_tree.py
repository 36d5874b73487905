"""A host's sysfs made of plain files, which the live kernel reads and a test may break."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

COUNTERS = (
    "port_rcv_data",
    "port_rcv_packets",
    "port_xmit_data",
    "port_xmit_packets",
    "link_downed",
    "symbol_error",
)
HW_COUNTERS = (
    "duplicate_request",
    "implied_nak_seq_err",
    "lifespan",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "rnr_nak_retry_err",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_icrc_encapsulated",
)


class HostTree:
    """mlx5 devices `mlx5_0` ... in a folder that represents /sys. Every counter holds its position plus one."""

    def __init__(self, root: Path, devices: int = 8) -> None:
        self.root = root
        self.infiniband.mkdir(parents=True, exist_ok=True)
        for number in range(devices):
            self.add(f"mlx5_{number}")

    def add(self, name: str, *, netdev: str = "", guid: int | None = None) -> None:
        """Add a device; `netdev` names the network device of its function."""
        number = len(os.listdir(self.infiniband)) if guid is None else guid
        self._write(f"{name}/fw_ver", "28.39.1002")
        self._write(f"{name}/board_id", "MT_0000000838")
        self._write(f"{name}/hca_type", "MT4129")
        self._write(f"{name}/node_guid", f"9803:9b03:0000:{number:04x}")
        if netdev:
            (self.infiniband / name / "device/net" / netdev).mkdir(parents=True)
        self._write(f"{name}/node_type", "1: CA")
        for file, text in (
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", "400 Gb/sec (4X NDR)"),
            ("link_layer", "Ethernet"),
        ):
            self._write(f"{name}/ports/1/{file}", text)
        for position, counter in enumerate(COUNTERS, 1):
            self._write(f"{name}/ports/1/counters/{counter}", str(position))
        for position, counter in enumerate(HW_COUNTERS, 1):
            self._write(f"{name}/ports/1/hw_counters/{counter}", str(position))

    def remove(self, name: str) -> None:
        """Remove a device."""
        shutil.rmtree(self.infiniband / name)

    @property
    def infiniband(self) -> Path:
        """class/infiniband."""
        return self.root / "class/infiniband"

    def hw_counter(self, device: str, name: str) -> Path:
        """The file of one hardware counter."""
        return self.infiniband / device / "ports/1/hw_counters" / name

    def replace(self, place: Path, *, link: str = "", text: bytes | None = None, fifo: bool = False) -> None:
        """Replace a file: by a link to another file, by other content, or by a FIFO without a writer."""
        place.unlink()
        if link:
            place.symlink_to(link)
        elif fifo:
            os.mkfifo(place)
        elif text is not None:
            place.write_bytes(text)

    def _write(self, path: str, text: str) -> None:
        place = self.infiniband / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")


def failing_pread(faults: dict[str, int]) -> Callable[[int, int, int], bytes]:
    """os.pread, but the files whose path ends with a key of `faults` fail with that errno."""

    def pread(descriptor: int, count: int, offset: int) -> bytes:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        for end, number in faults.items():
            if path.endswith(end):
                raise OSError(number, os.strerror(number))
        return os.pread(descriptor, count, offset)

    return pread
