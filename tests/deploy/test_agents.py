"""Agents between exporter and store: every series arrives with its name, its labels and its value.

The configurations are those of deploy/prometheus. The pages do not change, so that what a store received can be
compared value by value: one has every row of the catalogue, the others are what real daemons served at one moment.
"""

import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from deploy_servers import prometheus_version, running, victoria_metrics
from deploy_tools import COMMAND, DEPLOY, ROOT
from http_answers import answering
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from servers import FREE, Labels, Running, Values, help_of, is_healthy, prometheus, serving
from storm_scene import placed
from tools import need
from waiting import HUNG_SECONDS, wait_until

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, Row
from roce_exporter.exposition import Format, Renderer
from roce_exporter.normalise.series import Samples, Series

pytestmark = pytest.mark.nightly

Targets = list[dict[str, object]]
CATALOGUE, STORM, RECORDED = "gpu-r07-n01", "gpu-r07-n02", "stor-r08-n01"
"""The instances, whose names say role and rack."""
PLACES = {
    CATALOGUE: {"role": "gpu", "rack": "r07"},
    STORM: {"role": "gpu", "rack": "r07"},
    RECORDED: {"role": "stor", "rack": "r08"},
}
"""The labels that are derived from their names."""
CLUSTER = "fabric-a"
ODD = 'Zürich "1"\\ 東京'
"""A label value with all that formats escape, and with letters outside ASCII."""
BOUNDS = ("0.001", "0.5", "1", "2.5", "+Inf")
HASTE = {"scrape_interval: 15s": "scrape_interval: 1s", "scrape_timeout: 10s": "scrape_timeout: 1s"}
FOREVER = "1h"
"""How long a store repeats a sample without a successor: series that a test sees vanish were marked as stale."""
OF_THE_SCRAPE = re.compile(r"up|scrape_\w+")


# --- what is served


def series_of(row: Row, number: int) -> Iterator[tuple[Series, int | float]]:
    """Series of a row with made labels and values, which no other row has."""
    labels = tuple(f"{label} {number}" for label in row.labels[:-1])
    if row.kind != HISTOGRAM:
        value = 2**40 + 1009 * number if row.kind == COUNTER else number + 0.125
        yield Series(row, labels + (ODD,) * bool(row.labels)), value
        return
    for place, bound in enumerate(BOUNDS):
        yield Series(row, (*labels, bound), "_bucket"), number * 10 + place
    if (
        not row.spellings
    ):  # the sum of a driver's histogram is not known, and OpenMetrics has no count without a sum
        yield Series(row, (*labels, ""), "_sum"), number + 0.25
        yield Series(row, (*labels, ""), "_count"), number * 10 + len(BOUNDS) - 1


def catalogue(without: str = "") -> str:
    """Every row of the catalogue, or all but one."""
    rows = [(number, row) for number, row in enumerate(CATALOG) if row.name != without]
    found = [one for number, row in rows for one in series_of(row, number)]
    samples = Samples(tuple(series for series, _ in found), tuple(value for _, value in found))
    return Renderer().render([samples], Format.OPENMETRICS).decode() + "# EOF\n"


def served(url: str) -> str:
    """What a daemon serves now."""
    accept = {"Accept": Format.OPENMETRICS.value.partition("; charset")[0]}
    with urllib.request.urlopen(urllib.request.Request(url, headers=accept), timeout=HUNG_SECONDS) as answer:
        assert answer.headers["Content-Type"] == Format.OPENMETRICS.value
        return str(answer.read().decode())


@pytest.fixture(scope="session")
def shown() -> dict[str, str]:
    """The pages: the catalogue, a simulated host after a storm, and a recorded one with an FEC histogram."""
    daemons = {
        STORM: ("--host.simulate=pfc-storm", "--host.simulate-seed=25", "--sampler.mode=fixed"),
        RECORDED: (f"--host.recording={ROOT / 'tests/recordings/mlx5-7.3.txt'}",),
    }
    pages = {CATALOGUE: catalogue()}
    for name, flags in daemons.items():
        with running([str(COMMAND)], flags=[*flags, "--metrics.set=full"]) as daemon:
            url, wanted = f"{daemon.url}/metrics", "roce_pfc_pause_episode_seconds_count" * (name == STORM)
            wait_until(lambda url=url, wanted=wanted: wanted in served(url))
            pages[name] = served(url)
    return pages


