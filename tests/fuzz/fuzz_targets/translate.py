"""A file that `translate` reads: the first byte is its kind, a dashboard, rules or PromQL."""

from pathlib import Path

from roce_exporter.migrate.foreign_files import recorded, text_of_file, translate_file
from roce_exporter.migrate.promql_names import names_of
from roce_exporter.migrate.translation import FileReport, UnreadableError, report_json, report_text
from roce_exporter.yaml_document import DocumentError

ALLOWED = (UnreadableError, DocumentError)
CORE = tuple(
    f"migrate/{name}.py"
    for name in (
        "dashboards",
        "foreign_files",
        "places",
        "promql",
        "promql_names",
        "promql_rewrite",
        "translation",
    )
)
FILES = (Path("a.json"), Path("a.yml"), Path("a.promql"))
WORDS = tuple(
    map(
        str.encode,
        (
            "node_infiniband_link_downed_total",
            "node_ethtool_received_prio3_pause",
            "rdma_port_rcv_data_total",
            "by (device)",
            "without (port)",
            "on (device) group_left (x)",
            "[$__rate_interval]",
            "rate(",
            '"expr": "',
            '"legendFormat": "{{device}}"',
            "label_values(",
            "groups:\n- rules:\n  - expr: ",
        ),
    )
)
NAMES = names_of()


def decode(data: bytes) -> None:
    file = FILES[data[0] % len(FILES)] if data else FILES[0]
    try:
        text = text_of_file(data[1:])
        names = recorded(file, text, NAMES)
        first = FileReport(str(file), names)
        once = translate_file(file, text, first)
    except ALLOWED as error:
        message = str(error)
        assert len(message.splitlines()) == 1
        return
    assert report_text([first])
    assert report_json([first])
    second = FileReport(str(file), names)
    assert translate_file(file, once, second) == once or first.left
