"""`vllm serve` under a burst: each step is the scheduler's own, and waits are the clients' own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from stepscope.app.debug.session import Session
from stepscope.ingest.trace import Trace
from tests.vllm.judging import judges, reasons, state
from tests.vllm.judging.confirm import confirm
from tests.vllm.running.serving import Server, serving
from tests.vllm.runs import Run
from tests.vllm.tiny_llama import words

Row = dict[str, Any]
KINDS = ("sync", "async", "ranks")
NUM_RANKS = {"ranks": 2}
TICKS_NS = 8 * 10**6


@dataclass(frozen=True)
class Served:
    """A server that is gone, and what its clients say."""

    run: Run
    clients: list[Row]
    code: int


@pytest.fixture(scope="module")
def served(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Served]:
    """Servers under a burst of mixed lengths, some of whose clients leave; each runs once."""
    seen: dict[str, Served] = {}

    def of(kind: str) -> Served:
        if kind not in seen:
            seen[kind] = _serve(kind, model, tmp_path_factory.mktemp(kind))
        return seen[kind]

    return of


def _serve(kind: str, model: Path, folder: Path) -> Served:
    arguments = ["--data-parallel-size", "2"] if kind == "ranks" else []
    with serving(
        model, folder, "--shutdown-timeout", "20", *arguments, is_async=kind == "async",
        profile=kind != "ranks", enable_prefix_caching=True,
    ) as server:  # fmt: skip
        server.ask(999, words(5), 2)
        if kind != "ranks":
            server.post("/start_profile")
        clients = _crowd(server)
        if kind != "ranks":
            server.post("/stop_profile")
        code = server.stop()
    (folder / "clients.json").write_text(json.dumps(clients), encoding="utf-8")
    return Served(server.run, clients, code)


def _crowd(server: Server) -> list[Row]:
    asked = [
        {"number": number, "prompt": words(20 + number * 31 % 100, number * 50), **_stays(number)}
        for number in range(24)
    ]
    return server.burst(asked)


def _stays(number: int) -> Row:
    leaves = number % 9 == 4
    return (
        {"max_tokens": 350, "leave_after": 5} if leaves else {"max_tokens": 40 + number * 17 % 120}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_queues_batch_blocks_and_owners_are_the_schedulers_own_at_every_step(
    kind: str, served: Callable[[str], Served]
) -> None:
    run = served(kind).run

    assert sorted(run.truth) == list(range(NUM_RANKS.get(kind, 1)))
    for rank, lines in run.truth.items():
        assert state.missing(Session(run.trace, rank), lines) == 0
        assert state.differences(run.trace, lines, rank) == []


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_waits_has_a_reason_that_the_scheduler_bears_out(
    kind: str, served: Callable[[str], Served]
) -> None:
    run = served(kind).run

    for rank, lines in run.truth.items():
        assert state.unexplained(run.trace, lines, rank) == []
        assert reasons.unfounded(run.trace, lines, rank) == []


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_tokens_of_each_step_are_those_of_the_engines_own_profile(
    kind: str, served: Callable[[str], Served]
) -> None:
    run = served(kind).run
    (profile,) = [path for path in run.profiles if path.name.startswith("rank0.")]
    true = judges.tokens_of_steps(Trace.open(profile))
    ours = judges.tokens_of_steps(run.trace)

    assert len(true) > 50
    # The profile was begun when the server had answered once.
    assert ours[-len(true) :] == true


@pytest.mark.parametrize("kind", KINDS)
def test_waits_are_within_a_hundredth_of_the_clients_own(
    kind: str, served: Callable[[str], Served]
) -> None:
    found = served(kind)
    waits = judges.client_waits(found.run.trace, found.clients)

    # When a request came the kernel tells in ticks of its clock, and when an answer left the server
    # notes itself, for which it may have to wait where the machine is busy.
    off = [pair for pair in waits if abs(pair[0] - pair[1]) > max(pair[0] / 100, TICKS_NS)]

    # A client that the machine held up, and that read several parts at once, cannot tell.
    assert len(waits) == sum("late" not in each for each in found.clients) >= 12
    assert median(ours / client for client, ours in waits) == pytest.approx(1.0, abs=0.01)
    assert len(off) <= len(waits) // 10, off


@pytest.mark.parametrize("kind", KINDS)
def test_every_finding_is_the_same_counted_from_rows_and_from_the_scheduler(
    kind: str, served: Callable[[str], Served]
) -> None:
    assert [str(each) for each in confirm(served(kind).run) if not each.is_confirmed] == []


@pytest.mark.parametrize("kind", KINDS)
def test_clients_who_left_are_aborted_and_all_others_served(
    kind: str, served: Callable[[str], Served]
) -> None:
    found = served(kind)
    names = judges.external_ids(found.run.trace)
    rows = found.run.trace.lifecycle.collect().rows(named=True)
    ended = {
        names[row["request"]]: row["event"] for row in rows if row["event"] in ("abort", "finish")
    }
    left = {f"cmpl-{each['id']}-0": "left" in each for each in found.clients}
    # Who leaves may have been given all by the engine, which the client had not read yet.
    by_engine = {names[each] for lines in found.run.truth.values() for each in _ended(lines)}

    assert "abort" in ended.values()
    assert {
        name: "abort" if left[name] and name not in by_engine else "finish" for name in left
    } == {name: event for name, event in ended.items() if not name.startswith("cmpl-req0999")}


def _ended(lines: list[Row]) -> set[str]:
    """Who ended in the scheduler by itself, as its witness saw."""
    return {name for line in lines for name in line.get("ended", ())}


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_given_time_closes_its_recording(
    kind: str, served: Callable[[str], Served]
) -> None:
    found = served(kind)

    assert found.code == 0
    assert found.run.trace.manifest.closed


def test_half_of_the_rules_can_judge(
    served: Callable[[str], Served], in_process: dict[str, Run]
) -> None:
    runs = [*(served(kind).run for kind in KINDS), *in_process.values()]
    judged = {code for run in runs for code in judges.judged(run.trace)}

    assert len(judged) >= 35
