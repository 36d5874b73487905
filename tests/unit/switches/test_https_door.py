"""The HTTPS door against a real server on loopback that behaves, and misbehaves, like the web server of a switch."""

from __future__ import annotations

from https_switch import https_switch, says

from roce_exporter.switches.doors.https import HttpsDoor


async def test_several_requests_share_one_connection(tmp_path) -> None:
    async with https_switch(lambda asked: says({"path": asked.path}), tmp_path) as switch:
        async with HttpsDoor(switch.visit()) as door:
            replies = [await door.get("x", f"/api/{number}") for number in range(3)]
        assert replies == [{"path": f"/api/{number}"} for number in range(3)]
        assert switch.connections == 1
        assert switch.asked[0].headers["host"] == f"switch.example.com:{switch.port}"
