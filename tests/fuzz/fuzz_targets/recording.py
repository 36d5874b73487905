"""The files of a recording: JSON of rdma and dcb, text of ethtool. Each piece is a file; its first byte names it."""

from fuzz_targets.host import visit
from fuzz_targets.pieces import split
from roce_exporter.host.recorded.recorded import play_recording
from roce_exporter.host.recorded.tree import RecordingError, Tree

ALLOWED = (RecordingError,)
CORE = (
    "host/recorded/recorded.py",
    "host/recorded/rdma_text.py",
    "host/recorded/dcb_text.py",
    "host/recorded/ethtool_text.py",
)
FILES = (
    *(f"rdma/{kind}.json" for kind in ("dev", "link", "statistic", "mode", "mode_supported", "resource")),
    *(f"dcb/eth0.{kind}.json" for kind in ("pfc", "ets", "app", "buffer", "dcbx", "peer_pfc")),
    *(f"ethtool/eth0.{kind}" for kind in ("stats", "driver", "pause", "link", "fec", "settings", "module")),
    "sys/class/infiniband/mlx5_0/ports/1/state",
    "1/rdma/dev.json",
    "ethtool/eth0.permaddr",
    "sys/class/net/eth0/address",
    "proc/sys/kernel/hostname",
    *(f"rdma/resource-{kind}.json" for kind in ("qp", "mr", "cq", "ctx", "cm_id")),
    "rdma/statistic-qp.json",
    *(f"proc/7/{name}" for name in ("stat", "status", "comm", "cgroup")),
    "proc/stat",
    "etc/passwd",
)
WORDS = (
    *(
        f'"{word}": '.encode()
        for word in ("ifname", "port", "ifindex", "netdev", "optional-counters", "pfc_cap")
    ),
    *(
        f'"{word}": '.encode()
        for word in ("prio_pfc", "requests", "indications", "tc_bw", "tc_tsa", "prio_tc")
    ),
    *(
        f'"{word}": '.encode()
        for word in ("dscp_prio", "pcp_prio", "default_prio", "buffer_size", "total_size")
    ),
    *(
        f'"{word}": '.encode()
        for word in ("lqpn", "rqpn", "mrlen", "pid", "comm", "dst-addr", "cntn", "qp-type")
    ),
    b"198.51.100.7:4420",
    b"Uid:",
    b"Tgid:",
    b"btime ",
    b'"mlx5_0"',
    b"[false,false,false,true,false,false,false,false]",
    b"[0,0,0,0,0,0,0,0]",
    b"degrees C",
    b"Module temperature",
    b" high alarm threshold : ",
    b"Permanent address: 02:00:5e:00:00:01",
    b"Speed: ",
    b"Mb/s",
)


def decode(data: bytes) -> None:
    tree = Tree()
    for piece in split(data):
        if piece:
            path = FILES[piece[0] % len(FILES)]
            tree.files[path] = piece[1:]
            tree.add(path)
    try:
        visit(play_recording(tree, "FILE"))
    except ALLOWED as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - the message is under test
