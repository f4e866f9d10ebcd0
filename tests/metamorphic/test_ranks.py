"""Jobs of two ranks whose files are rewritten: what must stay as it was, and what must be said."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.trace import Trace
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.metamorphic.contents import (
    Told,
    blamed,
    blamed_sums,
    contents_of,
    findings_of,
    report_of,
    told_of,
)
from tests.tiers import sampled, slow

MEETINGS = job(2, num_steps=8)
SAID = ("rank", "step", "group", "op", "num_elements", "ordinal")
NOISE_NS = 10_000
NUMBERED, BY_ORDER = Look(), Look(has_seq=False)
WINDOWS = [{"first_step": 2}, {"last_step": 5}, {"first_step": 1, "last_step": 6}]
LOOKS = ["numbered", "by order"]
each_look = pytest.mark.parametrize("look", [NUMBERED, BY_ORDER], ids=LOOKS)


def as_it_is(folder: Path, look: Look) -> tuple[Trace, Told]:
    """A job of which both files look alike, and what is said of it."""
    return _as_it_is(folder, look.has_seq)


@cache
def _as_it_is(folder: Path, has_seq: bool) -> tuple[Trace, Told]:
    trace = opened(folder / f"numbered {has_seq}", Look(has_seq=has_seq))
    return trace, told_of(trace)


def opened(folder: Path, look: Look, changed: Look | None = None) -> Trace:
    """A job of which the second rank's file looks otherwise."""
    return Trace.open(write_job(folder, MEETINGS, look, changed or look))


def said(trace: Trace, *without: str) -> Counter[Any]:
    """Which collectives there are on which rank, whenever they were."""
    columns = [name for name in SAID if name not in without]
    return Counter(trace.collectives.select(columns).collect().rows())


def starts(trace: Trace, rank: int) -> pl.Series:
    found = trace.collectives.filter(pl.col("rank") == rank).sort("ordinal")
    return found.collect()["ts_ns"]


def from_look(look: Look, **changed: Any) -> Look:
    kept = {name: getattr(look, name) for name in ("has_seq",)}
    return Look(**{**kept, **changed})


def latency_ns(trace: Trace, rank: int) -> int:
    """How long a rank's run lasted."""
    return int(blame(trace).requests.filter(rank=rank)["latency_ns"].item())


def spent_ns(trace: Trace, rank: int, cause: str) -> int:
    """What a cause took of it."""
    return int(blame(trace).requests.filter(rank=rank)[f"{cause}_ns"].item())


# -- what must stay ---------------------------------------------------------------------------


def shuffled(top: dict[str, Any]) -> bytes:
    top["traceEvents"].reverse()
    return json.dumps(top).encode()


WRITTEN: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "pretty": lambda top: json.dumps(top, indent=1).encode(),
    "events in another order": shuffled,
    "fields behind the events": lambda top: json.dumps(dict(reversed(top.items()))).encode(),
    "marked as UTF-8": lambda top: b"\xef\xbb\xbf" + json.dumps(top).encode(),
}


@slow
@pytest.mark.parametrize("look", sampled([NUMBERED, BY_ORDER], [NUMBERED]), ids=LOOKS)
def test_files_of_ranks_written_otherwise_are_the_same(
    folder: Path, tmp_path: Path, look: Look
) -> None:
    first, told = as_it_is(folder, look)
    for how, written_as in WRITTEN.items():
        written = write_job(tmp_path / how, MEETINGS, look, look)
        for file in written.iterdir():
            file.write_bytes(written_as(json.loads(file.read_bytes())))

        again = Trace.open(written)

        assert told_of(again) == told, how
        assert again.manifest.config["clocks"] == first.manifest.config["clocks"], how


@slow
@each_look
def test_what_files_are_called_and_beside_what_they_lie_makes_no_difference(
    folder: Path, tmp_path: Path, look: Look
) -> None:
    _, told = as_it_is(folder, look)
    job_folder = write_job(tmp_path / "b", MEETINGS, look, look)
    (job_folder / "rank0.json").rename(job_folder / "z.pt.trace.json")
    packed = gzip.compress((job_folder / "rank1.json").read_bytes())
    (job_folder / "rank1.json").unlink()
    (job_folder / "a.json.gz").write_bytes(packed)
    (job_folder / "README.md").write_text("two ranks")

    again = Trace.open(job_folder)

    assert contents_of(again) == told.tables
    assert findings_of(again) == told.findings
    assert blamed(again) == told.blamed
    assert report_of(again).skipped == {"files of another format": 1}


# -- what must change -------------------------------------------------------------------------


@slow
@each_look
@pytest.mark.parametrize("late_us", sampled([-90_000.0, -700, 700, 2_500, 1_000_000], [-700]))
def test_a_clock_that_is_set_otherwise_is_moved_back_and_nothing_else_changes(
    folder: Path, tmp_path: Path, look: Look, late_us: float
) -> None:
    agreed, told = as_it_is(folder, look)

    trace = opened(tmp_path, look, from_look(look, late_us=late_us))

    assert said(trace) == said(agreed)
    apart = (starts(trace, 1) - starts(agreed, 1)).abs().max()
    assert isinstance(apart, int)
    assert apart < NOISE_NS
    assert starts(trace, 0).equals(starts(agreed, 0))
    assert any(note.startswith("clock of rank 1 is moved by") for note in report_of(trace).notes)
    assert findings_of(trace)["counts"] == told.findings["counts"]
    assert blamed_sums(trace) == told.sums


