"""The recording rule of a job's odd host, evaluated by promtool, and the same rule in Python, which `bench/odd_host.py` judges on many jobs."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tools import need

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from odd_host import LIMIT, HostFacts, judge, scores, simulated_job  # noqa: E402 - the folder is on the path from here on

MINUTES = 30


def test_the_slow_host_of_most_jobs_is_named_and_no_healthy_job_accused() -> None:
    found = judge(300, 10_000)
    assert found.f1 >= 0.95
    assert found.accused <= 0.01 * found.healthy


def series(job: Mapping[str, HostFacts]) -> Iterator[tuple[str, str]]:
    """What the rule reads of these hosts."""
    for name, host in job.items():
        device = f'job="roce",instance="{name}",device="mlx5_0"'
        yield f'device_workload:roce_owner_queue_pairs:sum{{{device},workload="slurm/7"}}', f"64x{MINUTES}"
        pause = f'{device},port="1",netdev="eth0",priority="3",direction="transmit"'
        yield f"netdev_priority_direction:roce_pfc_pause:ratio_rate5m{{{pause}}}", f"{host.pause!r}x{MINUTES}"
        loss = f'{device},port="1",direction="transmit"'
        yield f"port_direction:roce_transport_loss:ratio_rate5m{{{loss}}}", f"{host.loss!r}x{MINUTES}"
        yield (
            f'roce_link_speed_bytes_per_second{{{device},port="1",netdev="eth0"}}',
            f"{host.speed!r}x{MINUTES}",
        )
        yield f'roce_port_transmit_bytes_total{{{device},port="1"}}', f"0+{host.sent * 60!r}x{MINUTES}"


@pytest.mark.ci
@pytest.mark.parametrize("seed", [4, 5, 10, 22])
def test_promtool_and_python_agree(tmp_path, seed) -> None:
    job, _ = simulated_job(random.Random(seed), slow=seed % 2 == 0)  # noqa: S311 - no secret
    job = dict([*job.items()][:24])
    found = scores(job)
    expected = [
        {"labels": f'{{instance="{name}",workload="slurm/7"}}', "value": round(score, 6)}
        for name, score in found.items()
        if score > LIMIT
    ]
    test = {
        "rule_files": [str(ROOT / "alerts/roce.rules.yml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series(job)],
                "promql_expr_test": [
                    {
                        "expr": "round(max by (instance, workload) (instance_workload:roce_odd_host:score), 0.000001)",
                        "eval_time": f"{MINUTES - 1}m",
                        "exp_samples": expected,
                    }
                ],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps(test))
    ran = subprocess.run(
        (need("promtool"), "test", "rules", file), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:] + ran.stdout[-3000:]
