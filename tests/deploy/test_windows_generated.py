"""The generated files of `deploy/windows/` are those of the catalogue, and Prometheus accepts them."""

from __future__ import annotations

import re
import subprocess

import yaml
from deploy_tools import need
from generate_windows import EVIDENCE, configuration, conversions, entries, evidence, rules
from windows_hosts import CONFIGURATION, WINDOWS, objects

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.windows_names import PERFORMANCE_COUNTER

RULES = WINDOWS / "roce-windows.rules.yml"


def test_the_files_are_generated_from_the_catalogue() -> None:
    """`make generate` writes them."""
    assert CONFIGURATION.read_text() == configuration()
    assert RULES.read_text() == rules()
    assert EVIDENCE.read_text() == evidence(EVIDENCE.read_text())


def test_every_counter_of_the_catalogue_is_an_entry_of_its_own() -> None:
    raw = {
        tuple(name.split("\\"))
        for row in CATALOG
        for one in row.spellings
        if one.source == PERFORMANCE_COUNTER
        for name in one.raw
    }
    found = objects()
    assert {(one["object"], counter["name"]) for one in found for counter in one["counters"]} == raw
    assert {len(one["counters"]) for one in found} == {1}
    assert len({one["name"] for one in found}) == len(found)


def test_no_two_entries_make_the_same_series() -> None:
    """Instances of two objects may have the same name; a repeated series would be an error of the scrape."""
    metrics = [one.metric for one in entries()]
    assert len(metrics) == len(set(metrics))


def test_an_entry_has_the_labels_of_its_row() -> None:
    labels = {row.name: set(row.labels) for row in CATALOG}
    helpers = {one.metric: set(one.row.labels) for one in conversions()}
    for entry in objects():
        (counter,) = entry["counters"]
        of_row = (
            labels.get(counter["metric"]) or helpers.get(counter["metric"]) or {"device", "port", "netdev"}
        )
        assert {entry["instance_label"], *counter.get("labels", {})} == of_row


def test_promtool_accepts_rules_and_scrape_configuration() -> None:
    promtool = need("promtool", "prometheus")
    for command in (
        ["rules", "--lint=all", "--lint-fatal", RULES],
        ["config", "--syntax-only", WINDOWS / "prometheus.yml"],
    ):
        done = subprocess.run([promtool, "check", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_form_of_instances_is_written_once() -> None:
    text = (WINDOWS / "prometheus.yml").read_text()
    assert len(re.findall(r"\[Pp\]rio", text)) == 1
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert len([one for one in job["metric_relabel_configs"] if "[Pp]rio" in str(one.get("regex"))]) == 2


def test_rules_record_rows_of_the_catalogue() -> None:
    names = {row.name for row in CATALOG}
    recorded = {
        rule["record"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    }
    assert recorded <= names
