"""The JSON of `rdma -j` in a recording: rows with the name of a device, checked when the recording is opened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from roce_exporter.host.recorded.dcb_recorded import is_count, shown
from roce_exporter.host.recorded.tree import RecordingError

if TYPE_CHECKING:
    from roce_exporter.host.recorded.tree import Tree

Rows = tuple[dict[str, Any], ...]

RDMA_FILES = ("dev", "link", "statistic", "mode", "mode_supported", "resource")

ON = "optional-counters"
SUPPORTED = "supported optional-counters"


def read_rdma(tree: Tree, path: str) -> dict[str, Rows]:
    """The rows of each recorded file of `RDMA_FILES`; `path` names the recording in errors.

    Raises:
        RecordingError: a file is malformed; one line that names it.
    """
    found: dict[str, Rows] = {}
    for kind in RDMA_FILES:
        name = f"rdma/{kind}.json"
        if name in tree.files:
            what = f"recording {path}: {name}"
            rows = read_rows(tree.files[name], what)
            for row in rows:
                _check_row(row, what, kind in ("statistic", "resource"))
            found[kind] = rows
    return found


def read_json(text: bytes, what: str, tool: str) -> object:
    """The document that `tool` printed; `what` names the file.

    Raises:
        RecordingError: it is not JSON; one line.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise RecordingError(f"{what}: not JSON ({error}); record it with `{tool}`") from None
    except RecursionError:
        raise RecordingError(f"{what}: not JSON (nested too deeply); record it with `{tool}`") from None


def read_rows(text: bytes, what: str) -> Rows:
    """The rows in the output of one `rdma -j` command, which prints nothing if it has no row.

    Raises:
        RecordingError: it is not a list of objects with the name of a device, `ifindex` and `port` being numbers.
    """
    rows = read_json(text.strip() or b"[]", what, "rdma -j")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("ifname"), str) for row in rows
    ):
        raise RecordingError(f"{what}: not a list of objects with an ifname; record it with `rdma -j`")
    for row in rows:
        for key in ("port", "ifindex"):
            if key in row:
                _check_count(row, key, what)
    return tuple(rows)


def _check_row(row: dict[str, Any], what: str, numbers: bool) -> None:
    for key, value in row.items():
        if numbers and key != "ifname":
            _check_count(row, key, what)
        if key in (ON, SUPPORTED) and not _is_list_of_names(value):
            raise RecordingError(f"{what}: {key} of {row['ifname']} is {shown(value)}, not a list of names")


def _check_count(row: dict[str, Any], key: str, what: str) -> None:
    if not is_count(row[key]):
        raise RecordingError(f"{what}: {key} of {row['ifname']} is {shown(row[key])}, not a whole number")


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
