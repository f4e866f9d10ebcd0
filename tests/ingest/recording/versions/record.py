"""Record rows with whichever stepscope is imported: `record.py FOLDER kill|close|cache`.

`make.py` runs it with the code of an earlier commit, so it uses what the recorder of that day has
and nothing else of ours. `rows.json` is written first and states what is on record afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

FULL_ROWS = 2
BEGIN_NS = 1_000_000
SMALLEST_BYTES = 16 << 10
Row = dict[str, Any]

PROFILE = {
    "traceEvents": [
        {"ph": "X", "name": f"op {number}", "cat": "cpu_op", "ts": 10 * number, "dur": 5,
         "pid": 1, "tid": 2, "args": {"number": number}}
        for number in range(3)
    ]
}  # fmt: skip


def main(folder: Path, how: str) -> None:
    """Record into `run.trace` and be killed or close it, or open a profile with a cache."""
    folder.mkdir(parents=True, exist_ok=True)
    if how == "cache":
        open_with_cache(folder)
        return
    try:
        from stepscope.ingest.recorder import Recorder  # noqa: PLC0415 - of that day
    except ImportError:
        save(folder)
        return
    make_segments_small()

    clock = count(BEGIN_NS, 10)
    recorder = Recorder(
        folder / "run.trace", producer="versions", config={"block_size": 16},
        now_ns=lambda: next(clock),
    )  # fmt: skip
    recorders = [recorder]
    rows, dropped = record_tables(recorder, clock)
    record_span(recorder, clock, rows)
    if hasattr(recorder, "batches"):
        record_in_two(recorder, clock, rows)
        record_bulk(recorder, clock, rows)
        record_batches(recorder, clock, rows)
    if hasattr(recorder, "_writer"):  # other processes of a rank record parts of it
        recorders.append(Recorder(folder / "run.trace", producer="versions", part="front-end"))
        record_part(recorders[1], clock, rows)
    note(folder, rows, dropped)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    for each in reversed(recorders):
        each.close()


def note(folder: Path, rows: dict[str, list[Row]], dropped: dict[str, int]) -> None:
    """Write down what is on record, and the tables of that day."""
    columns = {table.name: list(table.names) for table in tables()}
    recorded = {"columns": columns, "rows": rows, "dropped": dropped}
    (folder / "rows.json").write_text(json.dumps(recorded))


def save(folder: Path) -> None:
    """Save a trace of full rows, as was done before there was a recorder."""
    import polars as pl  # noqa: PLC0415 - a recorder needs none

    from stepscope.ingest.manifest import Manifest  # noqa: PLC0415 - of that day
    from stepscope.ingest.trace import Trace  # noqa: PLC0415 - of that day

    clock = count(BEGIN_NS, 10)
    rows = {
        table.name: [
            {each.name: value_of(each, place, number) for each in table.columns}
            | {"rank": 0, "ts_ns": next(clock)}
            for number in range(FULL_ROWS)
        ]
        for place, table in enumerate(tables())
    }
    note(folder, rows, {})
    frames = {name: pl.LazyFrame(of_table) for name, of_table in rows.items()}
    trace: Any = Trace.from_tables(frames, Manifest("versions", config={"block_size": 16}))
    trace.save(folder / "run.trace")


def open_with_cache(folder: Path) -> None:
    """Open a profile with the cache in `folder`; nothing is there before there was a cache."""
    os.environ["STEPSCOPE_CACHE"] = str(folder / "cache")
    from stepscope.ingest.trace import Trace  # noqa: PLC0415 - of that day

    with suppress(ImportError):
        from stepscope.ingest import opening  # noqa: PLC0415 - since there is a cache

        opening.WORTH_BYTES = 0
    file = folder / "profile.json"
    file.write_text(json.dumps(PROFILE))
    Trace.open(file)


def make_segments_small() -> None:
    """Set the size of a segment, which is no part of the format: 256 KiB are mostly zeros."""
    try:
        from stepscope.ingest.recording import segments  # noqa: PLC0415 - of that day
    except ImportError:
        from stepscope.ingest import segments  # type: ignore[attr-defined, no-redef]  # noqa: PLC0415 - until 22 Nov
    segments.SMALLEST_BYTES = SMALLEST_BYTES


def tables() -> Any:
    """Return the tables of that day."""
    from stepscope.ingest.schema import TABLES  # noqa: PLC0415 - of that day

    return TABLES


def record_tables(recorder: Any, clock: count[int]) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Record full rows, one with nulls wherever they are allowed, and rows that are dropped."""
    rows: dict[str, list[Row]] = {}
    dropped: dict[str, int] = {}
    for place, table in enumerate(tables()):
        record, rows[table.name] = getattr(recorder, table.name), []
        columns = [each for each in table.columns if each.name not in ("rank", "seq")]
        for number in range(FULL_ROWS + 1):
            row = {each.name: value_of(each, place, number) for each in columns}
            row["ts_ns"] = next(clock)
            if number == FULL_ROWS:
                row |= {name: None for name in row if name not in table.required}
                row["ts_ns"] = row["ts_ns"] if row["ts_ns"] is not None else next(clock)
            record(**row)
            rows[table.name].append(row)
        bad = {**rows[table.name][0], "ts_ns": "not a number"}
        dropped[table.name] = place + 1
        for _ in range(dropped[table.name]):
            record(**bad)
    return rows, dropped


