"""Make `torch_executor_cpu.json.gz`: 20 steps of the reference engine under torch.profiler.

    python sample_traces/make_torch_executor.py

Needs the extra `torch`. It is the file that `stepscope record --executor torch --profile` keeps in
its trace: two requests on a decoder of one layer, 4 steps of prefill, 3 mixed and 13 of decode.
Times differ from run to run; steps, rows and tokens do not.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from stepscope.app.cli import main
from stepscope.engine.executors.profiling import KINETO_FILE

OUT = Path(__file__).with_name("torch_executor_cpu.json.gz")
COMMAND = (
    "record", "mixed-batches", "--variant", "after", "--executor", "torch", "--profile",
    "--set", "requests=2", "--set", "prompt_len=96", "--set", "max_tokens=14",
    "--set", "layers=1", "--set", "attention_chunk=256",
)  # fmt: skip


def make(file: Path) -> int:
    """Record, and keep the profile as `file`; returns the exit code of the command."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "run.trace"
        code = main([*COMMAND, "-o", str(trace)])
        if not code:
            shutil.copyfile(trace / KINETO_FILE, file)
        return code


if __name__ == "__main__":
    sys.exit(make(OUT))
