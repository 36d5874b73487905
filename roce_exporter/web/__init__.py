"""HTTP: the server and its bounds, TLS and users, and what answers under which path (`endpoints`)."""

from roce_exporter.web.config import WebConfigError
from roce_exporter.web.connection import ClientLimits, Request, Response
from roce_exporter.web.server import Application, ListenError, Server

__all__ = [
    "Application",
    "ClientLimits",
    "ListenError",
    "Request",
    "Response",
    "Server",
    "WebConfigError",
]
