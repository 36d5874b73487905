"""Access to a real Alertmanager that has our configuration and calls web hooks of the tests."""

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import servers
import yaml
from http_answers import answering
from waiting import HUNG_SECONDS, wait_until

ALERTS = Path(__file__).parents[2] / "alerts"


SECONDS = {"short": "10s", "medium": "15s", "long": "30s", "slow_interval": "1s", "rare_interval": "1s"}
"""Windows and intervals with which a storm ends within a test."""


def rules_with(
    folder: Path, alerts: Mapping[str, Mapping[str, str]], shared: Mapping[str, str] = SECONDS
) -> Path:
    """Our rules by our generator, with these thresholds in place of the shipped ones."""
    for name in ("generate.py", "thresholds.yml", "went.yml"):
        shutil.copy(ALERTS / name, folder)
    shutil.copytree(ALERTS / "rules", folder / "rules")
    thresholds = yaml.safe_load((folder / "thresholds.yml").read_text())
    thresholds["shared"] |= shared
    for alert, values in alerts.items():
        thresholds["alerts"][alert] |= values
    (folder / "thresholds.yml").write_text(yaml.safe_dump(thresholds))
    subprocess.run([sys.executable, str(folder / "generate.py")], check=True)
    return folder / "roce.rules.yml"


def post(url: str, content: object = None) -> Any:
    """The reply of an API; a request with content is a POST."""
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=HUNG_SECONDS) as answer:
        body = answer.read()
    return json.loads(body) if body.strip() else None


class Hooks:
    """The messages that Alertmanager has sent, by receiver."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._answers = self._open.enter_context(answering(lambda _: (200, {})))
        self.url = self._answers.url

    def close(self) -> None:
        """Stop listening."""
        self._open.close()

    @property
    def sent(self) -> list[tuple[str, dict[str, Any]]]:
        """Receiver and message, in their order."""
        return [(one.path.strip("/"), json.loads(one.body)) for one in list(self._answers.requests)]

    def of(self, receiver: str, cluster: str) -> list[dict[str, Any]]:
        """The messages to a receiver about a cluster."""
        return [
            message
            for name, message in self.sent
            if name == receiver and message["groupLabels"].get("cluster") == cluster
        ]


class Alertmanager:
    """A running Alertmanager and its API."""

    def __init__(self, url: str, hooks: Hooks) -> None:
        self.url = url
        self.hooks = hooks

    def ask(self, path: str, content: object = None) -> Any:
        """The reply of the API; a request with content is a POST."""
        return post(f"{self.url}{path}", content)

    def alerts(self, cluster: str) -> list[dict[str, Any]]:
        """The alerts of a cluster with their states."""
        return [alert for alert in self.ask("/api/v2/alerts") if alert["labels"].get("cluster") == cluster]

    def names(self, cluster: str, state: str) -> set[str]:
        """The names of a cluster's alerts in a state, active or suppressed."""
        return {
            alert["labels"]["alertname"]
            for alert in self.alerts(cluster)
            if alert["status"]["state"] == state
        }


def as_received(folder: Path, alerts: Sequence[Mapping[str, Any]]) -> list[str]:
    """What PagerDuty and Slack get from a real Alertmanager with our configuration and templates, one message per alert, in their order."""
    found: dict[str, str] = {}
    with answering(lambda _: (200, {})) as receivers:
        config = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
        config["global"], config["templates"] = {}, [str(ALERTS / "templates/*.tmpl")]
        (pager,), (slack,) = (
            next(one[kind] for one in config["receivers"] if kind in one)
            for kind in ("pagerduty_configs", "slack_configs")
        )
        del pager["routing_key_file"]
        pager |= {"routing_key": "none", "url": f"{receivers.url}/pager"}
        slack["api_url"] = f"{receivers.url}/chat"
        for one in config["receivers"]:
            one.pop("email_configs", None)
        hurry(config["route"])
        with servers.alertmanager(folder, config) as running:
            post(f"{running.url}/api/v2/alerts", alerts)
            wait_until(lambda: len(receivers.requests) >= len(alerts))
        for one in list(receivers.requests):
            said = json.loads(one.body)
            if one.path == "/pager":
                text = f"{said['payload']['summary']}\n\n{said['payload']['custom_details']['what']}"
                assert said["links"]
                assert all(link["href"] in text for link in said["links"])
            else:
                text = f"{said['attachments'][0]['title']}\n\n{said['attachments'][0]['text']}"
            found[text.partition("\n")[0]] = f"{'pager' if one.path == '/pager' else 'chat'}: {text.strip()}"
    return [found[one["annotations"]["summary"]] for one in alerts]


def hooked(hooks: Hooks) -> dict[str, Any]:
    """Our configuration with web hooks as receivers and without delays."""
    config = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
    config["global"] = {}
    config["templates"] = []
    config["receivers"] = [
        {"name": name, "webhook_configs": [{"url": f"{hooks.url}/{name}"}]}
        for name in (receiver["name"] for receiver in config["receivers"])
    ]
    hurry(config["route"])
    return config


def hurry(route: dict[str, Any]) -> None:
    """Delay pages by one second, and tickets by a few: in production tickets wait longer than pages too."""
    for key in ("group_wait", "group_interval"):
        if key in route:
            route[key] = "5s" if route["receiver"] == "tickets" else "1s"
    for below in route.get("routes", []):
        hurry(below)
