"""Write the first inputs of corpus/ from the dumps and texts of the unit tests: `python tests/fuzz/seeds.py`.

Their names begin with `seed-`. Inputs found by a fuzzer have other names and are left unchanged.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "unit"), str(HERE.parent / "unit" / "wire"), str(HERE.parent)]

import kernel_log_lines  # noqa: E402 - the same
import netlink_dumps  # noqa: E402 - on the path set above
import test_counter_sets  # noqa: E402 - the same
import test_transceiver  # noqa: E402 - the same
import test_web_config  # noqa: E402 - the same
import test_wire_headers  # noqa: E402 - the same
import wire_frames  # noqa: E402 - the same
from fuzz_targets import recording  # noqa: E402 - the same
from fuzz_targets.pieces import join  # noqa: E402 - the same
from fuzz_targets.transceiver import PARTS  # noqa: E402 - the same
from fuzz_targets.wire import HEADER  # noqa: E402 - the same
from test_dcb_recorded import PRINTED_RICH, PRINTED_SET  # noqa: E402 - the same
from test_ethtool_text import STATISTICS  # noqa: E402 - the same

from roce_exporter.kernel.ethtool_ioctl import GSSET_INFO, GSTATS, GSTRINGS  # noqa: E402 - the same
from roce_exporter.kernel.netlink import encode_attribute, encode_u32  # noqa: E402 - the same
from roce_exporter.kernel.transceiver import read_transceiver  # noqa: E402 - the same
from roce_exporter.recording.transceiver_text import print_transceiver  # noqa: E402 - the same

Seeds = dict[str, bytes]
COUNT = struct.pack("=Q", 1234)


def rdma_netlink() -> Seeds:
    """The first byte is 3 times the query plus the device: rxe0, rxe1 or mlx5_0."""
    dumps = netlink_dumps
    asked = {
        "devices": (0, dumps.DEVICES),
        "ports": (3, dumps.PORTS_RXE0),
        "ports-gone": (3, dumps.PORTS_GONE, dumps.DEVICES_WITHOUT_MLX5),
        "statistics": (6, dumps.STATISTICS_RXE0, dumps.STATISTICS_RXE0),
        "statistics-mlx5": (8, dumps.STATISTICS_MLX5_0, dumps.STATISTICS_MLX5_0_OPTIONAL),
        "statistics-refused": (6, dumps.REFUSED, dumps.STATUS_RXE0),
        "optional": (9, dumps.STATUS_RXE0),
        "optional-mlx5": (11, dumps.STATUS_MLX5_0),
        "objects": (13, dumps.OBJECTS_RXE1),
    }
    return {name: bytes([first]) + join(*map(unnumbered, rest)) for name, (first, *rest) in asked.items()}


def object_netlink() -> Seeds:
    """The first byte is the query: the kinds of objects in their order, counter sets, the mode of a port."""
    dumps, sets = netlink_dumps, test_counter_sets
    device = sets.RXE0
    values = {"rx_write_requests": 1234}
    asked = {
        "contexts": (
            0,
            dumps.CONTEXTS_RXE1.replace(b"rxe1", b"rxe0").replace(b"\1\0\0\0\x09", b"\0\0\0\0\x09"),
            dumps.DONE,
        ),
        "completion-queues": (1, dumps.COMPLETION_QUEUES_RXE0, dumps.DONE),
        "memory-regions": (2, dumps.MEMORY_REGIONS_RXE0, dumps.DONE),
        "queue-pairs": (3, dumps.QUEUE_PAIRS_RXE0, dumps.QUEUE_PAIRS_RXE0, dumps.DONE),
        "queue-pairs-refused": (3, sets.a_refusal(22), netlink_dumps.DEVICES, netlink_dumps.OBJECTS_RXE1),
        "connections": (4, dumps.LISTENING_RXE0, dumps.DONE),
        "counter-sets": (
            5,
            sets.a_part(sets.a_set(3, kind=2, pid=7, values=values), device=device),
            dumps.DONE,
        ),
        "mode": (6, sets.a_mode(1, 3, device=device)),
    }
    return {name: bytes([first]) + join(*map(unnumbered, rest)) for name, (first, *rest) in asked.items()}


def unnumbered(datagram: bytes) -> bytes:
    """The datagram as a reply to any request: see `wire`."""
    found, start = bytearray(datagram), 0
    while start < len(found):
        length, kind, flags, _, _ = HEADER.unpack_from(found, start)
        HEADER.pack_into(found, start, length, kind, flags, 0, 0)
        start += length + 3 & ~3
    return bytes(found)


def message(kind: int, payload: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(payload), kind, 0, 0, 0) + payload


def ethtool_netlink() -> Seeds:
    family = message(16, struct.pack("=BBH", 1, 2, 0) + encode_attribute(1, struct.pack("=H", 0x15)))
    counts = b"".join(encode_attribute(kind, COUNT) for kind in (2, 3, 4))
    on = b"".join(encode_attribute(kind, b"\1") for kind in (2, 3, 4))
    group = encode_u32(2, 1) + b"".join(encode_attribute(4, encode_attribute(n, COUNT)) for n in (0, 3, 21))
    asked = {
        "pause": (0, on + encode_attribute(5, counts)),
        "link": (1, encode_attribute(2, b"\1") + encode_u32(7, 3)),
        "fec": (2, encode_attribute(5, encode_attribute(2, COUNT * 5) + encode_attribute(3, b""))),
        "standard": (3, encode_attribute(4, group)),
        "module": (4, encode_attribute(7, b"\x11\0\0\0")),
    }
    modes = message(
        0x15, b"\4\1\0\0" + encode_u32(5, 100_000) + encode_attribute(6, b"\1") + encode_u32(9, 4)
    )
    refused = message(2, struct.pack("=i", -95))
    found = {
        name: bytes([first]) + join(family, message(0x15, b"\4\1\0\0" + answer), modes)
        for name, (first, answer) in asked.items()
    }
    return found | {"refused": b"\0" + join(family, refused)}


def dcb_netlink() -> Seeds:
    dumps = netlink_dumps
    whole = {"plain": dumps.PLAIN, "set": dumps.SET, "rich": dumps.RICH, "old": dumps.LINUX_6_1}
    whole |= {"none": dumps.NO_DCB, "failed": dumps.PFC_FAILED}
    return {name: b"\0" + join(unnumbered(dump)) for name, dump in whole.items()}


def ethtool_ioctl() -> Seeds:
    names = ("rx_packets", "rx_prio3_pause", "tx_prio3_pause")
    strings = b"".join(name.encode().ljust(32, b"\0") for name in names)
    statistics = (
        struct.pack("=IIQI", GSSET_INFO, 0, 2, 3),
        struct.pack("=III", GSTRINGS, 1, 3) + strings,
        struct.pack("=II3Q", GSTATS, 3, 1, 2, 2**64 - 1),
    )
    flags = (struct.pack("=IIQI", GSSET_INFO, 0, 4, 3), struct.pack("=III", 0x1B, 2, 3) + strings)
    return {
        "statistics": b"\1" + join(*statistics, *statistics),
        "statistics-known": b"\0" + join(*statistics, statistics[0], statistics[2]),
        "flags": b"\2" + join(*flags, struct.pack("=II", 0x27, 0b101)),
        "timeout": b"\4" + join(struct.pack("=IIIIH", 0x48, 3, 2, 2, 100)),
        "coalesce": b"\6" + join(struct.pack("=23I", 0x0E, *range(22))),
        "refused": b"\1" + join(bytes([0xFE, 95])),
    }


def transceiver() -> Seeds:
    modules = {
        "qsfp28": test_transceiver.qsfp28(),
        "qsfp-dd": test_transceiver.cmis(),
        "sfp": test_transceiver.sfp(0x68),
        "sfp-external": test_transceiver.sfp(0x58),
    }
    return {
        name: b"".join(bytes(module.parts.get(part, bytes(128))) for part in PARTS)
        for name, module in modules.items()
    }


def archive() -> Seeds:
    place = io.BytesIO()
    with tarfile.open(fileobj=place, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, text in (
            ("sys/class/infiniband/mlx5_0/ports/1/state", b"4: ACTIVE\n"),
            ("rdma/dev.json", DEVICE),
            ("ethtool/eth0.stats", STATISTICS.encode()),
            ("sys/" + "long/" * 30 + "name", b"x"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            out.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("sys/class/net/eth0")
        link.type, link.linkname = tarfile.SYMTYPE, "../../devices/eth0"
        out.addfile(link)
    plain = place.getvalue()
    gnu = tarfile.TarInfo("sys/" + "n" * 200)
    packed = bytearray(lzma.compress(plain))
    packed[len(packed) // 2 : len(packed) // 2 + 16] = bytes(16)
    return {
        "corrupt": bytes(packed),
        "plain": plain,
        "gnu": gnu.tobuf(format=tarfile.GNU_FORMAT) + bytes(1024),
        "gz": gzip.compress(plain, mtime=0),
        "bz2": bz2.compress(plain),
        "xz": lzma.compress(plain),
    }


DEVICE = b'[{"ifindex":0,"ifname":"mlx5_0","node_guid":"0000:0000:0000:0001","protocol":"roce","fw":"28.1"}]'
ROWS = {
    "dev": DEVICE,
    "link": b'[{"ifindex":0,"ifname":"mlx5_0","port":1,"netdev":"eth0"}]',
    "statistic": b'[{"ifindex":0,"ifname":"mlx5_0","port":1,"np_cnp_sent":5,"out_of_sequence":0}]',
    "mode": b'[{"ifindex":0,"ifname":"mlx5_0","port":1,"optional-counters":["cc_rx_ce_pkts"]}]',
    "mode_supported": b'[{"ifname":"mlx5_0","port":1,"supported optional-counters":["cc_rx_ce_pkts"]}]',
    "resource": b'[{"ifindex":0,"ifname":"mlx5_0","pd":3,"cq":4,"qp":5}]',
}
OBJECTS = {
    "resource-qp": b'[{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":41,"rqpn":9,"type":"RC","state":"ERR","pid":7,"comm":"a"}]',
    "resource-mr": b'[{"ifindex":0,"ifname":"mlx5_0","rkey":"0x1","mrlen":8192,"pid":7,"comm":"a"}]',
    "resource-cq": b'[{"ifindex":0,"ifname":"mlx5_0","cqe":1023,"users":2,"comm":"ib_core"}]',
    "resource-ctx": b'[{"ifindex":0,"ifname":"mlx5_0","ctxn":1,"pid":7,"comm":null}]',
    "resource-cm_id": b'[{"ifindex":0,"ifname":"mlx5_0","lqpn":41,"state":"CONNECT","comm":"nvme_rdma","dst-addr":"2001:db8::7:4420"}]',
    "statistic-qp": b'[{"ifindex":0,"ifname":"mlx5_0","port":1,"cntn":3,"pid":7,"out_of_sequence":5,"lqpn":[41]}]',
}
PROC = {
    "proc/7/stat": b"7 (a b) S 1 7 7 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 4 0 12345 880 20 1\n",
    "proc/7/status": b"Name:\ta b\nTgid:\t7\nUid:\t1000\t1000\t1000\t1000\n",
    "proc/7/comm": b"a b\n",
    "proc/7/cgroup": b"12:cpu:/docker/" + b"ab" * 32 + b"\n0::/slurm/uid_1/job_2/step_0\n",
    "proc/stat": b"cpu 1 2\nbtime 1760000000\n",
    "etc/passwd": b"root:x:0:0::/:/bin/sh\na:x:1000:1000::/:/bin/sh\n",
}
TEXTS = {
    "stats": STATISTICS,
    "driver": "driver: mlx5_core\n",
    "pause": "Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\ton\nStatistics:\n  tx_pause_frames: 2\n",
    "link": "Settings for eth0:\n\tSpeed: 200000Mb/s\n\tLanes: 4\n\tDuplex: Full\n\tLink detected: yes\n",
    "fec": "FEC parameters for eth0:\nStatistics:\n  corrected_blocks: 123\n",
    "settings": "rx_cqe_moder: on\npfc-prevention-tout: 100 ms\nstats-block-usecs: 1000000\n",
}


RECORDED = b"""recording 1
# a host
ethtool/eth0.stats =
|NIC statistics:
|     rx_bytes: 5
ethtool/eth0.link ! ETIMEDOUT
sys/class/infiniband/mlx5_0/ports/1/state: 4: ACTIVE
sys/class/infiniband/mlx5_0/device -> ../../x
"sys/a b" -> "../c d"
sys/eeprom = base64
|/wAH
sys/open =
\\p0
sys/none =
end
"""
MOMENTS = b"""recording 1
@ 0
ethtool/eth0.stats =
|NIC statistics:
|     rx_bytes: 5
|     tx_bytes: 5
sys/a: 1
@ 3
- sys/a
ethtool/eth0.stats ~
|     rx_bytes: 7
sys/b ! 524
end
"""
BASED = b"recording 1\nbase other\n- sys/a\nethtool/eth0.stats ~\n|     tx_bytes: 7\nend\n"


def recording_text() -> Seeds:
    """The base `other` is in the target."""
    bad = (
        b"@ 1\n@ 1\n",
        b"a: 1\na/b: 2\n",
        b"- a\n",
        b"/a: 1\n",
        b"a ~\n|b: 1\n",
        b"a = base64\n|x\n",
        b"|x\n",
        b"a\0: 1\n",
    )
    seeds = {f"bad-{number}": b"recording 1\n" + lines + b"end\n" for number, lines in enumerate(bad)}
    return seeds | {
        "plain": RECORDED,
        "moments": MOMENTS,
        "base": BASED,
        "cut": RECORDED[:-4],
        "next": b"recording 2\nend\n",
    }


def recording_files() -> Seeds:
    files = {f"rdma/{kind}.json": text for kind, text in ROWS.items()}
    printed = PRINTED_SET | {"ets": PRINTED_RICH["ets"], "dcbx": PRINTED_RICH["dcbx"]}
    files |= {f"dcb/eth0.{kind}.json": text.encode() for kind, text in printed.items()}
    files |= {f"ethtool/eth0.{kind}": text.encode() for kind, text in TEXTS.items()}
    files["ethtool/eth0.module"] = print_transceiver(
        read_transceiver(test_transceiver.qsfp28().read)
    ).encode()
    files |= {f"rdma/{kind}.json": text for kind, text in OBJECTS.items()}
    files |= PROC
    pieces = {path: file(path, text) for path, text in files.items()}
    bad = {
        "rdma/dev.json": b"[" * 2000,
        "rdma/mode.json": b'[{"ifname":"mlx5_0","optional-counters":1}]',
        "dcb/eth0.pfc.json": b'{"pfc_cap": -1}',
        "dcb/eth0.app.json": b'{"pcp_prio": [["3de", 3], [9, 3, 1]]}',
        "ethtool/eth0.stats": b"a: " + b"9" * 5000,
        "ethtool/eth0.link": b"Speed: " + b"9" * 5000 + b"Mb/s",
        "ethtool/eth0.module": b"Module temperature : " + b"9" * 400 + b" degrees C\nA" + b" " * 2000,
    }
    bad |= {
        "rdma/resource-cm_id.json": b'[{"ifname":"mlx5_0","dst-addr":":"}]',
        "rdma/statistic-qp.json": b'[{"ifname":"mlx5_0","port":1,"cntn":-1}]',
        "proc/7/stat": b"7 (a) S " + b"9" * 5000,
        "proc/stat": b"btime " + b"9" * 400,
        "proc/7/status": b"Uid:\t" + b"9" * 400,
    }
    single = {f"bad-{path.replace('/', '-')}": join(file(path, text)) for path, text in bad.items()}
    single |= {path.replace("/", "-"): join(piece) for path, piece in pieces.items()}
    single["objects"] = join(
        *(pieces[path] for path in ("rdma/dev.json", *(f"rdma/{kind}.json" for kind in OBJECTS)))
    )
    single["process"] = join(*(pieces[path] for path in PROC))
    return single | {"rdma": join(*(pieces[f"rdma/{kind}.json"] for kind in ROWS))}


def file(path: str, text: bytes) -> bytes:
    return bytes([recording.FILES.index(path)]) + text


HEAD = b"GET /metrics HTTP/1.1\r\nHost: a\r\n"


def http_head() -> Seeds:
    return {
        "prometheus": HEAD + b"Accept: application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n"
        b"Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n",
        "user": HEAD + b"Authorization: Basic YWxpY2U6c2VjcmV0\r\n\r\n",
        "query": b"GET /debug/snapshot?a=b&c=%20d HTTP/1.1\r\nHost: a\r\n\r\n",
        "path": b"GET /a//b/../%2e%2e/./c/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "proxy": b"HEAD http://a:1/x?y=http://b HTTP/1.1\r\nHost: a\r\n\r\n",
        "body": HEAD.replace(b"GET", b"POST") + b"Content-Length: 3\r\n\r\nabc",
        "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "expect": HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n",
        "two": (HEAD + b"\r\n") * 2,
        "old": b"GET / HTTP/1.0\r\n\r\n",
        "half": HEAD,
    }


def config_file() -> Seeds:
    return {
        "lists": b"web.listen-address: ['127.0.0.1:1', '[::1]:2']\nsource.disable: [counters, resources]\n",
        "values": b"collect.timeout: 2.5\nlog.level: warn\ndevice.exclude: mlx5_[0-3]\nhost.simulate-seed: 7\n",
        "block": b"# comment\n---\ndevice.include: |\n  a.*\nweb.telemetry-path: \"/m\\x41\"\nlog.format: 'json'\n...\n",
        "bad": b"colect.timeout: 3\n- a\n",
        "twice": b"log.level: debug\nlog.level: info\n",
        "deep": b"[" * 2000,
        "pattern": b"device.include: a{4294967296}\n",
        "brackets": b"device.include: '" + b"(" * 2000 + b")" * 2000 + b"'\n",
        "escape": b'device.include: "\\UFFFFFFFF"\n',
        "version": b"%YAML " + b"1" * 4400 + b".1\n",
        "alias": b"log.level: &a debug\nlog.format: *a\n",
    }


def web_config_file() -> Seeds:
    accepted = {
        name.replace(" ", "-"): text.encode() for name, text in test_web_config.ACCEPTED.items() if text
    }
    accepted["limit"] = b"rate_limit: {interval: 1m30.5s, burst: 20}\n"
    accepted["inline"] = b"tls_server_config:\n  cert: |\n    a\n  key: |\n    b\n  client_ca: |\n    c\n"
    accepted["clients"] = (
        test_web_config.TLS + test_web_config.CLIENTS
    ).encode() + b"  client_allowed_sans: [a, b]\n"
    bad = {
        "interval": b"rate_limit: {interval: " + b"9" * 400 + b"h, burst: 1}\n",
        "deep": b"[" * 2000,
        "surrogate": b'basic_auth_users: {"\\ud800": ' + test_web_config.HASH.encode() + b"}\n",
        "endless": b"tls_server_config: {cert_file: cert.pem, key_file: /dev/zero}\n",
    }
    return accepted | bad


def wire_packets() -> Seeds:
    """The first byte is even for a file; odd for a frame, with the number of its link type in bits 1 and 2."""
    mixed = [test_wire_headers.RECORDED_CNP, test_wire_headers.RECORDED_WRITE, test_wire_headers.RECORDED_ACK]
    mixed += [test_wire_headers._valid(kind) for kind in range(8)]
    found = {f"frame-{number}": b"\1" + frame for number, frame in enumerate(mixed)}
    found |= {
        "raw-ip": b"\3" + test_wire_headers.FRAME[14:],
        "cooked": b"\5" + bytes(14) + b"\x08\x00" + test_wire_headers.FRAME[14:],
        "cooked-2": b"\7\x08\x00" + bytes(18) + test_wire_headers.FRAME[14:],
        "pcap": b"\0" + wire_frames.pcap(mixed),
        "pcap-big": b"\0" + wire_frames.pcap(mixed, order=">"),
        "pcapng": b"\0" + wire_frames.pcapng_bytes(mixed),
        "pcapng-interfaces": b"\0" + wire_frames.section(">") + wire_frames.interface(113, 9, ">", 5),
    }
    return found


def kernel_log() -> Seeds:
    """One record per form of a line, and several with tags, a gap and a record of a process."""
    texts = [text for _, text in kernel_log_lines.lines()]
    forms = [*texts[::12], *(text for _, text in kernel_log_lines.OTHER_FORMS)]
    found = {f"line-{number:02}": f"6,{number},1,-;{text}\n".encode() for number, text in enumerate(forms)}
    tags = " SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
    several = "".join(
        f"{priority},{number},1,-;{text}\n{tags}"
        for priority, number, text in zip((6, 3, 14), (1, 2, 9), texts, strict=False)
    )
    return found | {"several": several.encode(), "escaped": b"6,1,1,-,caller=T1;\\x0a DEVICE=+pci:0\n"}


def translate() -> Seeds:
    """The first byte is the kind of file: 0 a dashboard, 1 rules, 2 PromQL."""
    pause = "sum by (device) (rate(node_ethtool_received_prio3_pause{device=~'$d'}[$__rate_interval]))"
    panel = f'{{"title": "a", "targets": [{{"expr": "{pause}", "legendFormat": "{{{{device}}}}"}}]}}'
    variable = '{"type": "query", "query": "label_values(node_infiniband_link_downed_total, device)"}'
    rules = """# a\ngroups:\n- rules:\n  - record: a:b\n    expr: rate(node_ethtool_received_prio3_pause[5m])
  - alert: A\n    expr: |\n      a:b{device="x"}\n        > 1\n    annotations: {a: '{{ $labels.device }}'}\n"""
    queries = {
        "units": "rate(rdma_port_rcv_data_total[5m]) * 4 + on (device) -rdma_port_xmit_data_total",
        "labels": "sum without (device) (node_ethtool_received_prio3_pause / node_ethtool_received_prio4_pause)",
        "names": '{"node_infiniband_link_downed_total", a!~"b"} offset 5m or {__name__=~"rdma_.*"}',
        "lines": '# a\nup\nlabel_replace(node_ethtool_received_discards_phy, \'a\', `b`, "device", "")\n',
    }
    found = {name: b"\2" + text.encode() for name, text in queries.items()}
    found["dashboard"] = f'\0{{"panels": [{panel}], "templating": {{"list": [{variable}]}}}}'.encode()
    return found | {"rules": b"\1" + rules.encode(), "not-json": b"\0{", "not-rules": b"\1a: b"}


WRITERS = {
    "rdma_netlink": rdma_netlink,
    "object_netlink": object_netlink,
    "ethtool_netlink": ethtool_netlink,
    "dcb_netlink": dcb_netlink,
    "ethtool_ioctl": ethtool_ioctl,
    "transceiver": transceiver,
    "archive": archive,
    "recording": recording_files,
    "recording_text": recording_text,
    "http_head": http_head,
    "config_file": config_file,
    "web_config_file": web_config_file,
    "wire_packets": wire_packets,
    "kernel_log": kernel_log,
    "translate": translate,
}


def main() -> None:
    for target, write in WRITERS.items():
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in write().items():
            (folder / f"seed-{name}").write_bytes(content)


if __name__ == "__main__":
    main()
