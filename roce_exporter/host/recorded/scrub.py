"""Replacements for values that identify a machine or a user: the same one for the same value, from ranges without an owner.

GUIDs come from the locally administered range 0200:00ff:fe00:0000 upwards, MAC addresses from 02:00:00:00:00:00 upwards. A host is
named host-001.

Two IP addresses share as many leading bits as their stand-ins do. So address, prefix, route, rule and gateway fit together in a
recording as on the host. Every bit is flipped or not by a keyed hash of the bits before it (the method of Crypto-PAn, Xu et al.
2002), with a key that is forgotten. IPv6 stand-ins are from 2001:db8::/32 (RFC 3849), IPv4 stand-ins from 240.0.0.0/4 (RFC 1112,
reserved): the first octet is replaced by a number from 240 upwards, in the order of appearance. Link-local IPv6 stand-ins stay
link-local. Addresses without an owner keep their value: unspecified, loopback, multicast, IPv4 link-local, and the ranges for
documentation that stand for everything.

In what /proc reports of processes, users are replaced, and the names of pods, containers, jobs and instances in cgroups. Each keeps
its form, so that the owner of a cgroup is found in the recording as on the host. A part of a path that has no known form may be
the name of a project or a person, so it is replaced, too.

Text that people or firmware chose (messages of the kernel, units, commands, names of devices, versions) keeps the words of
`ordinary.txt`, and numbers of at most nine digits. Any other word has a stand-in: a list of what may stay leaves nothing that it does not know.
What was replaced anywhere is then replaced everywhere, in contents, paths and targets of links, and each hardware address in every
form: any case and separator, without one, and with its bytes reversed.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.kernel_events import MESSAGES
from roce_exporter.host.sources.ip_side import ANYWHERE
from roce_exporter.model.ip import EVERYWHERE, network_of, unmapped

if TYPE_CHECKING:
    from roce_exporter.model.owner import ProcessFacts

RESERVED, RESERVED_OCTETS = 240, 15  # 255 is left out: 255.255.255.255 is broadcast
DOCUMENTATION = int(ipaddress.IPv6Address("2001:db8::"))
LINK_LOCAL = int(ipaddress.IPv6Address("fe80::"))


class SubnetScrubber:
    """Maps addresses and prefixes to their stand-ins."""

    def __init__(self, key: bytes) -> None:
        """`key` has at most 64 bytes; the same key gives the same stand-ins."""
        self._key = key
        self._octets: dict[int, int] = {}

    def address(self, text: str) -> str:
        """The stand-in of an address."""
        address = ipaddress.ip_address(text)
        is_ipv6 = isinstance(address, ipaddress.IPv6Address)
        if address.is_unspecified or address.is_loopback or address.is_multicast or text in ANYWHERE.values():
            return str(address)
        if address.is_link_local and not is_ipv6:
            return str(address)
        if is_ipv6:
            kept, first = (64, LINK_LOCAL) if address.is_link_local else (32, DOCUMENTATION)
            return str(
                ipaddress.IPv6Address(self._flipped(int(address), 128, kept) % 2 ** (128 - kept) + first)
            )
        octet = int(address) >> 24
        stand_in = RESERVED + self._octets.setdefault(octet, len(self._octets)) % RESERVED_OCTETS
        return str(ipaddress.IPv4Address(self._flipped(int(address), 32, 8) % 2**24 + (stand_in << 24)))

    def prefix(self, text: str) -> str:
        """The stand-in of a prefix; that of all addresses is itself."""
        if text in EVERYWHERE.values() or not text:
            return text
        network = network_of(text)
        length = network.prefixlen
        return str(network_of(f"{self.address(str(network.network_address))}/{length}"))

    def _flipped(self, value: int, bits: int, kept: int) -> int:
        """The value with each bit after the first `kept` ones flipped, or not, by a hash of the bits before it."""
        found = value
        for position in range(kept, bits):
            before = value >> (bits - position)
            digest = hashlib.blake2b(
                before.to_bytes(17), key=self._key, digest_size=1, salt=bytes((position,))
            ).digest()
            found ^= (digest[0] & 1) << (bits - position - 1)
        return found


KEY_BYTES = 32
ORDINARY = Path(__file__).with_name("ordinary.txt")
_GUID = re.compile(r"(?<![0-9a-f:])[0-9a-f]{4}(?::[0-9a-f]{4}){3}(?![0-9a-f:])", re.IGNORECASE)
_MAC = re.compile(
    r"(?<![0-9a-f:-])[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5}|(?:-[0-9a-f]{2}){5})(?![0-9a-f:-])"
    r"|(?<![0-9a-f.])[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?![0-9a-f.])",
    re.IGNORECASE,
)
"""With colons, with hyphens, and in three groups."""
_HEX = re.compile("[0-9a-f]", re.IGNORECASE)
_LONG_HEX = re.compile(
    r"[0-9a-f]{12,}|[0-9a-f]{2}(?P<pair>[:.\- ])[0-9a-f]{2}(?:(?P=pair)[0-9a-f]{2}){4,}|[0-9a-f]{4}(?:[:.-][0-9a-f]{4}){2,}",
    re.IGNORECASE,
)
"""What may be or contain a hardware address in some form; it is one if its digits are known."""
_SEPARATORS = str.maketrans("", "", ":.- ")
_MAC_DIGITS, _GUID_DIGITS = 12, 16


class Scrubber:
    """Maps each original value to its replacement."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self._subnets = SubnetScrubber(secrets.token_bytes(KEY_BYTES))
        self._words: dict[str, str] = {}
        """What is replaced in every text; in lower case."""
        self._unknown: set[str] = set()
        """Those of them that no list knows, and which may be the name of a counter."""
        self._kept: set[str] = set()
        self._digits: dict[str, str] = {}
        """The digits of each hardware address, also with its bytes reversed, and those of its stand-in."""

    def ip(self, address: str) -> str:
        """The stand-in of an IP address, as text; the one that `gid` has for it. An empty one stays empty."""
        if not address:
            return ""
        plain = str(unmapped(address))
        return self._stand_in("ip", plain, lambda _: self._subnets.address(plain))

    def prefix(self, prefix: str) -> str:
        """The stand-in of a prefix; an empty one stays empty."""
        return self._subnets.prefix(prefix)

    def gid(self, address: str) -> str:
        """The stand-in of an IP address as a GID in the eight groups of sysfs."""
        found = ipaddress.ip_address(self.ip(address))
        if isinstance(found, ipaddress.IPv6Address):
            return found.exploded
        # By hand, because newer Pythons write a mapped address with dots where sysfs has groups.
        return f"0000:0000:0000:0000:0000:ffff:{int(found) >> 16:04x}:{int(found) & 0xFFFF:04x}"

    def text(self, text: str) -> str:
        """The text with every GUID and MAC address replaced, except those that are all zeros."""
        return _MAC.sub(self._hardware, _GUID.sub(self._hardware, text))

    def numbered(self, kind: str, value: str, make: Callable[[int], str]) -> str:
        """The replacement of a value of this kind: `make` of 1 for the first one, of 2 for the second."""
        return self._stand_in(kind, value, lambda number: make(number + 1))

    def hostname(self, name: str) -> str:
        """The replacement of a host's name: the same with and without its domain, whose words are replaced, too."""
        short, _, domain = name.partition(".")
        made = self._stand_in("hostname", short, lambda number: f"host-{number + 1:03}")
        if _TELLING.search(short) and short.lower() not in _ordinary_words():
            self._words.setdefault(short.lower(), made)
        self.free(domain)
        return made

    def free(self, text: str) -> str:
        """A text that people or firmware chose, with a stand-in for each address and each word that is not ordinary."""
        self.text(text)  # so that `known` finds these addresses in other forms, too
        return _PIECE.sub(self._piece, self.known(text))

    def known(self, text: str, *, counters: bool = False) -> str:
        """The text with everything replaced that was replaced elsewhere, in any form; with `counters` it is a list of these."""
        text = _LONG_HEX.sub(self._long_hex, text)
        lower = text.lower()
        words = self._words.keys() - self._unknown if counters else self._words
        present = sorted((word for word in words if word in lower), key=len, reverse=True)
        if not present:
            return text
        pattern = "|".join(f"(?:{_bounded(word)})" for word in present)
        return re.sub(pattern, lambda found: self._words[found[0].lower()], text, flags=re.IGNORECASE)

    def keep(self, driver: str) -> None:
        """From now on the words of a driver's name stay: they are part of names of devices and counters."""
        self._kept.update(driver.lower().split("_"))

    def device(self, name: str) -> None:
        """From now on `known` replaces the name of an RDMA or network device, unless all its words are ordinary."""
        if name and (made := self.free(name)) != name:
            self._words[name.lower()] = made

    def replaced(self) -> str:
        """How many values of each kind were replaced, for people."""
        shown = {kind: len(values) for kind, values in sorted(self._known.items())}
        return ", ".join(f"{count} {kind}" for kind, count in shown.items()) or "none"

    def _piece(self, found: re.Match[str]) -> str:
        if found["kept"]:
            return found[0]
        if found["hardware"]:
            return self._hardware(found)
        if not found["ip"]:
            return self._word(found[0])
        separator = "." if ":" in found[0] or "." in found[0] else "-"
        try:
            plain = re.sub(r"(?<![0-9a-fA-F.:-])0+(?=\d)|(?<=[.-])0+(?=\d)", "", found[0])
            return self.ip(plain.replace(separator, ".")).replace(".", separator)
        except ValueError:
            if ":" in found[0]:  # a time, which an address may follow
                return ":".join(map(self.free, found[0].split(":")))
            return _WORD.sub(lambda word: self._word(word[0]), found[0])  # a version

    def _word(self, word: str) -> str:
        if is_ordinary(word) or word.lower().rstrip(digits) in self._kept:
            return re.sub(r"\d{4,}$", self._number, word)
        letters = word.rstrip(digits)
        if len(word) - len(letters) > _SHORT_NUMBER or not letters.isalpha() or not letters.isascii():
            letters = word  # an identifier, and not a name with a number
        made = self._stand_in(_WORDS, letters.lower(), lambda number: f"word{_in_letters(number)}")
        return made + word[len(letters) :]

    def _number(self, found: re.Match[str]) -> str:
        """The stand-in of a number that is a job's or a user's elsewhere."""
        return next(
            (known[found[0]] for kind in ("job", "uid") if found[0] in (known := self._known.get(kind, {}))),
            found[0],
        )

    def _hardware(self, found: re.Match[str]) -> str:
        """The stand-in of a GUID or MAC address in the form that sysfs has."""
        hexadecimal = found[0].lower().translate(_SEPARATORS)
        if not hexadecimal.strip("0"):
            return found[0]
        if len(hexadecimal) == _MAC_DIGITS:
            made = self._stand_in(
                "mac", hexadecimal, lambda number: f"02:00:00:{(number % 2**24).to_bytes(3).hex(':')}"
            )
        else:
            made = self._stand_in(
                "guid", hexadecimal, lambda one: f"0200:00ff:fe{one >> 16 & 0xFF:02x}:{one & 0xFFFF:04x}"
            )
        shown = made.translate(_SEPARATORS)
        self._digits |= {hexadecimal: shown, _reversed(hexadecimal): _reversed(shown)}
        return made

    def _long_hex(self, found: re.Match[str]) -> str:
        """The run of digits with a stand-in for each known address in it."""
        hexadecimal = found[0].lower().translate(_SEPARATORS)
        changed = hexadecimal
        for size in (_GUID_DIGITS, _MAC_DIGITS):
            if hexadecimal.isdecimal() and len(hexadecimal) != size:
                continue  # a counter
            for start in range(len(hexadecimal) - size + 1):
                if made := self._digits.get(changed[start : start + size]):
                    changed = changed[:start] + made + changed[start + size :]
        rest = iter(changed)
        return found[0] if changed == hexadecimal else _HEX.sub(lambda _: next(rest), found[0])

    def _stand_in(self, kind: str, value: str, make: Callable[[int], str]) -> str:
        known = self._known.setdefault(kind, {})
        if value not in known:
            known[value] = make(len(known))
            if kind in _NAMES and _TELLING.search(value) and not is_ordinary(value):
                self._words.setdefault(value.lower(), known[value])
                if kind == _WORDS:
                    self._unknown.add(value.lower())
        return known[value]


