"""`stepscope why` prints the chain from who waits to the root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stepscope.app.cli.main import cli
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import two_ranks, waiting_on_rank_one
from tests.conftest import ROOT
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.traces import trace_of


@pytest.fixture(scope="module")
def trace(recorded_once: RecordedOnce) -> str:
    return str(recorded_once.run("slot-recycling", "before").path)


def test_the_first_line_is_the_cause_and_a_line_follows_for_each_link(trace: str) -> None:
    done = CliRunner().invoke(cli, ["why", trace, "req-04", "--at", "2"])

    assert (done.exit_code, done.stderr) == (0, "")
    first, behind, head, _ = done.stdout.splitlines()
    assert first.startswith("req-04: running until: req-00 runs until ")
    assert behind.startswith("1. req-04 stands behind req-03 in the queue")
    assert head.startswith("2. req-03 is deferred: every slot is taken: needs 1, free 0")


def test_the_json_has_the_links_with_their_rows(trace: str) -> None:
    done = CliRunner().invoke(cli, ["why", trace, "req-04", "--not-in", "2", "--json"])

    told = json.loads(done.stdout)
    assert told["root"]["ends"] == "running until"
    assert told["links"][1]["holder"] == "req-00"
    assert told["links"][1]["proof"]["table"] == "decisions"


def test_without_a_place_it_asks_where_the_request_waited_last(trace: str) -> None:
    done = CliRunner().invoke(cli, ["why", trace, "req-03"])

    assert done.stdout.startswith("req-03: running until: req-00 runs until ")


def test_without_a_request_it_lists_who_waited_longest_and_the_command_for_one(trace: str) -> None:
    done = CliRunner().invoke(cli, ["why", trace, "--limit", "2"])

    assert (done.exit_code, done.stderr) == (0, "")
    summary, _, _, *rows, _, last = done.stdout.splitlines()
    assert "the 2 that waited longest" in summary
    assert len(rows) == 2
    longest = rows[0].split()[0]
    assert last.endswith(f"why {trace} {longest}")
    chain = CliRunner().invoke(cli, ["why", trace, longest]).stdout.splitlines()[0]
    assert " ".join(rows[0].split()[-6:]) in chain


def test_without_a_request_the_json_has_the_same_rows(trace: str) -> None:
    done = CliRunner().invoke(cli, ["why", trace, "--limit", "2", "--json"])

    told = json.loads(done.stdout)
    assert [row["root"] != "" for row in told["rows"]] == [True, True]
    assert told["num_waited"] > 2


def test_where_nobody_is_named_it_says_so_and_a_place_without_a_request_is_refused(
    trace: str,
) -> None:
    profile = str(ROOT / "sample_traces" / "torch_profiler_cpu.json.gz")

    done = CliRunner().invoke(cli, ["why", profile])
    refused = CliRunner().invoke(cli, ["why", trace, "--at", "2"])

    assert (done.exit_code, done.stdout.count("\n")) == (0, 1)
    assert "names no requests" in done.stdout
    assert "about one request" in str(refused.exception)


def test_two_places_are_refused(trace: str) -> None:
    done = CliRunner().invoke(cli, ["why", trace, "req-03", "--at", "2", "--not-in", "2"])

    assert "--at and --not-in are two places" in str(done.exception)


def test_who_waits_on_another_rank_is_found_there(tmp_path: Path) -> None:
    save_trace(waiting_on_rank_one(), tmp_path / "ranks.trace")

    told = CliRunner().invoke(cli, ["why", str(tmp_path / "ranks.trace"), "late"])

    assert told.exit_code == 0, told.output
    assert told.output.startswith("late of rank 1, as rank 0 has none such: ")


def why_of(trace: Trace, path: Path, *words: str) -> str:
    save_trace(trace, path / "some.trace")
    result = CliRunner().invoke(cli, ["why", str(path / "some.trace"), *words])
    return result.output if result.exception is None else str(result.exception)


@looped("rank", [0, 1])
def test_a_rank_without_collectives_is_answered_by_its_request_that_waited_longest(
    rank: int, tmp_path: Path
) -> None:
    text = why_of(waiting_on_rank_one(), tmp_path, f"rank {rank}")

    first, link, *rest = text.splitlines()
    name = ("early", "late")[rank]
    assert name in link
    assert any(line.startswith(f"2. {name}") for line in rest)
    assert ("needs 1, free 0" in text) == (rank == 1)
    assert "no collective of any rank" not in first


def test_a_rank_of_reports_alone_is_answered_with_what_why_takes_and_what_to_run_next(
    tmp_path: Path,
) -> None:
    text = why_of(two_ranks(), tmp_path, "rank 1")

    assert text.startswith("rank 1: not recorded: ")
    assert "ranks 0, 1" in text
    assert "no request" in text
    assert "stepscope check" in text


def test_a_subject_that_is_not_there_is_refused_with_the_ranks_and_requests_that_are(
    tmp_path: Path,
) -> None:
    for subject in ("rank 7", "zzz"):
        text = why_of(waiting_on_rank_one(), tmp_path, subject)
        assert f"no {'request' if subject == 'zzz' else 'rank'} " in text
        assert "ranks 0, 1" in text
        assert "early" in text
        assert "late" in text
        assert "stepscope why" in text


def test_a_request_of_the_name_of_a_rank_is_the_request(tmp_path: Path) -> None:
    rows = [{"rank": 0, "step": 1, "ts_ns": 5, "request": "rank 1", "event": "arrive"}]

    text = why_of(trace_of(lifecycle=rows, ranks=(0, 1)), tmp_path, "rank 1")

    assert "it is in no collective" not in text
    assert "request" in text or "rank 1 waits" in text
