"""JSON (RFC 8259) in a reply: bounded, and with one clear line for what is not JSON."""

from __future__ import annotations

import json
from typing import Any

from roce_exporter.net import NetError

MOST_VALUES = 500_000
"""Of one reply; a switch of 1,024 ports has 200,000."""
DEPTH = 40
"""Most levels of lists and objects; the deepest known reply, of NX-OS, has 16."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# strict=False: any host can put a control character into the system name that it announces by LLDP, and not every switch escapes it.
DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


def decode_json(body: bytes, content_type: str = "") -> Any:
    """The document in the body of a reply.

    Raises:
        NetError: the body is not JSON, or is nested too deeply.
    """
    # A neighbour's name in another encoding must not cost the whole reply.
    text = body.decode("utf-8-sig", errors="replace").strip()
    if text.startswith("<"):
        raise NetError(markup_fault(text, content_type))
    if not text:
        raise NetError("the reply is empty where JSON is expected")
    # A value of a list or an object follows a comma or a bracket: a quick upper bound, before any object is made.
    if text.count(",") + text.count("[") + text.count("{") > MOST_VALUES:
        raise NetError(f"the reply has more than {MOST_VALUES:,} values")
    try:
        document = DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NetError(f"the reply is not valid JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        # a number of thousands of digits, NaN, Infinity; nested deeper than the interpreter allows
        raise NetError(
            "the reply is not acceptable JSON: NaN, a number too long, or nested too deeply"
        ) from None
    check_depth(document)
    return document


def markup_fault(text: str, content_type: str) -> str:
    """One line for markup in place of JSON."""
    if "html" in content_type.lower() or "<html" in text[:1024].lower():
        return (
            "an HTML page instead of JSON, probably a login page or a proxy: check the address and the port"
        )
    return "XML instead of JSON: check the address and the port"


def check_depth(document: Any) -> None:
    """Refuse a document that is nested too deeply.

    Raises:
        NetError: there are more than `DEPTH` levels.
    """
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(DEPTH):
        if not level:
            return
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    if level:
        raise NetError(f"the reply is nested deeper than {DEPTH} levels")
