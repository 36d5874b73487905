"""The one reader of YAML files: entries with file and line; expensive or ambiguous input is refused."""

from pathlib import Path

import pytest
import yaml

from roce_exporter.yaml_document import (
    MAX_BYTES,
    MAX_DEPTH,
    DocumentError,
    _Composer,
    items_of,
    mapping_of,
    parse_document,
    read_text,
    text_of,
    values_of,
)

FILE = Path("a.yml")


def test_an_entry_has_its_key_its_line_and_its_value() -> None:
    outer = mapping_of(parse_document(FILE, "# first\na:\n  b: 1\n  c:\n  - x\n  - y\n"))["a"]
    inner = mapping_of(outer)
    assert (outer.key, outer.line, inner["b"].key, inner["b"].line) == ("a", 2, "a.b", 3)
    assert text_of(inner["b"]) == "1", "as it is written"
    assert [(item.line, text_of(item)) for item in items_of(inner["c"])] == [(5, "x"), (6, "y")]
    assert [text_of(one) for one in (*values_of(inner["b"]), *values_of(inner["c"]))] == ["1", "x", "y"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~", "\ufeff"])
def test_a_file_without_keys_has_none(text) -> None:
    assert mapping_of(parse_document(FILE, text)) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "a.yml:2: a: is given twice; keep one"),
        ("- a\n", "a.yml:1: the file: is not a mapping"),
        ("a: 1\n---\nb: 2\n", "a.yml:2: is not YAML: but found another document; correct it"),
        (
            "a: &x 1\nb: *x\n",
            "a.yml:2: is not YAML: aliases are not supported, write the value out; correct it",
        ),
        ("&x [*x]", "a.yml:1: is not YAML: aliases are not supported"),
        ('a: "\\ud800"\n', "a.yml:1: is not YAML: an escape for NUL or for half of a character; correct it"),
        ('a: "b\\0"\n', "a.yml:1: is not YAML: an escape for NUL or for half of a character; correct it"),
        ('"\\udfff": 1\n', "a.yml:1: is not YAML: an escape for NUL or for half of a character; correct it"),
        ('a: "\\UFFFFFFFF"\n', "a.yml: is not YAML: it cannot be parsed; correct it"),
        ('a: "\\U00110000"\n', "a.yml: is not YAML: it cannot be parsed; correct it"),
        ("%YAML " + "1" * 5000 + ".1\n", "a.yml: is not YAML: it cannot be parsed; correct it"),
        ("[" * 100_000, "a.yml:1: is not YAML: it is nested more than 16 levels deep; correct it"),
        ("{a: " * 100_000, "a.yml:1: is not YAML: it is nested more than 16 levels deep; correct it"),
        ('"a\\nb": 1\n"a\\nb": 1\n', "a.yml:2: a b: is given twice; keep one"),
    ],
    ids=range(14),
)
def test_a_bad_document_is_refused_in_one_line(text, message) -> None:
    with pytest.raises(DocumentError) as caught:
        mapping_of(parse_document(FILE, text))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1


def test_the_maximum_depth_is_read() -> None:
    assert parse_document(FILE, "[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(DocumentError, match="nested more than"):
        parse_document(FILE, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert parse_document(FILE, "a:\n" + "- [[1]]\n" * 100), "from the file down, not over it"


def test_open_brackets_are_counted_where_they_are_scanned() -> None:
    """PyYAML searches 1024 characters ahead for the end of a key, and scans all open brackets for each of them."""
    composer = _Composer("[" * 1000)
    with pytest.raises(yaml.YAMLError, match="nested more than 16 levels deep"):
        composer.get_single_node()
    assert composer.flow_level == MAX_DEPTH


def test_a_too_large_or_missing_file_is_reported_with_the_flag(tmp_path) -> None:
    file = tmp_path / "a.yml"
    file.write_bytes(b"#" * MAX_BYTES)
    assert len(read_text(file, "--flag")) == MAX_BYTES
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    for path, problem in (
        (file, "it is larger than 256 KiB"),
        (Path("/dev/zero"), "it is larger than 256 KiB"),
        (tmp_path, "Is a directory"),
        (Path("a\0b"), "it is not a valid path"),
    ):
        with pytest.raises(DocumentError, match=f"cannot be read: {problem}; check --flag"):
            read_text(path, "--flag")
