"""A trace at a prompt: opening, tables, SQL, how it shows itself."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.errors import QueryError, SchemaMismatch, TraceError, UnknownFormat
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.manifest import Manifest, ReadReport
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.traces import trace_of

STEPS = [
    {"step": 0, "ts_ns": 10, "kind": "prefill"},
    {"step": 1, "ts_ns": 20, "kind": "decode"},
    {"step": 2, "ts_ns": 30, "kind": "decode"},
]


def test_every_table_is_there_with_the_columns_and_types_of_the_schema() -> None:
    trace = trace_of(steps=STEPS)

    for table in TABLES:
        frame: pl.LazyFrame = getattr(trace, table.name)
        assert frame.collect_schema() == polars_schema(table)
        assert trace.table(table.name) is frame


def test_a_table_is_had_when_it_has_a_row() -> None:
    trace = trace_of(steps=STEPS, counters=[])

    assert trace.has("steps")
    assert not trace.has("counters")
    assert not trace.has("spans")


def test_a_table_that_does_not_exist_is_answered_with_near_matches() -> None:
    with pytest.raises(SchemaMismatch, match="no table 'step'; did you mean steps"):
        trace_of().table("step")


def test_missing_columns_are_null_and_the_missing_rank_is_0() -> None:
    steps = pl.DataFrame({"step": [1], "ts_ns": [2], "kind": ["idle"]})

    trace = Trace.from_tables({"steps": steps}, Manifest("test"))

    row = trace.steps.collect().row(0, named=True)
    assert row["rank"] == 0
    assert row["num_running"] is None


@pytest.mark.parametrize("kind", [pl.Enum(["idle"]), pl.Categorical()])
def test_text_of_a_few_values_is_text(kind: pl.DataType) -> None:
    steps = pl.DataFrame({"step": [1], "ts_ns": [2], "kind": pl.Series(["idle"], dtype=kind)})

    trace = Trace.from_tables({"steps": steps}, Manifest("test"))

    assert trace.steps.collect()["kind"].to_list() == ["idle"]
    assert trace.steps.collect_schema()["kind"] == pl.String


@looped(
    ("columns", "why"),
    [
        ({"step": [1], "ts_ns": [2]}, "'kind' missing"),
        ({"step": [1], "ts_ns": [2], "kind": ["x"], "mood": [1]}, "unknown columns 'mood'"),
        ({"step": [1], "ts_ns": ["2"], "kind": ["x"]}, "'ts_ns' is String, not Int64"),
        ({"step": [1.5], "ts_ns": [2], "kind": ["x"]}, "'step' is Float64, not Int64"),
    ],
)
def test_a_frame_that_does_not_fit_the_schema_is_refused(
    columns: dict[str, list[object]], why: str
) -> None:
    with pytest.raises(SchemaMismatch, match=why):
        Trace.from_tables({"steps": pl.DataFrame(columns)}, Manifest("test"))


def test_sql_runs_over_all_tables() -> None:
    trace = trace_of(steps=STEPS, counters=[{"ts_ns": 20, "name": "waiting", "value": 4.0}])

    answer = trace.sql("select s.step, c.value from steps s join counters c on s.ts_ns = c.ts_ns")

    assert answer.rows() == [(1, 4.0)]


@pytest.mark.parametrize(
    "query",
    ["drop table steps", " /* a */ TRUNCATE TABLE steps", "-- a\ncreate table x as select 1"],
)
def test_sql_that_would_change_tables_is_refused(query: str) -> None:
    trace = trace_of(steps=STEPS)

    with pytest.raises(QueryError, match="a query only asks"):
        trace.sql(query)

    assert trace.sql("select count(*) from steps").item() == 3


@looped("query", ["(select * from steps)", "-- a\nWITH a AS (SELECT * FROM steps) SELECT * FROM a",
     "from steps", "/* drop */\n\tselect * from steps"])  # fmt: skip
def test_a_query_may_begin_in_any_way_that_asks(query: str) -> None:
    assert len(trace_of(steps=STEPS).sql(query)) == 3


@looped(
    ("query", "why"),
    [
        ("select * from stepz", "no table 'stepz'; did you mean steps"),
        ("select * from findingz", "no table 'findingz'; did you mean findings?"),
        ("select * from nowhere_at_all", r"slot_tokens, .*findings"),
        ("select knd from steps", "no column 'knd'; did you mean kind"),
        ("select * from nowhere_at_all", "no table 'nowhere_at_all'; there are steps, batch_rows"),
        ("selec * from steps", "does not run"),
        ("select nosuchfunction(1)", "does not run"),
        ("update steps set step = 1", "does not run"),
        ("", "does not run"),
    ],
)
def test_a_query_that_does_not_run_says_why_in_one_line(query: str, why: str) -> None:
    with pytest.raises(QueryError, match=why) as refused:
        trace_of(steps=STEPS).sql(query)

    assert "\n" not in str(refused.value)


def test_it_shows_what_is_in_it_and_what_to_doubt() -> None:
    trace = trace_of(
        name="run.trace",
        steps=STEPS,
        producer="vllm",
        scenario="mix-admission",
        variant="before",
        closed=False,
        dropped={"spans": 1_200},
        report=ReadReport(repaired={"torn event": 2}, notes=("a note",)),
    )

    assert repr(trace).splitlines() == [
        "Trace run.trace",
        "  producer   vllm",
        "  clock      wall",
        "  ranks      0",
        "  run        mix-admission / before",
        "  steps      3: 1 prefill, 2 decode",
        "  steps                   3 rows  complete",
        "  ! not closed: the recording ended before it was finished",
        "  ! dropped 1,200 rows of spans",
        "  ! repaired 2: torn event",
        "  ! a note",
    ]


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\x1b[31mred\x07", "a\nb"])
def test_text_of_a_trace_is_never_markup_or_terminal_control(hostile: str) -> None:
    trace = trace_of(
        name=hostile,
        steps=[{"step": 0, "kind": hostile}],
        producer=hostile,
        scenario=hostile,
        tables={"steps": hostile},
        recovered={hostile: {"rows": {}, "notes": [hostile]}},
        dropped={hostile: 1},
        report=ReadReport(notes=(hostile,)),
    )

    assert "<script" not in trace._repr_html_()
    assert all(line.isprintable() for line in repr(trace).splitlines())
    assert "\nb" not in repr(trace)


def test_what_a_manifest_cannot_mean_by_recovered_is_left_out() -> None:
    trace = trace_of(closed=False, recovered={"0": {"rows": 3, "notes": 5}, "1": "?"})

    assert "rank 0: recovered 0 rows, discarded 0 bytes" in repr(trace)


@pytest.mark.parametrize("name", ["notes.txt", "notes.txt.gz", "picture.png"])
def test_an_unknown_format_is_answered_with_those_that_are_known(tmp_path: Path, name: str) -> None:
    text = b"dear diary"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)

    with pytest.raises(UnknownFormat, match=r"formats that can be read: .*stepscope trace dir"):
        Trace.open(tmp_path / name)


def test_a_directory_without_a_trace_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()

    with pytest.raises(UnknownFormat, match="the directory holds no trace"):
        Trace.open(tmp_path)


def test_a_missing_file_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nope.trace: no such file or directory"):
        Trace.open(tmp_path / "nope.trace")


def test_an_empty_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_bytes(b"")

    with pytest.raises(TraceError, match=r"empty.json: the file is empty"):
        Trace.open(tmp_path / "empty.json")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(TraceError, match="neither a file nor a directory"):
        Trace.open(tmp_path / "pipe")


def test_what_may_not_be_read_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.json").write_text("{}")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Root may read everything, so the refusal is played.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceError, match=r"secret.json: cannot be read: Permission denied"):
        Trace.open(tmp_path / "secret.json")
