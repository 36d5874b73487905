"""Failures of gRPC in one line each: what is wrong, and the remedy."""

from __future__ import annotations

import re

from roce_exporter.net import NetError
from roce_exporter.switches.readings import label_text

MEANINGS = {
    "UNAUTHENTICATED": "the switch refuses the user or the password: check basic_auth",
    "PERMISSION_DENIED": "the user may not read this: check the role of the user",
    "NOT_FOUND": "the switch does not have this path",
    "UNIMPLEMENTED": "the switch does not support this request: check its version",
    "DEADLINE_EXCEEDED": "no answer by the deadline: raise the timeout of the target",
    "INVALID_ARGUMENT": "the switch does not understand the path or the encoding: check its version",
}
"""By the name of the status code (gRPC, `statuscodes.md`)."""

TOO_LARGE = re.compile(r"Received message larger than max|larger than max")
CONNECTION = (
    (
        re.compile(r"Connection refused"),
        "refuses connections: check the port, and that gNMI is enabled on the switch",
    ),
    (re.compile(r"No route to host|Network is unreachable|timed out", re.IGNORECASE), "cannot be reached"),
    (
        re.compile(r"certificate has expired"),
        "the switch's certificate has expired: renew it, or correct the clock",
    ),
    (
        re.compile(r"not in peer certificate|Hostname Verification"),
        "the switch's certificate has another name: set tls: server_name to a name in the certificate",
    ),
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED"),
        "the switch's certificate is refused: set tls: ca_file to the authority that signed it",
    ),
    (
        re.compile(r"WRONG_VERSION_NUMBER|HTTP_REQUEST|INVALID_.*RECORD"),
        "the port does not speak TLS: correct the port, or write grpc+insecure:// if it is meant to be unencrypted",
    ),
    (
        re.compile(r"missing selected ALPN|ALPN"),
        "the port speaks TLS, but not gRPC: correct the port",
    ),
    (
        re.compile(r"CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|ALERT_.*(CERTIFICATE|UNKNOWN_CA)"),
        "the switch refuses the exporter's certificate: set tls: cert_file and key_file",
    ),
    (
        # In TLS 1.3 a server refuses the client's certificate after the handshake.
        re.compile(r"Unwrap failed|TSI_DATA_CORRUPTED"),
        "the switch ended TLS, perhaps because it requires a client certificate: set tls: cert_file and key_file",
    ),
    (
        re.compile(
            r"http1\.x|http/1|last error: OK$|Unexpected HTTP|HTTP status|SETTINGS|settings frame",
            re.IGNORECASE,
        ),
        "the port does not speak gRPC: correct the port, or write grpc:// if it needs TLS",
    ),
    (re.compile(r"handshake|SSL_ERROR|TSI_", re.IGNORECASE), "the TLS handshake failed: check the port"),
    (
        re.compile(
            r"Socket closed|Connection reset|GOAWAY|Broken pipe|recvmsg|EOF|Endpoint clos", re.IGNORECASE
        ),
        "the switch closed the connection",
    ),
)
"""What gRPC reports of a connection that failed, in the order in which its parts are to be recognised."""


class AbsentError(NetError):
    """The switch does not have what was requested."""


def gnmi_fault(code: str, details: str) -> str:
    """One line for the status of a request that failed.

    `details` come from gRPC or from the switch. Unknown ones are part of the line, as far as they are short and printable.
    """
    said = label_text(details)
    if code == "RESOURCE_EXHAUSTED" and TOO_LARGE.search(said):
        return "the reply is larger than 32 MiB"
    if code == "UNAVAILABLE":
        known = next((line for form, line in CONNECTION if form.search(said)), "")
        return known or f"UNAVAILABLE: {said}"
    if code in ("UNKNOWN", "INTERNAL", "CANCELLED") and (line := _not_grpc(said)):
        return line
    meaning = MEANINGS.get(code)
    return f"{code}: {meaning} ({said})" if meaning and said else f"{code}: {meaning or said}"


def _not_grpc(said: str) -> str:
    """A line where the other end is a server of HTTP/2 that is no gRPC server."""
    if re.search(r"HTTP status|content-type|http status|Stream removed|RST_STREAM", said):
        return f"the port does not answer in gRPC: correct the port ({said})"
    return ""
