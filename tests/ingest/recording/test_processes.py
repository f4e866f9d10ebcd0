"""Recorders in several processes: ranks side by side, forks, and what runs beside the engine."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.ingest.trace import Trace
from tests.ingest.recording.conftest import Script
from tests.tiers import slow


@slow
def test_several_ranks_record_side_by_side(tmp_path: Path, script: Script) -> None:
    source = """
    import sys
    from stepscope.ingest.recorder import Recorder
    path, rank = sys.argv[1], int(sys.argv[2])
    with Recorder(path, producer="engine", rank=rank, config={"tp": 4}) as rec:
        for row in range(2_000):
            rec.steps(step=row, ts_ns=row, kind="decode", tag=f"rank {rank}")
    """
    engines = [script(source, tmp_path / "run.trace", rank) for rank in range(4)]

    for engine in engines:
        assert engine.communicate() == (b"", b"")

    trace = Trace.open(tmp_path / "run.trace")
    assert trace.manifest.ranks == (0, 1, 2, 3)
    assert trace.manifest.config == {"tp": 4}
    assert trace.manifest.closed
    counted = trace.steps.group_by("rank", "tag").agg(pl.len()).sort("rank").collect()
    assert counted.rows() == [(rank, f"rank {rank}", 2_000) for rank in range(4)]
    assert not list((tmp_path / "run.trace").glob("journal*"))


@slow
def test_a_killed_rank_leaves_the_others_closed_and_is_named(
    tmp_path: Path, script: Script
) -> None:
    source = """
    import os, sys
    from stepscope.ingest.recorder import Recorder
    path, rank = sys.argv[1], int(sys.argv[2])
    with Recorder(path, producer="engine", rank=rank) as rec:
        for row in range(1_000):
            rec.steps(step=row, ts_ns=row, kind="decode")
        if rank == 1:
            os.kill(os.getpid(), 9)
    """
    for rank in range(3):
        script(source, tmp_path / "run.trace", rank).communicate()

    trace = Trace.open(tmp_path / "run.trace")

    assert trace.num_rows("steps") == 3_000
    assert trace.manifest.closed is False
    assert trace.manifest.recovered is not None
    assert list(trace.manifest.recovered) == ["1"]
    assert trace.manifest.tables == {"steps": "partial"}


@slow
def test_a_forked_child_does_not_write_into_its_parents_journal(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import os, sys
        from stepscope.ingest.recorder import Recorder
        rec = Recorder(sys.argv[1], producer="engine")
        record = rec.steps
        record(step=1, ts_ns=1, kind="decode", tag="parent")
        child = os.fork()
        for row in range(500):
            record(step=row, ts_ns=row, kind="decode", tag="child" if child == 0 else "parent")
        if child == 0:
            print(rec.dropped, rec.failed, flush=True)
            sys.exit()  # runs what is registered with atexit
        os.waitpid(child, 0)
        rec.close()
        """,
        tmp_path / "run.trace",
    )

    said, trouble = engine.communicate()

    assert len(trouble.splitlines()) == 1
    assert said.decode().strip() == (
        "{'steps': 500} this process was forked from the one that records"
    )
    trace = Trace.open(tmp_path / "run.trace")
    assert trace.steps.collect()["tag"].to_list() == ["parent"] * 501
    assert trace.manifest.dropped == {"steps": 500}
    assert trace.manifest.closed


@slow
def test_a_fork_that_outlives_the_parent_does_not_hold_up_its_close(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import os, sys, time
        from stepscope.ingest.recorder import Recorder
        rec = Recorder(sys.argv[1], producer="engine")
        for row in range(2_000):
            rec.steps(step=row, ts_ns=row, kind="decode")
        time.sleep(0.2)  # until the process beside it runs, whose pipe the child then inherits
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
        rec.close()
        print("closed", flush=True)
        """,
        tmp_path / "run.trace",
    )
    assert engine.stdout
    assert engine.stdin

    assert engine.stdout.readline() == b"closed\n"
    engine.communicate()

    assert Trace.open(tmp_path / "run.trace").num_rows("steps") == 2_000


def test_without_polars_the_journal_stays_and_opens(tmp_path: Path, script: Script) -> None:
    engine = script(
        """
        import sys
        from stepscope.ingest.recorder import Recorder
        sys.executable = "/nowhere/python"  # as where the process beside it cannot run
        with Recorder(sys.argv[1], producer="engine") as rec:
            for row in range(1_000):
                rec.steps(step=row, ts_ns=row, kind="decode")
        print(rec.failed)
        """,
        tmp_path / "run.trace",
    )

    assert engine.communicate() == (b"None\n", b"")

    trace = Trace.open(tmp_path / "run.trace")
    assert trace.steps.collect()["step"].to_list() == list(range(1_000))
    assert (trace.manifest.closed, trace.manifest.recovered) == (True, None)
    assert trace.manifest.tables == {"steps": "complete"}
    assert not list((tmp_path / "run.trace").glob("steps"))


@slow
def test_a_forked_child_adds_nothing_to_batches_columns_and_rows_in_two(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import os, sys
        from stepscope.ingest.recorder import Recorder
        from stepscope.ingest.recording.lasting import BatchRow
        rec = Recorder(sys.argv[1], producer="engine")
        begin, complete = rec.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
        put = rec.bulk("counters", "ts_ns", "name", "value")
        batches = rec.batches()
        formed = batches.whole(0, 0, [BatchRow("parent", "prefill", 4, 0, 0)])
        opened = begin(0, 0, "decode")
        put([0, 1], "parent", 1.0)
        if (child := os.fork()) == 0:
            for step in range(1, 500):
                batches.again(step, step)
                batches.formed(step, step, ["parent"], [BatchRow(f"child {step}", "decode", 1)])
                batches.whole(step, step, [BatchRow(f"new {step}", "decode", 1)])
                put([step], f"child {step}", 2.0)
            batches.outputs(formed, 1)
            complete(opened, 666)
            print(rec.failed, flush=True)
            sys.exit()
        os.waitpid(child, 0)
        batches.outputs(batches.again(1, 10), 11)
        put([2], "late parent", 1.0)
        rec.close()
        """,
        tmp_path / "run.trace",
    )

    said, trouble = engine.communicate()
    assert said == b"this process was forked from the one that records\n"
    assert len(trouble.splitlines()) == 1

    trace = Trace.open(tmp_path / "run.trace")
    assert trace.batch_rows.sort("ts_ns").collect()["request"].to_list() == ["parent"] * 2
    assert trace.outputs.collect()["step"].to_list() == [1]
    assert trace.counters.collect()["name"].to_list() == ["parent", "parent", "late parent"]
    assert trace.steps.collect()["dur_ns"].to_list() == [None]
    assert trace.manifest.dropped == {
        "batch_rows": 1 + 2 * 499, "counters": 499, "outputs": 1, "steps": 1,
    }  # fmt: skip
