"""A capture can be sent to someone who may know nothing of the host: no name, address, user, job or serial number is left in it.

Every file, its path and the target of each link are searched, in any case of letters.
"""

import asyncio
import re
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel import host
from observed import exposition, observe
from recorded import recording

from roce_exporter.checks.settings import Profile, audit
from roce_exporter.host.recorded.archive import load_tree
from roce_exporter.host.recorded.capture import capture
from roce_exporter.host.recorded.recorded import RecordedKernel, load_recording
from roce_exporter.host.recorded.scrub import Scrubber

NAMES = {
    "mlx5_bond_0": "rocex0c42a1fffe79a4f8",
    "ens2f0np0": "enx0c42a179a4f8",
    "ens2f1np1": "acme-rail1",
    "02:00:5e:20:5e:00": "0C:42:a1:79:a4:f8",
    "0000:5eff:fe20:5e00": "0c42:A1ff:fe79:a4f8",
    "gpu-042.example.com": "gpu17.acme.example",
    "c000:0282": "0a4d:0109",
}
"""What the recorded host has, and what identifies another: names by GUID and MAC address as udev gives them, and by a person."""

MESSAGE = "3,{},2,-;mlx5_core 0000:5e:00.0: Health issue observed, {}, severity(3) ERROR\n"
INFO = (
    '{{"info":{{"pci/0000:5e:00.0":{{"driver":"mlx5_core","serial_number":"MT2042X01234",'
    '"board.serial_number":"0c-42-a1-ff-fe-79-a4-f8",'
    '"versions":{{"fixed":{{"fw.psid":"MT_0000000359","asic.id":"{0}"}},"running":{{"fw.version":"22.39.2048","fw":"{0}"}}}}}}}}}}\n'
)


def secret_host(log: str, cgroups: tuple[str, str, str], firmware: str, command: str) -> RecordedKernel:
    """A recorded host with other names, and these texts in places where a person or a firmware chose them."""
    files: dict[str, object] = {}
    for path, content in load_tree(recording("mlx5-lag")).content().items():
        text = f"-> {content}" if isinstance(content, str) else bytes(content).decode()  # type: ignore[arg-type] - no error numbers here
        for old, new in NAMES.items():
            path, text = path.replace(old, new), text.replace(old, new)  # noqa: PLW2901 - of both
        files[path] = text
    device = "sys/class/infiniband/rocex0c42a1fffe79a4f8"
    files |= {
        "dev/kmsg": "".join(MESSAGE.format(number, text) for number, text in enumerate(log.splitlines())),
        "devlink/info.json": INFO.format(firmware),
        "etc/passwd": "alice:x:0:0::/home/alice:/bin/sh\n",
        f"{device}/board_id": f"{firmware}\n",
        f"{device}/node_desc": "gpu17 HCA-1\n",
        f"{device}/sys_image_guid": "0C42:A1FF:FE79:A4F8\n",
        f"{device}/device/hwmon/hwmon3/temp1_label": f"{firmware}\n",
        f"{device}/device/hwmon/hwmon3/temp1_input": "41000\n",
    }
    for pid, cgroup in zip(("20481", "20482", "31007"), cgroups, strict=True):
        files |= {f"proc/{pid}/cgroup": f"0::{cgroup}\n", f"proc/{pid}/comm": f"{command}\n"}
    return host(files)


PLAIN = secret_host(
    "gpu17 10.77.1.9 0C:42:A1:79:A4:F8\n10.77.1.9:4420 src:10.77.1.9 to_10.77.1.9_x ip-10-77-1-9 12:30:10.77.1.9 at 12:30\nhost gpu17.acme.example\njob of alice in projectx",
    (
        "/system.slice/run-projectx-finetune.service",
        "/system.slice/jupyter-alice-smith.service",
        "/machine.slice/acme-tenant.slice/vm-projectx.scope",
    ),
    "SN9F2K77Q1",
    "gpt-projectx",
)
ODD = secret_host(
    "GPU17-bmc ALICE@PROJECTX 0x0c42a1fffe79a4f8 0C42A1FFFE79A4F8 f8a479feffa1420c\n"
    "0c-42-a1-79-a4-f8 0c42.a179.a4f8 0c42a179a4f8 f8:a4:79:a1:42:0c 0c 42 a1 79 a4 f8\n"
    "http://alice:pw1@gpu17.acme.example:80/10.77.1.9/projectx?x=SN9F2K77Q1 [fe80::e42:a1ff:fe79:a4f8%acme-rail1]:1\n"
    "::ffff:10.77.1.9 010.077.001.009 FE80:0:0:0:0E42:A1FF:FE79:A4F8 job=4711 rocex0c42a1fffe79a4f8/acme-rail1.100\n"
    "leaf-3.acme.example Ethernet1/7 to gpu17:acme-rail1 \\xc3\\xbcnal",
    (
        "/slurm_gpu17/uid_1017/job_4711/step_0",
        "/system.slice/run-alice\\x2dSN9F2K77Q1-0c42a179a4f8.service",
        "/user.slice/user-1017.slice/user@1017.service/app.slice/projectx-10.77.1.9-FE80::0e42:a1ff:fe79:a4f8-slurm-4711.scope",
    ),
    "http://gpu17.acme.example/ALICE/0c42a1fffe79a4f8 fe80::e42:a1ff:fe79:a4f8 10.77.1.9 SN9F2K77Q1",
    "PROJECTX alice",
)
LLDP = secret_host(
    "LLDP neighbour SPINE-07.PARIS2.ACME.EXAMPLE. mgmt 2a0d:e4c0:1::7 chassis 0c42.a179.a4f8 port et-0/0/31\n"
    "sysname=spine-07.paris2.acme.example;mgmt-ip=198.18.77.9;sysdesc=Arista-DCS-7060 SN:JPE12345678\n"
    "spine%2D07%2Eparis2 xn--bcher-kva.acme.example 198.18.77.9/32 198-18-77-9.static [2A0D:E4C0:1:0:0:0:0:7]:179\n"
    'serial-number=MT2042X01234 S/N:MT2042X01234 SN#MT2042X01234 PN MCX623106AN SN MT2042X01234, "FNS24230A5C"\n'
    "module serial AVGO-7Q91-33K2 vendor_sn(FNS24230A5C) 0x4d543230343258303132 sn=jpe12345678\n",
    ("/system.slice/a.service", "/system.slice/b.service", "/machine.slice/c.scope"),
    "JPE12345678",
    "lldpd",
)
"""What a switch announces of itself, and the serial numbers of modules and devices, in the kernel's log and as a firmware's text."""
KERNELS = pytest.mark.parametrize("kernel", [PLAIN, ODD, LLDP], ids=["plain", "odd", "lldp"])
SECRETS = (
    *(
        "gpu17",
        "acme",
        "alice",
        "smith",
        "projectx",
        "finetune",
        "tenant",
        "sn9f2k77q1",
        "mt2042x01234",
        "4711",
        "1017",
        "pw1",
    ),
    *(
        "spine",
        "paris2",
        "bcher",
        "198.18",
        "198-18",
        "e4c0",
        "jpe12345678",
        "fns24230",
        "avgo",
        "7q91",
        "33k2",
        "4d5432",
    ),
    *("10.77.1.9", "10-77-1-9", "0a4d:0109", "077.001", "xbcnal"),
    *(
        "0c42a1",
        "79a4f8",
        "0c42:a1",
        "0c:42:a1",
        "0c-42-a1",
        "0c 42 a1",
        "0c42.a1",
        "a1420c",
        "a1:42:0c",
        "e42:a1",
        "fe79",
    ),
)


