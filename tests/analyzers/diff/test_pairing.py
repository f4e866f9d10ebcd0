"""Requests of two runs that are called otherwise in each are paired, and that is said."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from stepscope.analyzers.diff.compare import diff
from stepscope.analyzers.diff.pairing import LENGTHS, ORDER, PROMPT, STEM, pair
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

Rename = Callable[[str], str]


def arrivals(*asked: tuple[str, int | None, int | None]) -> list[Row]:
    return [
        event(name, "arrive", at, prompt_len=prompt, max_tokens=most)
        for at, (name, prompt, most) in enumerate(asked)
    ]


def paired(ours: list[Row], theirs: list[Row]) -> tuple[dict[str, str], dict[str, int]]:
    found = pair(trace_of(lifecycle=ours), trace_of(lifecycle=theirs))
    return dict(found.names), dict(found.inferred)


def test_ids_that_both_have_are_taken_at_their_word() -> None:
    ours = arrivals(("1", 10, 5), ("2", 20, 5))
    theirs = arrivals(("2", 10, 5), ("1", 20, 5))

    assert paired(ours, theirs) == ({}, {})


def test_one_that_only_one_run_has_is_not_paired_with_another() -> None:
    ours, theirs = arrivals(("1", 10, 5), ("2", 20, 5)), arrivals(("1", 10, 5), ("3", 20, 5))

    assert paired(ours, theirs) == ({}, {})


@looped(
    ("ours", "theirs"),
    [
        ("0-9ab12cd3", "0-8494b39b"),
        ("0-9ab12cd3", "0-84940390"),
        ("cmpl-req7-0-9ab12cd3", "cmpl-req7-0-0fedcba9"),
        (f"{UUID(int=5 << 90)}-7", f"{UUID(int=9 << 90)}-7"),
    ],
)
def test_ids_with_a_part_made_up_anew_are_paired_by_the_rest(ours: str, theirs: str) -> None:
    names, inferred = paired(
        arrivals((ours, 10, 5), ("1-aaaa0000", 20, 5)),
        arrivals(("1-bbbb1111", 99, 5), (theirs, 50, 5)),
    )

    assert names == {theirs: ours, "1-bbbb1111": "1-aaaa0000"}
    assert inferred == {STEM: 2}


def test_ids_of_which_nothing_else_is_left_are_paired_by_what_they_ask_for() -> None:
    ids = [f"chatcmpl-{UUID(int=n << 64)}" for n in range(1, 9)]
    ours = arrivals((ids[0], 10, 5), (ids[1], 20, 5), (ids[2], 10, 5), (ids[3], 30, 5))
    theirs = arrivals((ids[4], 20, 5), (ids[5], 10, 5), (ids[6], 10, 5), (ids[7], 30, 6))

    names, inferred = paired(ours, theirs)

    assert names == {ids[5]: ids[0], ids[4]: ids[1], ids[6]: ids[2], ids[7]: ids[3]}
    assert inferred == {LENGTHS: 3, PROMPT: 1}


def test_where_no_length_is_known_the_order_of_arrival_is_all_there_is() -> None:
    ours, theirs = arrivals(("100", None, None)), arrivals(("200", None, None))

    assert paired(ours, theirs) == ({"200": "100"}, {ORDER: 1})


def test_prompts_of_other_lengths_are_not_one_request() -> None:
    assert paired(arrivals(("100", 10, None)), arrivals(("200", 11, None))) == ({}, {})


def test_runs_that_served_other_requests_are_not_paired_by_a_few_of_one_length() -> None:
    ours = arrivals(*((f"{n}", 10 + n, 5) for n in range(5)))
    theirs = arrivals(*((f"x{n}", 13 + n, 5) for n in range(5)))

    assert paired(ours, theirs) == ({}, {})
    assert len(paired(ours[1:], theirs[:-1])[0]) == 2


def test_every_column_that_names_a_request_calls_it_as_in_a() -> None:
    def run(name: str) -> Trace:
        batch = [{"step": 1, "request": name, "phase": "decode", "num_tokens": 1}]
        decided = [
            {"step": 1, "subject_kind": "request", "subject": name, "verdict": "put-back",
             "holder": name},
            {"step": 1, "subject_kind": "bucket", "subject": name, "verdict": "chosen"},
        ]  # fmt: skip
        claimed = [{"step": 1, "resource": "slot", "id": 1, "op": "claim", "owner": name}]
        return trace_of(
            lifecycle=[event(name, "preempt", 0, by_request=name)], batch_rows=batch,
            decisions=decided, allocations=claimed, outputs=[{"request": name, "position": 0}],
            workload={"requests": [{"id": name}]},
        )  # fmt: skip

    b = pair(run("0-aaaa0000"), run("0-bbbb1111")).b

    told = {table: b.table(table).collect().rows() for table in ("lifecycle", "batch_rows",
            "allocations", "outputs")}  # fmt: skip
    assert "0-bbbb1111" not in str(told)
    assert b.decisions.select("subject", "holder").collect().rows() == [
        ("0-aaaa0000", "0-aaaa0000"), ("0-bbbb1111", None),
    ]  # fmt: skip
    assert b.manifest.workload == {"requests": [{"id": "0-aaaa0000"}]}


# ── recorded runs of a real vLLM ─────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", params=["gen_mix", "serve_prefix"])
def real(request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: Any) -> Trace:
    """A recorded run; its ids end in eight digits that vLLM makes up."""
    tar = shared_data.parent / "recorded" / f"{request.param}.tar.xz"
    if not tar.exists():
        pytest.skip("shared/recorded is not there")
    out: Path = tmp_path_factory.mktemp("recorded")
    with tarfile.open(tar) as archive:
        archive.extractall(out, filter="data")
    return Trace.open(next(out.rglob(f"{request.param}.trace")))


def again(trace: Trace, rename: Rename) -> Trace:
    """The same run under other ids."""
    ids = trace.lifecycle.select(pl.col("request").unique()).collect()["request"].to_list()
    names = {name: rename(name) for name in sorted(ids)}
    columns = {
        "lifecycle": ("request", "by_request"),
        "batch_rows": ("request",),
        "outputs": ("request",),
        "allocations": ("owner",),
        "decisions": ("subject",),
    }
    frames = {
        table: trace.table(table).with_columns(pl.col(each).replace(names) for each in of)
        for table, of in columns.items()
    }
    return trace.replacing(frames, trace.manifest)


def suffixed(seed: int) -> Rename:
    rng = random.Random(seed)
    return lambda name: f"{name[:-8]}{rng.getrandbits(32):08x}"


def made_up(seed: int) -> Rename:
    rng = random.Random(seed)
    return lambda _: f"chatcmpl-{UUID(int=rng.getrandbits(128))}"


@slow
@looped("seed", range(3))
def test_a_real_run_under_other_suffixes_is_the_same_run(real: Trace, seed: int) -> None:
    found = diff(real, again(real, suffixed(seed)))

    assert found.verdict == "equal"
    assert found.inputs == ()
    assert set(found.pairing.inferred) == {STEM}
    assert found.outcomes.requests["change"].null_count() == len(found.outcomes.requests)


@slow
def test_a_real_run_under_ids_that_say_nothing_is_the_same_run(real: Trace) -> None:
    found = diff(real, again(real, made_up(1)))

    assert found.verdict == "equal"
    assert set(found.pairing.inferred) == {LENGTHS}
