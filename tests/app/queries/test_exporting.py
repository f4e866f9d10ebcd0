"""An answer as a file: every row as it is, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json

import polars as pl
import pytest

from stepscope.app.queries.exporting import LARGEST, TYPES, answer_file, too_large, written
from stepscope.ingest.errors import QueryError

HOSTILE = ["=cmd|' /c calc'!A1", "\x1b[2Jx", "<b>", 'a,"b"\nc', "+1", "\u202eabc"]
FRAME = pl.DataFrame({"n": [1, 2, 3, 4, 5, None], "text": HOSTILE, "of": [[1], [], None] * 2})


def test_a_program_gets_every_value_as_it_was_recorded() -> None:
    parquet, text = written(FRAME, "parquet"), written(FRAME, "json")

    assert pl.read_parquet(io.BytesIO(parquet)).to_dicts() == FRAME.to_dicts()
    assert pl.read_json(text).to_dicts() == FRAME.to_dicts()
    assert len(json.loads(text)) == len(FRAME)


def test_a_spreadsheet_gets_no_formula_and_no_control_character() -> None:
    rows = list(csv.DictReader(io.StringIO(written(FRAME, "csv").decode())))

    assert [row["n"] for row in rows] == ["1", "2", "3", "4", "5", ""]
    assert not any(row["text"].startswith(("=", "+", "-", "@", "\t")) for row in rows)
    assert "\x1b" not in "".join(row["text"] for row in rows)


def test_an_answer_without_rows_is_a_file_too() -> None:
    files = {form: written(FRAME.clear(), form) for form in TYPES}

    assert [form for form, file in files.items() if not isinstance(file, bytes)] == []


def test_what_is_too_large_for_a_screen_says_what_writes_it() -> None:
    frame = pl.DataFrame({"text": ["x" * (LARGEST + 1)]})

    assert "stepscope sql" in too_large(frame)
    with pytest.raises(QueryError, match="stepscope sql"):
        written(frame, "csv")


def test_a_file_that_lacks_rows_says_so_in_its_name() -> None:
    assert answer_file("../a b.trace", "csv", is_cut=False) == "a-b-trace-query.csv"
    assert answer_file("run.trace", "json", is_cut=True) == "run-trace-query-cut.json"
