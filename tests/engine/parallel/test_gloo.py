"""Real ranks: processes over gloo, what their journals say, and that none outlives the head."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stepscope.engine.parallel.links.transport import ALL_REDUCE, Disconnected, Operation
from stepscope.engine.runs.scenario import Metric, Options
from stepscope.engine.scenarios.ep_multiplexing import EpMultiplexing
from stepscope.ingest.trace import Trace
from tests.engine.rows import Row, Rows
from tests.tiers import sampled, slow

torch = pytest.importorskip("torch")
if not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

from stepscope.engine.parallel.links.gloo import GlooTransport  # noqa: E402 - it needs torch

SCENARIO = EpMultiplexing()
LONG = {"requests": "8", "slots": "8", "prompt_len": "8", "max_tokens": "40"}
PATIENCE_S = 180.0
COMMAND = "from stepscope.app.cli import main; raise SystemExit(main())"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gloo")


@cache
def run(
    folder: Path, variant: str, fault: str = "", **settings: str
) -> tuple[dict[str, Metric], Rows]:
    """The metrics and rows of a run of two processes; it takes seconds to start one."""
    path = folder / "-".join((variant, fault, *settings.values()))
    options = Options(
        settings={"max_tokens": "6", **settings},
        faults=frozenset({fault} - {""}),
        executor="gloo",
    )
    result = SCENARIO.record(variant, path, options)
    return result.metrics, Rows.read(Trace.open(path))


@slow
def test_two_processes_under_v1_serve_four_requests_one_after_the_other(folder: Path) -> None:
    metrics, rows = run(folder, "before")

    assert (metrics["equal_to_solo"], metrics["decode_rows"]) == ("4/4", 1)
    assert max(row["num_running"] for row in rows.of("steps", rank=0)) == 1
    assert {row["slot"] for row in rows.of("collectives")} == {None}


@slow
@pytest.mark.parametrize("num_requests", sampled([2, 4, 8], [4]))
def test_two_processes_under_v2_serve_all_together_and_each_as_if_alone(
    folder: Path, num_requests: int
) -> None:
    metrics, rows = run(folder, "after", requests=str(num_requests), slots="8")

    assert metrics["equal_to_solo"] == f"{num_requests}/{num_requests}"
    assert metrics["decode_rows"] == num_requests
    assert max(row["num_running"] for row in rows.of("steps", rank=0)) == num_requests


def test_every_process_records_its_own_rows_into_one_trace(folder: Path) -> None:
    _, rows = run(folder, "after", requests="4", slots="8")

    head, worker = (rows.of("collectives", rank=rank) for rank in (0, 1))
    names = ("ordinal", "op", "dtype", "num_elements", "command", "slot")
    assert [[row[name] for name in names] for row in head] == [
        [row[name] for name in names] for row in worker
    ]
    assert all(row["dur_ns"] > 0 for row in (*head, *worker))
    assert rows.of("steps", rank=1)
    assert rows.of("batch_rows", rank=1) == []


def test_the_processes_clocks_are_one(folder: Path) -> None:
    _, rows = run(folder, "after", requests="4", slots="8")

    for head, worker in zip(*(rows.of("collectives", rank=rank) for rank in (0, 1)), strict=True):
        ends_of_head, ends_of_worker = (_ends(row) for row in (head, worker))
        assert head["ts_ns"] <= ends_of_worker
        if head["op"] == "all-reduce":
            assert worker["ts_ns"] <= ends_of_head


@slow
def test_preambles_up_front_end_by_timeout_and_both_journals_show_what_differs_first(
    folder: Path,
) -> None:
    metrics, rows = run(folder, "v2-device-staging", "preambles-up-front", timeout_s="15")

    head, worker = (rows.of("collectives", rank=rank) for rank in (0, 1))
    assert len(head) == len(worker) == head[-1]["ordinal"] + 1
    assert (head[-1]["op"], worker[-1]["op"]) == ("broadcast", "all-reduce")
    assert head[-1]["dur_ns"] is worker[-1]["dur_ns"] is None
    assert all(row["dur_ns"] is not None for row in (*head[:-1], *worker[:-1]))
    assert metrics["outcome"] == (
        f"timeout at operation {head[-1]['ordinal']}: broadcast faces all-reduce"
    )
    assert {row["event"] for row in rows.of("lifecycle", request="req-00")} >= {"abort"}
    assert float(metrics["makespan_s"]) > 10


def test_who_waits_for_a_rank_that_does_not_join_is_told_so_when_the_time_is_over(
    tmp_path: Path,
) -> None:
    def meet(rank: int) -> GlooTransport:
        return GlooTransport(tmp_path / "ranks", rank, world_size=2, timeout_s=0.1)

    with ThreadPoolExecutor(2) as ranks:
        head, worker = ranks.map(meet, range(2))

    with pytest.raises(Disconnected) as ended:
        head.all_reduce(Operation(ALL_REDUCE, "float64", 4), np.ones(4))

    assert str(ended.value) == (
        "rank 0 waits in all-reduce of 4 float64, and no other rank joined within 0.1 s"
    )
    worker.leave("the test has ended")


@slow
def test_a_worker_that_refuses_has_told_the_head_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.engine.parallel.ranks.processes.LAST_WORDS_S", PATIENCE_S)
    metrics, _ = run(folder, "after", "slots-not-allocated", timeout_s="60")

    assert metrics["outcome"] == (
        "rank 1 has left: it refused: prefill for slot 1, which is not allocated"
    )


def test_when_the_head_is_killed_its_worker_ends_too_and_leaves_nothing(tmp_path: Path) -> None:
    head, workers = _begun(tmp_path)

    head.send_signal(signal.SIGKILL)
    head.communicate(timeout=PATIENCE_S)

    _wait_until(lambda: not any(map(_is_alive, workers)))
    _wait_until(lambda: not [*tmp_path.glob("stepscope-*")])
    rows = Rows.read(Trace.open(tmp_path / "run.trace"))
    assert rows.of("collectives", rank=0)
    assert rows.of("collectives", rank=1)


def test_ctrl_c_ends_all_and_says_one_line(tmp_path: Path) -> None:
    head, workers = _begun(tmp_path)

    os.killpg(head.pid, signal.SIGINT)
    out, errors = head.communicate(timeout=PATIENCE_S)

    assert (head.returncode, out) == (130, b"")
    assert errors.strip() == b"stepscope: interrupted"
    assert not any(map(_is_alive, workers))
    assert [*tmp_path.glob("stepscope-*")] == []
    assert Trace.open(tmp_path / "run.trace").manifest.closed


def _begun(folder: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """The command in the middle of a run, and the processes that it started."""
    settings = (f"--set={name}={value}" for name, value in LONG.items())
    head = subprocess.Popen(
        [
            sys.executable, "-c", COMMAND, "record", "ep-multiplexing",
            "--executor=gloo", "--variant=v2-host-staging", *settings,
            f"--output={folder / 'run.trace'}",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    trace = folder / "run.trace"
    begins = trace / "manifest.rank=1.json"
    _wait_until(lambda: begins.exists() or head.poll() is not None)
    _wait_until(lambda: head.poll() is not None or _talks(trace))
    assert head.poll() is None, head.communicate()
    return head, _children(head.pid)


def _talks(trace: Path) -> bool:
    """Whether both have written by now that they took part in a collective.

    Each writes what it gathered several times a second, and not at the same moment.
    """
    rows = Rows.read(Trace.open(trace))
    return all(rows.of("collectives", rank=rank) for rank in (0, 1))


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        pytest.skip("this system does not tell a process's children")
    return [int(child) for child in children.read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def _ends(row: Row) -> int:
    return int(row["ts_ns"] + row["dur_ns"])
