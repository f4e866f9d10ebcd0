"""What is said of a job in parts is what `check` and `summary` say of its folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import finding, lacking
from stepscope.analyzers.fleet.rank_columns import NOT_LOOKED_AT, ONLY_THAT_THERE_ARE
from stepscope.analyzers.many_runs.trace_row import SCHEMA, trace_row
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.schema import BY_NAME, TABLES
from stepscope.ingest.trace import Trace
from tests.analyzers.fleet.at_hand import imported, rows
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.tiers import slow

PLAIN = Look()
LOOKS = {
    "another order": [PLAIN, replace(PLAIN, swapped=9, late_us=90_000.0), PLAIN],
    "lacking": [PLAIN, replace(PLAIN, without=(4, 5)), replace(PLAIN, last_step=3)],
    "by order": [replace(PLAIN, has_seq=False)] * 2,
}
OPS = ("allreduce", "broadcast")


def ranks(folder: Path, *looks: Look, **given: Any) -> Path:
    return write_job(folder, job(len(looks), num_steps=8, ops=OPS, **given), *looks)


@pytest.fixture(params=[*LOOKS, "late", "damaged", "perfetto"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, sample_traces: Path) -> Path:
    """A job as a folder; each is another one."""
    name = request.param
    if name in LOOKS:
        return ranks(tmp_path / "job", *LOOKS[name])
    if name == "late":
        return ranks(tmp_path / "job", *[PLAIN] * 3, late_rank=1, late_us=9_000)
    made = ranks(tmp_path / "job", *[PLAIN] * 3)
    if name == "damaged":
        (made / "rank1.json").write_text((made / "rank1.json").read_text()[:30])
        (made / "notes.txt").write_text("no profile\n")
        (made / "empty.json").touch()
        shutil.copy(made / "rank2.json", made / "rank2.again.json")
    elif name == "perfetto":
        shutil.copy(sample_traces / "perfetto_two_ranks.pftrace", made / "both.pftrace")
    return made


@pytest.fixture
def real(tmp_path: Path, shared_data: Path) -> Path:
    """Two ranks that other people's programs recorded."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in (0, 1):
        shutil.copy(shared_data / "kineto" / f"hta_sampled_rank-{rank}.json.gz", folder)
    return folder


def assert_as_check_says(archive: Path, folder: Path) -> None:
    trace = Trace.open(folder, cached=False)
    checked = replace(check(trace, RULES), trace=str(folder))
    row = trace_row(trace, str(folder), checked)

    imported(archive, folder)

    told = [
        {name: row[name] for name in asdict(each)}
        for each, row in zip(checked.findings, rows(archive, "findings"), strict=True)
    ]
    assert [{**each, "evidence": json.loads(each["evidence"])} for each in told] == [
        {**asdict(each), "severity": str(each.severity)} for each in checked.findings
    ]
    (found,) = rows(archive, "traces")
    assert {name: found[name] for name in SCHEMA} == {name: row.get(name) for name in SCHEMA}


def test_a_job_is_told_as_its_folder_is(tmp_path: Path, folder: Path) -> None:
    assert_as_check_says(tmp_path / "archive", folder)


@slow
def test_a_real_job_is_told_as_its_folder_is(tmp_path: Path, real: Path) -> None:
    assert_as_check_says(tmp_path / "archive", real)


@slow
def test_those_jobs_say_more_than_that_steps_were_inferred(tmp_path: Path) -> None:
    made = ranks(tmp_path / "job", *LOOKS["another order"])

    imported(tmp_path / "archive", made)

    assert "COL001" in {row["code"] for row in rows(tmp_path / "archive", "findings")}


@slow
def test_a_trace_by_itself_is_told_as_it_is(tmp_path: Path, sample_traces: Path) -> None:
    assert_as_check_says(tmp_path / "archive", sample_traces / "fcfs-preemption-before.trace")


@slow
def test_a_job_is_sent_fewer_bytes_than_its_files_have(tmp_path: Path, real: Path) -> None:
    imported(tmp_path / "archive", real)

    for row in rows(tmp_path / "archive", "files"):
        assert 0 < row["sent_bytes"] < row["num_bytes"] / 5


def watched(trace: Trace, asked: dict[str, set[str]]) -> Trace:
    """The same trace, which notes the columns that are read of each table."""

    def source(table: str, frame: pl.DataFrame) -> pl.LazyFrame:
        def read(
            columns: list[str] | None, predicate: pl.Expr | None, num: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            asked.setdefault(table, set()).update(columns or frame.columns)
            found = frame if predicate is None else frame.filter(predicate)
            yield (found if num is None else found.head(num)).select(columns or pl.all())

        return register_io_source(read, schema=polars_schema(BY_NAME[table]))

    frames = {each.name: source(each.name, trace.table(each.name).collect()) for each in TABLES}
    return trace.replacing(frames, trace.manifest)


@slow
def test_no_rule_reads_what_is_not_sent(tmp_path: Path) -> None:
    trace = Trace.open(ranks(tmp_path / "job", *LOOKS["another order"]), cached=False)
    asked: dict[str, set[str]] = {}
    seen = watched(trace, asked)

    judged = [rule for rule in RULES if not lacking(rule, trace)]
    for rule in judged:
        rule.check(seen)

    assert len(judged) > 5
    assert {"op", "ordinal", "num_elements"} <= asked["collectives"]
    for table in ONLY_THAT_THERE_ARE:
        assert asked.get(table, set()) <= {"rank", "ts_ns"}
    for table, columns in NOT_LOOKED_AT.items():
        assert asked.get(table, set()).isdisjoint(columns)


@dataclass(frozen=True, slots=True)
class NamedSpan:
    """A rule of another package, which looks at what none of ours does."""

    code: ClassVar[str] = "XYZ001"
    name: ClassVar[str] = "named-span"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[str, ...]] = ("spans",)

    def check(self, trace: Trace) -> list[Finding]:
        num = trace.spans.filter(pl.col("name") == "record_param_comms").collect().height
        return [finding(self, f"{num} calls", "none", count=num)] if num else []


@slow
def test_a_rule_of_another_package_gets_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {rule.code: rule for rule in (*RULES, NamedSpan())}
    monkeypatch.setattr("stepscope.analyzers.fleet.messages.by_code", known.__getitem__)
    monkeypatch.setattr("stepscope.analyzers.check.thresholds.by_code", known.__getitem__)
    made = ranks(tmp_path / "job", PLAIN, PLAIN)

    imported(tmp_path / "archive", made, rules=[NamedSpan()])

    (found,) = rows(tmp_path / "archive", "findings", "code", "count")
    assert found == {"code": "XYZ001", "count": 64}
