"""Ten thousand hosts divided among agents: each is scraped by exactly one, shares are alike, and pairs scrape the same hosts.

One Prometheus has the rules of every agent as a job of its own, so that all of them see the same targets at once.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_servers import prometheus, started
from deploy_tools import fetch, need, wait_until
from fleet_targets import FOLDER, PORT, hosts, job_of, targets_of
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.nightly

FLEET = hosts(10_000)
AGENTS = 4
REPLACE = re.search(r"sed '(s/regex: .*?)' agent\.yml", (FOLDER / "agent.yml").read_text())
"""The command that agent.yml documents for the files of the other agents."""
BUCKETS = {"roce-four": 4, "roce-five": 5}

Shares = dict[str, frozenset[str]]


def addresses() -> list[str]:
    return [f"{host.domain_name}:{PORT}" for host in FLEET]


def ranges(job: str) -> list[str]:
    """The buckets of each agent, from the rule of agent 0 and the comment above it."""
    text = (FOLDER / "sharding.yml").read_text()
    comment = re.search(rf"# agent 0 of \d: ([^\n]*)\n  - job_name: {job}\n", text)
    first = job_of("sharding.yml", job)["relabel_configs"][-1]["regex"]
    assert comment
    return [first, *re.findall(r"\d\S*\\d\S*(?<!,)|\d\[\S*(?<!,)", comment[1])]


def agent_job(number: int, replica: str) -> dict[str, Any]:
    """The scrape job of an agent, from agent.yml by the documented command."""
    assert REPLACE
    script = REPLACE[1].replace('"3"', f'"{number}"')
    command = ["sed", script, FOLDER / "agent.yml"]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    (job,) = yaml.safe_load(text)["scrape_configs"]
    return {**job, "job_name": f"{replica}{number}"}


def modulus_job(number: int, agents: int) -> dict[str, Any]:
    """An agent of another number of agents."""
    job = agent_job(number, f"of-{agents}-")
    next(rule for rule in job["relabel_configs"] if "modulus" in rule)["modulus"] = agents
    return job


def bucket_jobs(job: str) -> list[dict[str, Any]]:
    jobs = []
    for number, buckets in enumerate(ranges(job)):
        copy = job_of("sharding.yml", job)
        copy["relabel_configs"][-1]["regex"] = buckets
        jobs.append({**copy, "job_name": f"{job}{number}"})
    return jobs


@pytest.fixture(scope="module")
def shares(tmp_path_factory: pytest.TempPathFactory) -> Shares:
    """The addresses that each job scrapes."""
    first = [agent_job(number, "a") for number in range(AGENTS)]
    first += [modulus_job(number, 5) for number in range(5)]
    first += [job for name in BUCKETS for job in bucket_jobs(name)]
    return shares_of(tmp_path_factory.mktemp("shares"), first, addresses(), 4 * len(FLEET))


def shares_of(
    folder: Path, jobs: list[dict[str, Any]], targets: list[str], count: int, **labels: str
) -> Shares:
    """What each job scrapes of these targets, by a real Prometheus, once these are as many as `count`.

    No host is scraped in the time of a test.
    """
    write_targets(folder, targets, **labels)
    config = {"global": {"scrape_interval": "1d", "scrape_timeout": "10s"}, "scrape_configs": jobs}
    (folder / "shards.yml").write_text(yaml.safe_dump(config))
    with prometheus(need("prometheus", "prometheus"), folder / "shards.yml", folder) as server:
        wait_until(lambda: scraped(server.url) >= count, "all targets are scraped")
        found = targets_of(server.url)
    return {
        job["job_name"]: frozenset(
            one.discovered["__address__"] for one in found if one.labels.get("job") == job["job_name"]
        )
        for job in jobs
    }


def scraped(url: str) -> int:
    """How many targets a Prometheus scrapes, from its own metrics: the list of them is long."""
    counts = re.findall(
        r"^prometheus_target_scrape_pool_targets\{.*\} (\d+)", fetch(f"{url}/metrics"), re.MULTILINE
    )
    return sum(map(int, counts))


def write_targets(folder: Path, targets: list[str], **labels: str) -> None:
    (folder / "targets").mkdir()
    (folder / "targets/roce.yml").write_text(yaml.safe_dump([{"targets": targets, "labels": labels}]))


def group(shares: Shares, prefix: str) -> list[frozenset[str]]:
    return [share for job, share in shares.items() if job.startswith(prefix)]


@pytest.mark.parametrize(("prefix", "agents"), [("a", 4), ("of-5-", 5), ("roce-four", 4), ("roce-five", 5)])
def test_each_host_is_scraped_by_one_agent(shares: Shares, prefix: str, agents: int) -> None:
    """Shares differ from their mean by at most a tenth."""
    parts = group(shares, prefix)
    assert len(parts) == agents
    assert Counter(address for part in parts for address in part) == Counter(addresses())
    mean = len(FLEET) / agents
    assert [len(part) for part in parts] == pytest.approx([mean] * agents, rel=0.1)


def test_both_of_a_pair_scrape_the_same_hosts(tmp_path: Path, shares: Shares) -> None:
    """Two processes, and for the second one the targets in another order."""
    jobs = [agent_job(0, "b")]
    assert shares_of(tmp_path, jobs, addresses()[::-1], len(shares["a0"])) == {"b0": shares["a0"]}


def moved(before: list[frozenset[str]], after: list[frozenset[str]]) -> float:
    """The share of hosts that another agent scrapes."""
    stay = sum(len(old & new) for old, new in zip(before, after, strict=False))
    return 1 - stay / len(FLEET)


def test_a_fifth_agent_moves_what_the_comment_says(shares: Shares) -> None:
    assert moved(group(shares, "roce-four"), group(shares, "roce-five")) == pytest.approx(1 / 5, abs=0.02)
    assert moved(group(shares, "a"), group(shares, "of-5-")) == pytest.approx(4 / 5, abs=0.02)


def test_a_key_keeps_a_fabric_together(tmp_path: Path) -> None:
    """Its hosts are all scraped by one agent, whichever it is."""
    jobs = [agent_job(number, "a") for number in range(AGENTS)]
    found = shares_of(tmp_path, jobs, addresses()[:100], 100, __tmp_hash="fabric-a")
    assert sorted(len(part) for part in found.values()) == [0, 0, 0, 100]


@contextmanager
def vmagent(folder: Path, number: int, jobs: list[dict[str, Any]], *flags: str) -> Iterator[str]:
    """The URL of a vmagent of this number; nothing answers where it would write to."""
    own = folder / f"vmagent-{number}"
    own.mkdir()
    config = {"global": {"scrape_interval": "1d"}, "scrape_configs": jobs}
    (folder / "vmagent.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        need("vmagent", "victoria-metrics"),
        f"-promscrape.config={folder / 'vmagent.yml'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-remoteWrite.url=http://127.0.0.1:{free_port()}/",
        f"-remoteWrite.tmpDataPath={own}",
        f"-promscrape.cluster.memberNum={number}",
        *flags,
    ]
    with started(command, port, own / "log", ready="/health") as server:
        yield server.url


def vmagent_shares(folder: Path, agents: int, copies: int) -> list[frozenset[str]]:
    """What each vmagent of a group scrapes, without any rule, once that is every host as often as there are copies."""
    files = job_of("sharding.yml", "roce-four")["file_sd_configs"]
    plain = {"job_name": "roce", "file_sd_configs": files}
    flags = (
        f"-promscrape.cluster.membersCount={agents}",
        f"-promscrape.cluster.replicationFactor={copies}",
    )
    with ExitStack() as running:
        urls = [running.enter_context(vmagent(folder, number, [plain], *flags)) for number in range(agents)]
        wait_until(
            lambda: sum(len(targets_of(url)) for url in urls) >= copies * len(FLEET),
            "all targets are scraped",
        )
        return [frozenset(one.discovered["__address__"] for one in targets_of(url)) for url in urls]


@pytest.mark.parametrize("copies", [1, 2])
def test_vmagent_divides_by_itself(tmp_path: Path, copies: int) -> None:
    """Each host is scraped by as many as there are copies."""
    write_targets(tmp_path, addresses())
    parts = vmagent_shares(tmp_path, AGENTS, copies)
    counts = Counter(address for part in parts for address in part)
    assert counts == dict.fromkeys(addresses(), copies)
    mean = copies * len(FLEET) / AGENTS
    assert [len(part) for part in parts] == pytest.approx([mean] * AGENTS, rel=0.1)


def test_vmagent_understands_the_rules_and_has_another_hash(tmp_path: Path, shares: Shares) -> None:
    write_targets(tmp_path, addresses())
    with vmagent(tmp_path, 0, bucket_jobs("roce-four")) as url:
        wait_until(lambda: len(targets_of(url)) >= len(FLEET), "all targets are scraped")
        found = targets_of(url)
    parts = [
        {one.discovered["__address__"] for one in found if one.labels.get("job") == f"roce-four{number}"}
        for number in range(AGENTS)
    ]
    assert Counter(address for part in parts for address in part) == Counter(addresses())
    assert [set(part) for part in group(shares, "roce-four")] != parts