# --- the ways


def targets_file(folder: Path, targets: Targets) -> Path:
    """The file of targets, below the folder `targets`."""
    place = folder / "targets/roce.yml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(yaml.safe_dump(targets))
    return place


def receiving_prometheus(folder: Path) -> AbstractContextManager[Running]:
    """A Prometheus that accepts remote writes."""
    flags = ("--web.enable-remote-write-receiver", f"--query.lookback-delta={FOREVER}")
    return prometheus(folder / "end", {"global": {}}, *flags)


def agent(folder: Path, targets: Targets, store: str, message: str = "") -> AbstractContextManager[Running]:
    """A Prometheus agent with agent.yml, as the only one. `message` is the form of its remote writes."""
    config = yaml.safe_load(placed((DEPLOY / "prometheus/agent.yml").read_text(), HASTE))
    (job,) = config["scrape_configs"]
    (hash_of_address,) = (rule for rule in job["relabel_configs"] if rule.get("action") == "hashmod")
    hash_of_address["modulus"] = 1
    (write,) = config["remote_write"]
    write["url"] = f"{store}/api/v1/write"
    if message:
        if prometheus_version() < 3:
            pytest.skip("Prometheus is older than 3: tests/newest.sh has a newer one")
        write["protobuf_message"] = message
    targets_file(folder, targets)
    path = folder / "agent.yml"
    path.write_text(yaml.safe_dump(config))
    return prometheus(folder, path, storage="agent")


def agent_2(folder: Path, targets: Targets, store: str) -> AbstractContextManager[Running]:
    """The same with the second version of remote write, which Prometheus 3 has."""
    return agent(folder, targets, store, "io.prometheus.write.v2.Request")


def vmagent(folder: Path, targets: Targets, store: str) -> AbstractContextManager[Running]:
    """A vmagent with scrape.yml and vmagent.env, as their files ship."""
    shipped = DEPLOY / "prometheus/victoriametrics"
    targets_file(folder, targets)
    config = folder / "scrape.yml"
    config.write_text(placed((shipped / "scrape.yml").read_text(), HASTE))
    places = {"http://victoria-metrics:8428": store, "/var/lib/vmagent": str(folder / "vmagent")}
    lines = placed((shipped / "vmagent.env").read_text(), places).splitlines()
    # A flag is an environment variable with _ for each dot; here it is a flag again.
    words = [line.partition("=") for line in lines if line and not line.startswith("#")]
    flags = {f"-{name.replace('_', '.')}": value for name, _, value in words}
    known = {line.split()[0] for line in help_of(need("vmagent")).splitlines() if line.startswith("  -")}
    if missing := flags.keys() - known:
        pytest.skip(f"vmagent is too old for {missing}: tests/newest.sh has a newer one")
    own = ("-httpListenAddr", "-promscrape.config")
    given = [f"{flag}={value}" for flag, value in flags.items() if flag not in own]
    command = [need("vmagent"), f"-promscrape.config={config}", f"-httpListenAddr={FREE}", *given]
    return serving(command, folder / "vmagent.log", ready=is_healthy)


STORES: dict[str, Callable[[Path], AbstractContextManager[Running]]] = {
    "prometheus": receiving_prometheus,
    "victoriametrics": lambda folder: victoria_metrics(folder, FOREVER),
}
SENDERS = {"agent": agent, "agent_2": agent_2, "vmagent": vmagent}
WAYS = [
    (sender, store)
    for sender in SENDERS
    for store in STORES
    if (sender, store) != ("agent_2", "victoriametrics")
]
APART = {"victoriametrics": 1e-11, "vmagent": 1e-15}
"""The relative difference: VictoriaMetrics keeps twelve digits, and vmagent may differ in the last bit."""


