"""A rule, a reader and a writer that nobody needs, each added as CONTRIBUTING says."""

from __future__ import annotations

from tests.contributing.patch import Patch

RULE = Patch(
    "Add a rule",
    "analyzers/rules/bat/bat099_step_is_slow.py",
    '''"""step-is-slow: a step takes a second or more.

## What it finds
Steps that last a second or more, whatever they compute: one finding for each.

## Why it hurts
Everybody in the batch waits for its end, and gets no token before it.

## Example
A prompt of 100,000 tokens that is computed at once: the step takes two seconds.

## How to fix
Compute long prompts in chunks, or let fewer requests into a batch.

## References
- The throughput of a device is its own affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class StepIsSlow:
    """See the module's page."""

    code: ClassVar[str] = "BAT099"
    name: ClassVar[str] = "step-is-slow"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("steps.dur_ns",)

    min_dur_ns: int = 1_000_000_000

    def check(self, trace: Trace) -> list[Finding]:
        """One finding for each step."""
        slow = trace.steps.filter(pl.col("dur_ns") >= self.min_dur_ns).collect()
        rows = slow.iter_rows(named=True)
        return [finding(self, f"step {row['step']} is slow", "be quick", at=row) for row in rows]
''',
    "StepIsSlow(),",
    "from stepscope.analyzers.rules.bat.bat099_step_is_slow import StepIsSlow",
    {
        "tests/analyzers/rules/bat/test_bat099_step_is_slow.py": """
import pytest

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.check.run import check
from tests.traces import trace_of


@pytest.mark.parametrize(("dur_ns", "num"), [(1_000_000_000, 1), (999_999_999, 0)])
def test_check_runs_it_by_its_code(dur_ns, num):
    trace = trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": dur_ns}])

    assert check(trace, [by_code("BAT099")]).counts == {"BAT099": num}
"""
    },
    runs=(
        "tests/analyzers/check/test_registry.py",
        "tests/analyzers/check/test_explain.py",
    ),
)


READER = Patch(
    "Add a reader",
    "ingest/readers/step_list/reader.py",
    '''"""Reader of lists of steps: "steps:", and the length of one on each line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress

MARK = "steps:"


class StepListReader:
    """Reads a step from each line that is a number, and counts the others."""

    name = "list of steps"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by the mark."""
        return head.startswith(MARK.encode())

    def sources(self, path: Path) -> list[Path]:
        """The file alone."""
        return [path]

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        """Read the steps."""
        lines = path.read_text("utf-8", "replace").removeprefix(MARK).split()
        lengths = [int(line) for line in lines if line.isdigit()]
        steps = pl.DataFrame({"step": range(1, len(lengths) + 1), "dur_ns": lengths}).with_columns(
            ts_ns=pl.col("dur_ns").cum_sum() - pl.col("dur_ns"), kind=pl.lit(None, pl.String)
        )
        report = ReadReport({"steps": len(lengths)}, {"other lines": len(lines) - len(lengths)})
        clock, tables = ClockInfo("virtual"), {"steps": "inferred"}
        return {"steps": steps}, Manifest(self.name, clock=clock, tables=tables, report=report)
''',
    '"step_list.reader.StepListReader",',
    tests={
        "tests/ingest/readers/step_list/test_reader.py": '''
from stepscope.ingest.trace import Trace


def test_a_file_of_the_new_format_opens(tmp_path):
    file = tmp_path / "steps.txt"
    file.write_text("steps:\\n7\\nodd\\n9\\n")

    trace = Trace.open(file)

    assert trace.table("steps").collect()["dur_ns"].to_list() == [7, 9]
    assert sum(trace.manifest.report.skipped.values()) == 1
'''
    },
    document=("docs/formats.md", "| lists of requests", "| lists of steps | a step for each |"),
    runs=("tests/test_layout.py::"
          "test_every_format_is_read_from_a_folder_whose_reader_has_the_same_place",),
)  # fmt: skip
WRITER = Patch(
    "Add a writer",
    "ingest/writers/step_list.py",
    '''"""Lists of steps: "steps:", and the length of one on each line."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.shown import draft


class StepListWriter:
    """A line for each step that ended."""

    endings = (".steps",)

    def write(self, trace: Trace, out: Path) -> None:
        """Write the list."""
        lengths = trace.steps.sort("ts_ns").collect()["dur_ns"].drop_nulls()
        with draft(out) as file:
            file.write("\\n".join(["steps:", *map(str, lengths), ""]).encode())
''',
    '"step_list.StepListWriter",',
    tests={
        "tests/ingest/writers/test_step_list.py": """
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers import writer_of


def test_its_ending_writes_a_line_for_each_step(sample_traces, tmp_path):
    out = tmp_path / "out.steps"

    writer_of(out).write(Trace.open(sample_traces / "fcfs-preemption-after.trace"), out)

    assert out.read_text("utf-8").startswith("steps:\\n1")
"""
    },
    document=("docs/formats.md", "| `out.trace`", "| `out.steps` | the length of each step |"),
    runs=("tests/ingest/writers/test_every_writer.py",),
)
