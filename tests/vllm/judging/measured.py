"""A replay against a measured run of vLLM, beside what simulators say of theirs.

`python -m tests.vllm.judging.measured` prints the table. The run is LLMServingSim's: 300 requests
of ShareGPT on Llama 3.1 8B and an RTX 4090. Costs are fitted to the first third of its requests;
what is told is of the others.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stepscope.analyzers.replay.rank_by_rank import Replay, replay
from stepscope.analyzers.replay.served import MEASURES, STATISTICS
from stepscope.app.replay.launch import run
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

REQUESTS = ROOT.parent / "shared" / "foreign" / "llmservingsim_vllm_requests.jsonl"
SETTINGS = {
    "max_num_seqs": 256, "max_num_batched_tokens": 2048, "max_model_len": 8192, "block_size": 16,
    "num_blocks": 2587, "async_scheduling": True,
}  # fmt: skip
PUBLISHED = (
    ("LLMServingSim", "0.6 to 13.6%", "0.2 to 1.7%"),
    ("SGLang's simulator", "76 to 98%", "not told"),
    ("BLIS", "17.6%", "not told"),
)
"""Whose, TTFT, TPOT: of their own runs, as their authors tell."""


def replayed(folder: Path, python: str = sys.executable) -> Replay:
    """Replay the measured run on the scheduler of that Python."""
    out = folder / "replay.trace"
    trace = Trace.open(REQUESTS)
    return replay(trace, "vllm", SETTINGS, out, lambda script: run(script, python, out))


def table(found: Replay) -> Iterator[str]:
    """Errors of the replay, and of the others."""
    yield f"{'error of':<40}{'TTFT':<28}TPOT"
    ours = [
        ", ".join(f"{found.served.error(measure, each) or 0:+.1%}" for each in STATISTICS)
        for measure in MEASURES
    ]
    head = f"this replay ({', '.join(STATISTICS)})"
    for name, ttft, tpot in ((head, *ours), *PUBLISHED):
        yield f"{name:<40}{ttft:<28}{tpot}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.writelines(f"{line}\n" for line in table(replayed(Path(made))))
