"""`/runbooks/NAME`: the shipped runbooks, readable without a login, and nothing else."""

from pathlib import Path

import pytest
from test_web import ask, serving, users

from roce_exporter.web.application import Application
from roce_exporter.web.connection import Request

FOLDER = Path(__file__).parents[2] / "alerts/runbooks"
GET = "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def test_every_runbook_is_served_to_every_client(tmp_path) -> None:
    async with serving(Application([]), users(tmp_path, alice="secret")) as port:
        for place in FOLDER.glob("*.md"):
            for name in (place.name, place.stem):
                answer = await ask(port, GET.format(f"/runbooks/{name}").encode())
                assert (answer.status, answer.body) == (200, place.read_bytes()), name
        listed = await ask(port, GET.format("/runbooks/").encode())
        assert listed.body.decode().split() == sorted(
            f"/runbooks/{place.stem}" for place in FOLDER.glob("*.md")
        )
        assert (await ask(port, GET.format("/metrics").encode())).status == 401


@pytest.mark.parametrize(
    "path", ["/runbooks/RoceNone", "/runbooks/../thresholds.yml", "/runbooks/../../README.md", "/runbooks"]
)
async def test_nothing_else_is(path) -> None:
    assert (await Application([])(Request("GET", path, {}, {}))).status == 404