_WORDS = "word"
_NAMES = frozenset({"user", "cgroup", "node", "instance", "pod", "container", _WORDS})
"""What is replaced wherever it is found; numbers of jobs and users mean something else in other places."""
_TELLING = re.compile(r"(?=...)(?:.*[^\W\da-fA-FxX_]|(?=.{8}).*[a-fA-F])")
"""A name that is replaced in every text: of three characters or more, and no number."""
_SHORT_NUMBER = 5  # digits behind a name; a PCI domain has as many


def _reversed(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal)[::-1].hex()


def _bounded(word: str) -> str:
    """A pattern that finds the word unless letters, or digits, go on in the text."""
    before = r"(?<![^\W\d_])" if word[0].isalpha() else r"(?<!\d)"
    after = r"(?![^\W\d_])" if word[-1].isalpha() else r"(?!\d)"
    return before + re.escape(word) + after


def _in_letters(number: int) -> str:
    """Letters: a to z, then ba, bb."""
    rest, last = divmod(number, 26)
    return (_in_letters(rest) if rest else "") + chr(ord("a") + last)


_WORD = re.compile(r"(?:[^\W_]|\\x[0-9a-f]{2})+")
"""Letters and digits; the kernel's log and systemd write others as escapes."""
_IPV4 = re.compile(
    r"(?<![0-9a-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9a-z])"
    r"|(?<![0-9a-z])(?<![0-9]-)[0-9]{1,3}(?:-[0-9]{1,3}){3}(?![0-9a-z]|-[0-9])"
)
"""With dots, or with hyphens as in names of hosts; a port or `_` may follow."""
_PIECE = re.compile(
    r"(?P<kept>(?<!\w)(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7](?!\w)"
    r"|(?<![^\W_])(?:MT|DEL|HP|LNV|SM|HUA|FJT|SUP|CRAY)_?[0-9]{10,13}(?![^\W_])"
    r"|(?<!\S)\w{1,64}(?=:[0-9]{1,6}:\(pid [0-9]{1,10}\): )"
    r"|(?:0x)?02000(?:000[0-9a-f]{4}|0fffe[0-9a-f]{6})(?![0-9a-f])"
    r"|(?:02:00:00|02-00-00)(?:[:-][0-9a-f]{2}){3}(?!\w)|0200\.00[0-9a-f]{2}\.[0-9a-f]{4}|0200:00ff:fe[0-9a-f]{2}:[0-9a-f]{4}(?!\w))"
    rf"|(?P<hardware>{_GUID.pattern}|{_MAC.pattern})"
    r"|(?<!\w)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!\w)"
    rf"|(?P<ip>(?<![\w.:])[0-9a-f]*:[0-9a-f:]*:[0-9a-f:.]*[0-9a-f](?![\w:])|{_IPV4.pattern})"
    rf"|{_WORD.pattern}",
    re.IGNORECASE,
)
"""Kept are addresses of PCI functions, models of boards of NVIDIA and those who sell them (PSIDs), functions of a driver, and stand-ins of hardware addresses."""
_NUMBER = re.compile(r"[0-9]{1,9}(?:[mun]?s|bit|m?W)?|0[xX][0-9a-fA-F]{1,8}")
_NAMED = re.compile(r"([a-z]+)[0-9]{0,5}(?:(?:np|nd|pf|sf|[sfdvpnrbciuo])[0-9]{1,5})*", re.IGNORECASE)
"""A name with a number, or by place as in systemd.net-naming-scheme(7) and rdma-core: `ens1f0np0`."""
_BY_ADDRESS = re.compile(r"(?:en|ib|roce|rdma|iw)p?x(?:02000000[0-9a-f]{4}|020000fffe[0-9a-f]{6})")
"""Names by hardware address, which has its stand-in."""
_STAND_IN = re.compile(r"word[a-z]{1,3}")