def value_of(column: Any, place: int, number: int) -> Any:
    """Return a value of a column's type that says where it was recorded."""
    if column.type == "str":
        return column.values[number % len(column.values)] if column.values else (
            f"{column.name} {place}.{number}"
        )  # fmt: skip
    if column.type == "bool":
        return number % 2 == 0
    return 100 * place + number + (0.5 if column.type == "f64" else 0)


def record_span(recorder: Any, clock: count[int], rows: dict[str, list[Row]]) -> None:
    """Record a span, whose form is a constant in the header of its segment."""
    ts_ns = next(clock) + 10
    with recorder.span("schedule"):
        pass
    rows["spans"].append(
        {"ts_ns": ts_ns, "dur_ns": 10, "name": "schedule", "track": "engine", "form": "slice"}
    )


def record_in_two(recorder: Any, clock: count[int], rows: dict[str, list[Row]]) -> None:
    """Begin two steps and complete one."""
    begin, complete = recorder.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
    first, second = (
        {"step": step, "ts_ns": next(clock), "kind": "decode", "dur_ns": None} for step in (50, 51)
    )
    opened = [begin(row["step"], row["ts_ns"], row["kind"]) for row in (first, second)]
    complete(opened[0], 7)
    rows["steps"] += [{**first, "dur_ns": 7}, second]


def record_bulk(recorder: Any, clock: count[int], rows: dict[str, list[Row]]) -> None:
    """Record three decisions in one call."""
    put = recorder.bulk("decisions", "step", "ts_ns", "subject_kind", "subject", "verdict")
    subjects, ts_ns = ["r1", "r2", "r1"], [next(clock) for _ in range(3)]
    put(60, ts_ns, "request", subjects, "passed-over")
    rows["decisions"] += [
        {"step": 60, "ts_ns": at, "subject": subject, "verdict": "passed-over"}
        for at, subject in zip(ts_ns, subjects, strict=True)
    ]


def record_batches(recorder: Any, clock: count[int], rows: dict[str, list[Row]]) -> None:
    """Record batches by what changes, and their outputs."""
    batches = recorder.batches()

    def expect(batch: Any, ts_ns: int, *of_batch: tuple[str, str, int, int, int]) -> None:
        output_ns = next(clock)
        batches.outputs(batch, output_ns)
        names = ("request", "phase", "num_tokens", "num_computed")
        for request, *rest, position in of_batch:
            row = dict(zip(names, (request, *rest), strict=True))
            rows["batch_rows"].append({"step": batch.step, "ts_ns": ts_ns, **row})
            rows["outputs"].append(
                {"step": batch.step, "ts_ns": output_ns, "request": request, "position": position}
            )

    at = next(clock)
    whole = batches.whole(70, at, [("r1", "prefill", 5, 0, 0)])
    expect(whole, at, ("r1", "prefill", 5, 0, 0))
    at = next(clock)
    expect(batches.again(71, at), at, ("r1", "decode", 1, 5, 1))
    at = next(clock)
    joined = batches.formed(72, at, [], [("r2", "prefill", 3, 0, 0)])
    expect(joined, at, ("r1", "decode", 1, 6, 2), ("r2", "prefill", 3, 0, 0))
    at = next(clock)
    expect(batches.formed(73, at, ["r1"], []), at, ("r2", "decode", 1, 3, 1))


def record_part(recorder: Any, clock: count[int], rows: dict[str, list[Row]]) -> None:
    """Record what a front end of the rank records in a process of its own."""
    for event in ("receive", "deliver"):
        row = {"step": None, "ts_ns": next(clock), "request": "r1", "event": event}
        recorder.lifecycle(**row)
        rows["lifecycle"].append(row)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
