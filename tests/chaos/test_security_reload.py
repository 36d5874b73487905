"""The web config file and the files that it names, rewritten while clients send requests."""

import http.client
import ssl
import threading
from base64 import b64encode
from pathlib import Path

import pytest
from chaos_credentials import PASSWORD, USER, Credentials, config_text, hashed, make_credentials, secured
from waiting import wait_until

pytestmark = pytest.mark.ci


@pytest.fixture
def credentials(tmp_path) -> Credentials:
    return make_credentials(tmp_path)


class Poller(threading.Thread):
    """A client that repeatedly connects, sends a request and records the reply, until it is stopped."""

    def __init__(self, address: str, authority: str) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.context = ssl.create_default_context(cafile=authority)
        self.answers: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            self.answers.append(ask(self.address, self.context, PASSWORD)[0])


def ask(address: str, context: ssl.SSLContext, password: str) -> tuple[str, bytes]:
    """The status, or the name of the failure, and the server's certificate."""
    client = http.client.HTTPSConnection(address, context=context, timeout=60)
    login = {"Authorization": "Basic " + b64encode(f"{USER}:{password}".encode()).decode()}
    try:
        client.request("GET", "/metrics", headers=login)
        answer = client.getresponse()
        answer.read()
        return str(answer.status), client.sock.getpeercert(binary_form=True) or b""
    except (OSError, http.client.HTTPException) as error:
        return repr(error), b""
    finally:
        client.close()


def rewrite(place: Path, text: str) -> None:
    beside = place.with_suffix(".new")
    beside.write_text(text)
    beside.replace(place)


def test_certificates_users_and_mistakes_are_reloaded_under_load_without_a_failed_scrape(credentials) -> None:
    """A renewed certificate, a new user, and a file that is partly written."""
    credentials.issue("renewed", credentials.ca, "127.0.0.1")
    users = hashed(PASSWORD, 4)
    with secured(credentials, "reload", config_text("renewed", users=users)) as daemon:
        place = credentials.folder / "reload.yml"
        pollers = [Poller(daemon.address, credentials.path("ca.pem")) for _ in range(4)]
        for poller in pollers:
            poller.start()
        context = ssl.create_default_context(cafile=credentials.path("ca.pem"))
        _, first = ask(daemon.address, context, PASSWORD)
        for turn in range(8):
            rewrite(place, config_text("renewed", users=f"{users}\n  user{turn}: {hashed('x', 4)}"))
            credentials.issue("renewed", credentials.ca, "127.0.0.1")
            place.write_text("" if turn % 2 else "tls_server_config: [")  # not atomically, and invalid
            assert ask(daemon.address, context, PASSWORD)[0] == "200", (
                "the previous configuration stays active"
            )
            rewrite(place, config_text("renewed", users=users))
        wait_until(lambda: ask(daemon.address, context, PASSWORD)[1] not in (b"", first))
        wait_until(lambda: all(len(poller.answers) > 3 for poller in pollers))
        for poller in pollers:
            poller.over.set()
            poller.join(60)
        assert {answer for poller in pollers for answer in poller.answers} == {"200"}
        rewrite(place, config_text("renewed", users=hashed("another", 4)))
        assert ask(daemon.address, context, PASSWORD)[0] == "401", "the old password is no longer valid"
        assert ask(daemon.address, context, "another")[0] == "200"
        assert daemon.stop() == 0
