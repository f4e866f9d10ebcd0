"""Every real file opens, and what the report accounts for is what the standard library counts."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from stepscope.ingest.errors import UnknownFormat
from stepscope.ingest.readers.core_runtime.decode import MALFORMED as MALFORMED_LINES
from stepscope.ingest.readers.core_runtime.decode import OTHER
from stepscope.ingest.readers.logs.reader import OTHER_LINES
from stepscope.ingest.readers.requests.reader import MALFORMED
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.log_files import report_of
from tests.ingest.real_files import profile
from tests.tiers import sampled, slow

SHARED = ROOT.parent / "shared" / "data"
SAMPLES = ROOT / "sample_traces"
OWN = [f"kineto/{file.relative_to(SAMPLES)}" for file in sorted(SAMPLES.rglob("*.json.gz"))]
SHARED_FILES = sorted(str(file.relative_to(SHARED)) for file in SHARED.rglob("*") if file.is_file())
FILES = [*OWN, *SHARED_FILES]
QUICK = [*OWN, *{Path(name).parts[0]: name for name in reversed(SHARED_FILES)}.values()]
"""Our own, and a file of each folder."""
PROSE = {"README.md"}
# Skipped and not a line or record of its own: a part of one that was read.
UNKEPT = re.compile(r"no table has a column|lists of requests|prompts of which")


def num_in_json(file: Path) -> int:
    return len(json.loads(gzip.decompress(file.read_bytes()))["traceEvents"])


def num_in_log(file: Path) -> int:
    return len([line for line in file.read_text().splitlines() if line])


def num_in_list(file: Path) -> int:
    with file.open(newline="") as opened:
        return len(list(csv.reader(opened)) if file.suffix == ".csv" else opened.readlines())


def num_in_swimlane(file: Path) -> int:
    """All of a folder: each of its files stands for it."""
    found = json.loads((file.parent / "chip_swimlane_records.json").read_text())
    deps = json.loads((file.parent / "deps.json").read_text())
    (named,) = file.parent.glob("name_map_*.json")
    lists = [found["aicore_tasks"], found["aicpu_tasks"], deps["tasks"], deps["edges"]]
    lists += found["aicpu_scheduler_phases"] + found["aicpu_orchestrator_phases"]
    lists += [json.loads(named.read_text())["callable_id_to_name"]]
    lists += [(file.parent / "scope_stats.jsonl").read_text().splitlines()]
    return sum(map(len, lists))


COUNTS = {
    "kineto": num_in_json, "logs": num_in_log, "requests": num_in_list, "swimlane": num_in_swimlane,
}  # fmt: skip


@slow
@pytest.mark.parametrize("name", sampled(FILES, QUICK))
def test_every_file_opens_and_every_record_is_read_or_counted(name: str) -> None:
    file = SAMPLES / name.removeprefix("kineto/") if name in OWN else SHARED / name
    if name in PROSE:
        with pytest.raises(UnknownFormat):
            Trace.open(file)
        return

    trace = Trace.open(file)

    report = report_of(trace)
    skipped = {what: num for what, num in report.skipped.items() if not UNKEPT.search(what)}
    assert set(skipped) <= {OTHER_LINES, OTHER}
    assert not {MALFORMED, MALFORMED_LINES} & set(report.skipped)
    assert sum(report.read.values()) + sum(skipped.values()) == COUNTS[Path(name).parts[0]](file)
    assert sum(map(trace.num_rows, trace.manifest.tables)) > 0
    assert all(trace.has(table) for table in trace.manifest.tables)


@slow
@pytest.mark.parametrize(
    ("name", "num_steps"),
    [
        ("torch_profiler_cpu", 17), ("gloo_rank0", 14), ("gloo_rank1", 14),
        ("vllm_cpu_tiny_llama_preemptions", 133),
    ],
)  # fmt: skip
def test_tokens_of_every_step_are_those_of_its_tags(name: str, num_steps: int) -> None:
    """The tags are searched for in the raw text: one per step, whatever else has their name."""
    file = profile(name)
    tag = rb'"name": "execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)"'
    raw = gzip.decompress(file.read_bytes())
    told = Counter(tuple(map(int, found)) for found in re.findall(tag, raw))

    columns = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "num_decode_tokens")
    found = Counter(Trace.open(file).steps.select(columns).collect().rows())

    assert told.total() == num_steps
    assert found == told