@cache
def _ordinary_words() -> frozenset[str]:
    """Words of `ordinary.txt`, of the catalogue and of the messages of drivers, in lower case."""
    messages = " ".join(f"{one.pattern} {' '.join(one.drivers)}" for one in MESSAGES)
    text = f"{ORDINARY.read_text('utf-8')} {CATALOG} {messages}".lower()
    return frozenset((*ascii_lowercase, *re.findall("[a-z]+", text), *re.findall("[a-z][a-z0-9]+", text)))


def is_ordinary(word: str) -> bool:
    """Whether a word identifies nothing: a number of few digits, a name by place, a word of the field or of Linux."""
    if any(form.fullmatch(word) for form in (_NUMBER, _BY_ADDRESS, _STAND_IN)):
        return True
    named = _NAMED.fullmatch(word)
    return bool({named[1].lower() if named else "", word.lower().rstrip(digits)} & _ordinary_words())


ROOT = "root"

_WORKLOAD = re.compile(
    r"(?<![0-9a-f])(?P<container>[0-9a-f]{64})(?![0-9a-f])"
    r"|(?P<pod>(?<=pod)[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?![0-9a-f])"
    r"|(?P<static>(?<=pod)[0-9a-f]{32})(?![0-9a-f])"
)
"""The ID of a container, the UID of a pod, and that of a static pod, which is a hash without hyphens."""
_JOB = re.compile(r"(?<=^job_)\d+$", re.ASCII)
_UID = re.compile(r"(?<=^uid_)\d+$|(?<=^user-)\d+(?=\.slice$)|(?<=^user@)\d+(?=\.service$)", re.ASCII)
_INSTANCE = re.compile(r"(?<=@)[^@]+(?=\.(?:service|socket|slice)$)")
_MACHINE = re.compile(r"(?<=^machine-).+(?=\.(?:scope|slice)$)")
_NODE = re.compile(r"(?<=^slurm_).+|.+(?=_slurmstepd\.scope$)")
"""Slurm puts the name of the node there if one host has several."""
_UNIT = re.compile(r".+\.(?:service|scope|slice|socket|mount|swap)")
_KNOWN = re.compile(
    r"|\.\.|init|user|system|slurm(?:_.+)?|docker|lxc|libpod|kubepods|besteffort|burstable|guaranteed"
    r"|(?:step|task|job|uid)_[\w.+]+|pod[0-9a-f_-]{32,36}"
    r"|(?:(?:crio|docker|libpod|cri-containerd)-|[\w.-]+:cri-containerd:)?[0-9a-f]{64}"
)
_DELETED = " (deleted)"
"""Appended by the kernel to the path of a removed cgroup of version 2."""
_LOCAL_UIDS = 60_000  # replaced user numbers are above it


