"""What a real engine tells of a step stands in the step's own table."""

from __future__ import annotations

from stepscope.app.debug import Session
from tests.analyzers.rank_rows import access, collective
from tests.traces import trace_of

STEP = {"step": 1, "ts_ns": 20_000, "dur_ns": 5_000, "kind": "decode", "kv_blocks_free": 9}


def told(**more: object) -> dict[str, str]:
    steps = [{**STEP, "step": 0, "ts_ns": 0}, {**STEP, **more}]
    session = Session(trace_of(steps=steps))
    session.goto(step=1)
    return dict(session.detail().tables()[0].rows)  # type: ignore[arg-type]  # a row is a label and a value


def test_a_step_tells_when_it_was_formed_and_what_of_its_free_blocks_is_cached() -> None:
    said = told(
        formed_ns=12_000, kv_blocks_cached=4, kv_blocks_total=30, pp_stage=1, reserve_ratio=0.75
    )

    assert (said["formed"], said["began"]) == ("0.012 ms", "0.020 ms")
    assert said["KV blocks free"] == "9 of 30, 4 of them cached"
    assert (said["pipeline stage"], said["reserve ratio"]) == ("1", "0.75")


def test_what_a_step_does_not_tell_is_not_said() -> None:
    assert not {"formed", "pipeline stage", "reserve ratio"} & told().keys()
    assert told()["KV blocks free"] == "9"


def core_time(**ends: int | None) -> list[str]:
    spans = [
        {
            "ts_ns": 10,
            "end_ns": end,
            "step": 1,
            "task": at,
            "block": 0,
            "core": at,
            "shape": "AIC",
            "group": 0,
            "core_kind": "AIC",
        }
        for at, end in enumerate(ends.values())
    ]
    trace = trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}], core_spans=spans)
    (table,) = (each for each in Session(trace).detail().tables() if each.title == "core groups")
    return [str(row[-1]) for row in table.rows]


def test_how_long_cores_ran_is_not_said_while_one_of_them_still_runs() -> None:
    assert core_time(one=30, other=50) == ["60 ns"]
    assert core_time(one=30, other=None) == core_time(one=None) == [""]


def test_a_column_of_which_nothing_is_known_is_left_out_and_numbers_stand_right() -> None:
    rows = [
        {"step": 1, "ts_ns": 0, "row": at, "request": f"r{at}", "phase": "prefill",
         "num_tokens": 2_048, "num_computed": 0}
        for at in range(2)
    ]  # fmt: skip
    trace = trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "prefill"}], batch_rows=rows)

    (batch,) = (each for each in Session(trace).detail().tables() if each.title == "batch")

    assert batch.columns == ("row", "request", "phase", "tokens", "computed")
    assert batch.rows[0] == ("0", "r0", "prefill", "2,048", "0")
    assert batch.stands_right() == [True, False, False, True, True]


def test_a_step_lists_its_segments_collectives_and_the_buffers_that_it_touched() -> None:
    step = {"step": 1, "ts_ns": 0, "dur_ns": 100, "kind": "mixed"}
    segment = {"step": 1, "ts_ns": 0, "segment": 0, "phase": "prefill", "num_rows": 1,
               "num_tokens": 7}  # fmt: skip
    rows = [access("host", "write", 1, epoch=1), access("copy", "copy", 2, epoch=1),
            access("host", "write", 3, epoch=2)]  # fmt: skip
    trace = trace_of(
        steps=[step], segments=[segment], accesses=rows, collectives=[collective(0, 1)]
    )

    tables = {table.title: table for table in Session(trace).detail().tables()}

    assert tables["segments"].columns == ("segment", "phase", "rows", "tokens")
    assert tables["segments"].rows == (("0", "prefill", "1", "7"),)
    assert tables["collectives"].rows[0][:2] == ("1", "all-reduce")
    assert tables["buffers"].rows == (("b", "2", "2", "1", "write on host", "1 read"),)
