"""HTTP: the server and its limits, TLS and users, and the pages of the parts that run (`application`)."""

from roce_exporter.web.connection import ClientLimits, Request, Response
from roce_exporter.web.server import Application, ListenError, Server

__all__ = ["Application", "ClientLimits", "ListenError", "Request", "Response", "Server"]