@dataclass
class Arrived:
    """What was served at the beginning of a way, and its end."""

    sender: str
    apart: float
    pages: dict[str, str]
    store: Running = field(init=False)

    def of(self, name: str) -> Values:
        """The samples of an instance in the store."""
        return self.store.values(f'{{__name__!="",instance="{name}"}}')

    def expected(self, name: str) -> Values:
        """The samples of its page with the labels of the target, which win: `role` of a metric becomes `exported_role`."""
        added = {"job": "roce", "instance": name, "cluster": CLUSTER}
        added |= {"replica": "a"} if self.sender.startswith("agent") else {}
        added |= PLACES[name] if self.sender != "vmagent" else {}
        return {
            frozenset(
                {f"exported_{key}" if key in added else key: text for key, text in one.labels.items()}.items()
                | {"__name__": one.name, **added}.items()
            ): float(one.value)
            for family in text_string_to_metric_families(self.pages[name])
            for one in family.samples
        }


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def arrived(request, shown, tmp_path_factory) -> Iterator[Arrived]:
    """One way after the other; every page was scraped, and what must arrive of it is stored."""
    sender, store = request.param
    folder = tmp_path_factory.mktemp(sender)
    found = Arrived(sender, APART.get(store) or APART.get(sender, 0.0), dict(shown))
    with ExitStack() as stack:
        pages = stack.enter_context(answering(lambda path: (200, found.pages[path.strip("/")].encode())))
        pages.headers["Content-Type"] = Format.OPENMETRICS.value
        targets: Targets = [
            {
                "targets": [pages.url.removeprefix("http://")],
                "labels": {"instance": name, "cluster": CLUSTER, "__metrics_path__": f"/{name}"},
            }
            for name in PLACES
        ]
        found.store = stack.enter_context(STORES[store](folder))
        stack.enter_context(SENDERS[sender](folder, targets, found.store.url))
        for name in PLACES:
            wait_until(lambda name=name: found.store.values(f'up{{instance="{name}"}} == 1'))
            wait_until(lambda name=name: len(found.of(name)) >= len(found.expected(name)))
        yield found


def name_of(labels: Labels) -> str:
    return dict(labels)["__name__"]


def bounds_as_numbers(values: Values) -> Values:
    """Buckets by the number of their bound: Prometheus 3 writes le="1.0" for our le="1"."""
    return {
        frozenset((key, str(float(text)) if key == "le" else text) for key, text in labels): value
        for labels, value in values.items()
    }


@pytest.mark.parametrize("name", PLACES)
def test_every_series_arrives_with_its_name_labels_and_value(arrived, name) -> None:
    """And nothing else but what the scrape is known to add."""
    found, expected = bounds_as_numbers(arrived.of(name)), bounds_as_numbers(arrived.expected(name))
    assert len(expected) > 100
    added = {name_of(labels) for labels in found.keys() - expected.keys()}
    assert {one for one in added if not OF_THE_SCRAPE.fullmatch(one)} == set()
    assert {labels: found.get(labels) for labels in expected} == pytest.approx(
        expected, rel=arrived.apart, abs=0
    )
    if name == CATALOGUE:
        assert any(ODD in dict(labels).values() for labels in found)
        # a whole number is spelt 1 or 1.0, depending on the way; rules and dashboards select this bound by its text
        assert "0.5" in {dict(labels).get("le") for labels in arrived.of(name)}


def test_a_series_that_is_not_served_any_more_ends(arrived) -> None:
    """By a staleness marker: without it the store would repeat the last value, here for an hour."""
    gone = f'roce_port_up{{instance="{CATALOGUE}"}}'
    assert arrived.store.values(gone)
    before = arrived.pages[CATALOGUE]
    arrived.pages[CATALOGUE] = catalogue(without="roce_port_up")
    wait_until(lambda: not arrived.store.values(gone))
    assert len(arrived.of(CATALOGUE)) > len(CATALOG)
    arrived.pages[CATALOGUE] = before
    wait_until(lambda: arrived.store.values(gone))
