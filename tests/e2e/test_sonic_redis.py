"""A real Redis with the tables of a SONiC: what is sent to it, what faults cost, and what restarts leave behind."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from servers import kept_port
from sonic_redis import RedisServer, need_redis, query_switch, recorded, target_of, values
from waiting import HUNG_SECONDS

from roce_exporter.net.login import Login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.systems.sonic.redis_client import packed
from roce_exporter.switches.systems.sonic.tables import SOURCES

PASSWORD = "correct-horse-battery"  # noqa: S105 - of the Redis of this test alone


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RedisServer]:
    need_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis"), door="--port").start()
    yield server
    server.stop()


@pytest.fixture
def switch(server) -> RedisServer:
    """The storm, loaded again before each test."""
    server.load(recorded("switch-sonic"))
    return server


@contextmanager
def monitored(server: RedisServer) -> Iterator[list[str]]:
    """Every command that the server executes meanwhile, as MONITOR shows it."""
    seen: list[str] = []
    with server.client() as client, server.client() as other:
        other.ping()  # connects now, so that its greeting is not among the commands
        monitor = client.monitor()
        monitor.__enter__()

        def listen() -> None:
            for entry in monitor.listen():
                if "end of the test" in entry["command"]:
                    return
                seen.append(entry["command"])

        thread = threading.Thread(target=listen)
        thread.start()
        yield seen
        other.echo("end of the test")
        thread.join(HUNG_SECONDS)
        assert not thread.is_alive()
        monitor.__exit__(None, None, None)


@pytest.mark.parametrize("priorities", ["pfc", "all"])
async def test_only_reading_commands_are_sent(switch, priorities) -> None:
    with monitored(switch) as seen:
        await query_switch(target_of(switch.socket, priorities=priorities))
    commands = {line.split(" ", 1)[0] for line in seen}
    assert commands == {"SELECT", "HMGET", "HGETALL"}
    assert len(seen) > 100


@pytest.mark.parametrize(
    "command", ["KEYS", "SCAN", "EVAL", "SET", "HSET", "FLUSHALL", "CONFIG", "hgetall", "DEL"]
)
def test_no_other_command_can_be_sent(command) -> None:
    with pytest.raises(ValueError, match="no reading command"):
        packed([(command, "x")])


async def test_queues_that_are_not_lossless_are_not_even_read(switch) -> None:
    with monitored(switch) as seen:
        await query_switch(target_of(switch.socket))
    read = {match[1] for line in seen if (match := re.match(r"HMGET COUNTERS:(oid:0x15\S+)", line))}
    maps = recorded("switch-sonic")["counters_db"]
    names = {oid: name for name, oid in maps["COUNTERS_QUEUE_NAME_MAP"].items()}
    assert sorted(names[oid] for oid in read) == ["Ethernet0:3", "Ethernet0:4", "Ethernet8:3", "Ethernet8:4"]


async def test_a_restart_of_the_services_changes_the_identifiers_and_no_label(switch) -> None:
    """Trap 14: other object identifiers, counters from 0, the same series."""
    _, before = await query_switch(target_of(switch.socket))
    text = json.dumps(recorded("switch-sonic")["counters_db"])
    restarted = json.loads(re.sub(r"oid:0x(1[05a8])0000", r"oid:0x\g<1>0077", text))
    assert restarted.keys() != recorded("switch-sonic")["counters_db"].keys()
    switch.load({"counters_db": restarted})
    _, after = await query_switch(target_of(switch.socket))
    assert [(r.source, r.labels, dict(r.values)) for r in after.readings] == [
        (r.source, r.labels, dict(r.values)) for r in before.readings
    ]
    assert "oid:" not in str([r.labels for r in after.readings])


async def test_a_restart_between_name_map_and_counters_gives_no_zero(switch) -> None:
    """The name maps are there, and the hashes behind them are gone."""
    tables = recorded("switch-sonic")["counters_db"]
    maps = {key: fields for key, fields in tables.items() if key.endswith("_MAP")}
    switch.load({"counters_db": maps})
    _, readings = await query_switch(target_of(switch.socket))
    assert {reading.source for reading in readings.readings} == {"configuration"}
    assert "restart" in readings.faults["port_counters"]
    assert "restart" in readings.faults["queue_counters"]
    assert values(readings, "roce_switch_pfc_enabled")


async def test_a_key_of_another_type_is_one_fault_and_one_loss(switch) -> None:
    oid = recorded("switch-sonic")["counters_db"]["COUNTERS_PORT_NAME_MAP"]["Ethernet0"]
    with switch.client(2) as client:
        client.delete(f"COUNTERS:{oid}")
        client.set(f"COUNTERS:{oid}", "text")
    _, readings = await query_switch(target_of(switch.socket))
    assert readings.faults == {"port_counters": f"COUNTERS:{oid}: the key is not a hash"}
    found = {labels[0] for labels in values(readings, "roce_switch_pfc_receive_frames_total")}
    assert found == {"Ethernet8", "Ethernet16"}


async def test_a_database_that_is_away(tmp_path) -> None:
    _, readings = await query_switch(target_of(str(tmp_path / "no.sock")))
    assert set(readings.faults) == set(SOURCES)
    assert readings.faults["lldp"] == f"{tmp_path}/no.sock: No such file or directory"
    _, readings = await query_switch(target_of("127.0.0.1", "redis", ports={"redis": kept_port()}))
    assert readings.faults["state"].endswith(
        " refuses connections: check the port, and that the service is enabled"
    )
    assert readings.sources == SOURCES


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[RedisServer]:
    """A Redis with a password, a user that may only read, and TLS."""
    need_redis()
    place = tmp_path_factory.mktemp("guarded")
    authority = trustme.CA()
    certificate = authority.issue_cert("leaf1.example.com")
    authority.cert_pem.write_to_path(place / "ca.pem")
    certificate.private_key_pem.write_to_path(place / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(place / "cert.pem")
    flags = ["--requirepass", PASSWORD, "--tls-auth-clients", "no"]
    for flag, name in (("--tls-cert-file", "cert"), ("--tls-key-file", "key"), ("--tls-ca-cert-file", "ca")):
        flags += [flag, str(place / f"{name}.pem")]
    server = RedisServer(place, tuple(flags), "--tls-port").start()
    server.load(recorded("switch-sonic"), password=PASSWORD)
    with server.client(password=PASSWORD) as client:
        client.execute_command(
            "ACL", "SETUSER", "ro", "on", f">{PASSWORD}", "~*", "-@all", "+hgetall", "+hmget", "+select"
        )
        client.execute_command("ACL", "SETUSER", "no", "on", f">{PASSWORD}", "~*", "-@all", "+select")
    yield server
    server.stop()


async def test_a_user_who_may_only_read_suffices(guarded) -> None:
    replies, readings = await query_switch(target_of(guarded.socket), Login("ro", PASSWORD), record=True)
    assert not readings.faults
    assert PASSWORD not in str(replies)
    replies, readings = await query_switch(target_of(guarded.socket), Login("", PASSWORD))
    assert not readings.faults


@pytest.mark.parametrize(
    ("login", "line"),
    [
        (Login(), "Redis wants a password: set basic_auth"),
        (Login("ro", "wrong-password"), "Redis refuses the user or the password: check basic_auth"),
        (Login("no", PASSWORD), "allow +hgetall +hmget +select on all keys"),
    ],
    ids=["none", "wrong", "no permission"],
)
async def test_refused_credentials(guarded, login, line) -> None:
    replies, readings = await query_switch(target_of(guarded.socket), login, record=True)
    assert set(readings.faults) >= {"port_counters", "configuration", "lldp", "state"}
    assert all(line in fault for source, fault in readings.faults.items() if source != "watermarks")
    assert not login.password or login.password not in str((replies, readings))


def secure(server: RedisServer, **files: Any) -> Any:
    return target_of("127.0.0.1", "rediss", ports={"rediss": server.port}, tls=TlsFiles(**files))


async def test_tls_verifies_the_name(guarded) -> None:
    authority, login = guarded.place / "ca.pem", Login("ro", PASSWORD)
    named = secure(guarded, ca_file=authority, server_name="leaf1.example.com")
    assert not (await query_switch(named, login))[1].faults
    assert not (await query_switch(secure(guarded, insecure_skip_verify=True), login))[1].faults
    for wrong in (
        secure(guarded, ca_file=authority, server_name="leaf2.example.com"),
        secure(guarded, server_name="leaf1.example.com"),
        secure(guarded, ca_file=authority),
    ):
        _, readings = await query_switch(wrong, login)
        assert set(readings.faults) == set(SOURCES)
        assert all("the server's certificate is refused" in line for line in readings.faults.values())
    missing = secure(guarded, ca_file=Path("/no/ca.pem"))
    assert "tls: ca_file" in (await query_switch(missing, login))[1].faults["lldp"]


async def test_a_port_without_tls_is_a_fault_of_one_line(switch) -> None:
    plain = target_of(
        "127.0.0.1", "rediss", ports={"rediss": switch.port}, tls=TlsFiles(insecure_skip_verify=True)
    )
    _, readings = await query_switch(plain, seconds=0.5)
    assert set(readings.faults.values()) == {"no complete reply by the deadline"}
