"""Jobs: whose RDMA traffic is behind the ports, and which job suffers."""

from __future__ import annotations

from boards.jobs_counters import COUNTER_PANELS
from boards.jobs_functions import FUNCTION_PANELS
from boards.jobs_hosts import ACROSS_PANELS, BY_HOST_PANELS, LIMIT_PANELS, SURVEY_PANELS, WHO_PANELS
from boards.jobs_owners import FIRST_PANELS, OVER_TIME_PANELS
from boards.jobs_series import OF_JOBS
from boards.model import Board, Row
from boards.scopes import HOST, alerts

BOARD = Board(
    "roce-jobs",
    "RoCE / Jobs",
    "Processes, pods and jobs behind the counters of ports. Needs the recording rules of alerts/ and dashboards/.",
    OF_JOBS,
    (
        Row("Now", "whose job is on a faulty port, and is it the job's fault", FIRST_PANELS),
        Row("Over time", "since when: the worst workloads of the range", OVER_TIME_PANELS),
        Row("Across hosts", "hosts of one job should be alike", BY_HOST_PANELS),
        Row("One host: workloads", "the host that is chosen above", ACROSS_PANELS),
        Row(
            "One host: congestion and loss", "which workload, where the NIC counts by process", COUNTER_PANELS
        ),
        Row("One host: owners", "which processes, pods and units are behind a workload", WHO_PANELS),
        Row("One host: virtual functions", "which pod has which VF, and what it sends", FUNCTION_PANELS),
        Row("Limits", "a device without free objects refuses new connections", LIMIT_PANELS),
        Row("Hosts and surveys", "what is missing here is missing above", SURVEY_PANELS),
    ),
    (alerts(HOST),),
)