@slow
@pytest.mark.parametrize("window", sampled(WINDOWS, WINDOWS[-1:]), ids=str)
@pytest.mark.parametrize(
    ("look", "late_us"),
    [
        (NUMBERED, 2_500.0),
        (BY_ORDER, 0.0),
        pytest.param(NUMBERED, 0.0, marks=slow),
        pytest.param(BY_ORDER, 2_500.0, marks=slow),
    ],
)
def test_a_window_that_begins_or_ends_elsewhere_holds_some_of_the_same_collectives(
    folder: Path, tmp_path: Path, look: Look, window: dict[str, int], late_us: float
) -> None:
    whole, _ = as_it_is(folder, look)

    trace = opened(tmp_path, look, from_look(look, late_us=late_us, **window))

    rows, all_rows = said(trace, "ordinal"), said(whole, "ordinal")
    assert rows <= all_rows
    assert rows.total() < all_rows.total()
    both = trace.collectives.collect().pivot("rank", index="ordinal", values="ts_ns").drop_nulls()
    assert len(both) == (rows.total() - 32)
    assert ((both["1"] - both["0"]).abs() < NOISE_NS).all()
    assert blamed_sums(trace, 0) == blamed_sums(whole, 0)
    assert latency_ns(trace, 1) < latency_ns(whole, 1)
    assert findings_of(trace)["counts"]["COL001"] == 0


@slow
@pytest.mark.parametrize("number", sampled([5, 17], [5]))
def test_a_collective_that_one_rank_lacks_is_missed_by_its_number(
    folder: Path, tmp_path: Path, number: int
) -> None:
    trace = opened(tmp_path, NUMBERED, from_look(NUMBERED, without=(number,)))

    agreed, _ = as_it_is(folder, NUMBERED)
    assert (said(agreed) - said(trace)).total() == 1
    assert said(trace) <= said(agreed)
    note = "rank 1 lacks 1 collective of tp that rank 0 has among those that both have"
    assert note in report_of(trace).notes
    assert blamed_sums(trace, 0) == blamed_sums(agreed, 0)
    assert spent_ns(trace, 1, "communication") < spent_ns(agreed, 1, "communication")
    assert findings_of(trace)["counts"] == findings_of(agreed)["counts"]


@slow
@pytest.mark.parametrize("number", sampled([5, 17], [5]))
@pytest.mark.parametrize("change", ["without", "swapped"])
@pytest.mark.parametrize("look", [NUMBERED, BY_ORDER], ids=["numbered", "by order"])
def test_a_collective_that_one_rank_lacks_or_issues_later_is_where_ranks_part_or_nothing_is_paired(
    folder: Path, tmp_path: Path, look: Look, change: str, number: int
) -> None:
    if look is NUMBERED and change == "without":
        pytest.skip("its number tells that it is lacking")
    changed = {"without": (number,)} if change == "without" else {"swapped": number}

    trace = opened(tmp_path, look, from_look(look, **changed))

    result, notes = findings_of(trace), report_of(trace).notes
    if any("not paired" in note for note in notes):
        assert {"COL001", "COL008"} <= set(result["not_applicable"])
    else:
        assert result["counts"]["COL001"] == 1
        assert any(f"part behind {number} of them" in note for note in notes)
    assert result["counts"]["TRC002"] == 0
    agreed, _ = as_it_is(folder, look)
    untouched = (0, 1) if change == "swapped" else (0,)
    assert blamed_sums(trace, *untouched) == blamed_sums(agreed, *untouched)


@slow
@pytest.mark.parametrize(
    ("rank", "is_swapped"),
    [
        (0, False),
        (1, True),
        pytest.param(0, True, marks=slow),
        pytest.param(1, False, marks=slow),
    ],
)
def test_a_device_that_comes_late_is_found_on_the_rank_that_it_is_of(
    tmp_path: Path, rank: int, is_swapped: bool
) -> None:
    late = job(2, num_steps=20, late_rank=rank, late_us=2_000)
    looks = [Look(), Look()]
    folder = write_job(tmp_path / "job", late, *looks)
    if is_swapped:
        for file, number in (("rank0.json", 1), ("rank1.json", 0)):
            top = json.loads((folder / file).read_bytes())
            top["distributedInfo"]["rank"] = number
            (folder / file).write_text(json.dumps(top))

    trace = Trace.open(folder)

    told = [found for found in findings_of(trace)["findings"] if found["code"] == "COL008"]
    assert told
    found_late = 1 - rank if is_swapped else rank
    assert {found["rank"] for found in told} == {found_late}
    waited_ns = spent_ns(trace, 1 - found_late, "communication")
    on_time_ns = spent_ns(trace, found_late, "communication")
    assert waited_ns - on_time_ns == pytest.approx(len(late) * 2_000_000, rel=0.01)


def test_on_time_nobody_is_found_late(tmp_path: Path) -> None:
    trace = opened(tmp_path, NUMBERED)

    assert findings_of(trace)["counts"]["COL008"] == 0