def archive_of(kernel: RecordedKernel, output: Path) -> tuple[str, str]:
    """What `capture` prints, and all that is in the archive, in lower case."""
    printed = str(asyncio.run(capture(kernel, str(output), 1, 0.001)))
    with tarfile.open(output) as archive:
        contents = {one.name: archive.extractfile(one) for one in archive if one.isreg()}
        parts = [
            f"{one.name} {one.linkname} {found.read().decode() if (found := contents.get(one.name)) else ''}"
            for one in archive
        ]
    return printed, "\n".join(parts).lower()


@KERNELS
def test_nothing_that_identifies_the_host_is_left_and_only_the_user_can_read(kernel, tmp_path) -> None:
    printed, text = archive_of(kernel, tmp_path / "c.tar.gz")
    left = {secret: re.findall(rf".*{re.escape(secret)}.*", text)[:3] for secret in SECRETS if secret in text}
    assert not left
    log = kernel.open_kernel_log(oldest=True).read(9).records
    assert text.count("health issue observed") == len(log), "each message is still there"
    assert "mt_0000000359" in text
    assert stat.S_IMODE((tmp_path / "c.tar.gz").stat().st_mode) == 0o600
    assert re.search(r"\nreplaced: .*\b1 hostname, .*\n?kept: .*PCI addresses", printed)


def test_a_folder_and_a_text_are_readable_by_the_user_only(tmp_path) -> None:
    for name in ("c", "c.txt"):
        asyncio.run(capture(PLAIN, str(tmp_path / name), 1, 0.001))
        places = [tmp_path / name, *(tmp_path / name).rglob("*")]
        assert not [
            place
            for place in places
            if not place.is_symlink() and place.is_file() and place.stat().st_mode & 0o077
        ]
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700


@KERNELS
def test_the_capture_has_the_same_findings_values_and_messages(kernel, tmp_path) -> None:
    asyncio.run(capture(kernel, str(tmp_path / "c.txt"), 1, 0.001))
    replayed = load_recording(str(tmp_path / "c.txt"))
    assert findings(replayed) == findings(kernel) != []
    assert values(replayed) == values(kernel)


def findings(kernel: RecordedKernel) -> list[tuple[str, str]]:
    _, (observation,) = asyncio.run(observe(kernel))
    return sorted((one.check, str(one.status)) for one in audit(observation.snapshot.devices, Profile("all")))


def values(kernel: RecordedKernel) -> list[str]:
    """Name and value of each series."""
    text = asyncio.run(exposition(kernel)).decode()
    return sorted(re.sub(r"\{.*\}", "", line) for line in text.splitlines() if not line.startswith("#"))


HOSTS = ("mlx5-lag", "ionic", "irdma", "audit-rails-right")
PATHS = "\n".join({path for name in HOSTS for path in load_tree(recording(name)).content()})
WORDS = sorted({*re.findall(r"(?<![^\W_])[a-z]+(?![^\W_])", PATHS)})


@given(st.sampled_from(WORDS))
def test_a_host_and_a_user_may_have_any_word_of_a_path_as_their_name(word) -> None:
    """What the recording is made of stays, although it is the name of something here."""
    scrub = Scrubber()
    scrub.hostname(f"{word}.{word}")
    for kind in ("user", "cgroup", "instance"):
        scrub.numbered(kind, word, "stand-in{}".format)
    assert scrub.known(PATHS) == PATHS


@given(st.integers(0, 2**64 - 1))
def test_counters_are_never_taken_for_addresses_or_words(number) -> None:
    scrub = Scrubber()
    scrub.text("0c:42:a1:79:a4:f8 0c42:a1ff:fe79:a4f8")
    scrub.free(f"timeout {number} serial {number:x} 0x{number:x} of a9f3 acme")
    text = f"     rx_bytes: {number}\n"
    assert scrub.known(text) == text
    assert scrub.known(text, counters=True) == text