def scrub_user(scrub: Scrubber, user: str) -> str:
    """The replacement of a user's name or number; `root` stays."""
    return user if user in ("", ROOT) else scrub.numbered("user", user, lambda number: f"user{number}")


def scrub_process(scrub: Scrubber, facts: ProcessFacts) -> ProcessFacts:
    """The process with everything replaced that names a user, a pod, a container, a job, an instance or a program of one site."""
    user = scrub_user(scrub, facts.user)
    # At line feeds alone, as the kernel writes them: a name may have any other end of line.
    lines = "\n".join(_line(scrub, line) for line in facts.cgroups.split("\n"))
    return facts._replace(user=user, command=scrub.free(facts.command), cgroups=lines)


def _line(scrub: Scrubber, line: str) -> str:
    """A line of /proc/PID/cgroup: `HIERARCHY:CONTROLLERS:PATH`."""
    head, colon, path = line.partition(":/")
    if not colon:
        return scrub.free(line)
    here = path.removesuffix(_DELETED)
    parts = (_part(scrub, part) for part in here.split("/"))
    return f"{scrub.free(head)}{colon}{'/'.join(parts)}{path.removeprefix(here)}"


def _part(scrub: Scrubber, part: str) -> str:
    if not (_UNIT.fullmatch(part) or _KNOWN.fullmatch(part)):
        return scrub.numbered("cgroup", part, lambda number: f"group{number}")
    part = _NODE.sub(lambda found: scrub.numbered("node", found[0], lambda n: f"node{n}"), part)
    part = _JOB.sub(lambda found: scrub.numbered("job", found[0], str), part)
    part = _UID.sub(lambda found: scrub.numbered("uid", found[0], lambda n: str(_LOCAL_UIDS + n)), part)
    if not _UID.search(part):
        for pattern in (_INSTANCE, _MACHINE):
            part = pattern.sub(
                lambda found: scrub.numbered("instance", found[0], lambda n: f"instance{n}"), part
            )
    done, made = 0, ""
    for found in _WORKLOAD.finditer(part):
        made += scrub.free(part[done : found.start()]) + _workload(scrub, found)
        done = found.end()
    return made + scrub.free(part[done:])


def _workload(scrub: Scrubber, found: re.Match[str]) -> str:
    if found["container"]:
        return scrub.numbered("container", found[0], lambda n: f"{n:012x}".ljust(64, "0"))
    if found["static"]:
        return scrub.numbered("pod", found[0], lambda n: f"{n:032x}")
    uid = found[0].replace("_", "-")
    made = scrub.numbered("pod", uid, lambda n: f"00000000-0000-4000-8000-{n:012x}")
    return made.replace("-", "_") if "_" in found[0] else made
