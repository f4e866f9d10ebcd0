"""Make `vllm_engine.log`: what a vLLM on a CPU logs of its iterations and of itself.

    .venv-vllm/bin/python sample_traces/make_vllm_log.py

Needs the environment of `make test-vllm`. Fourteen requests that begin alike, with a prefix cache
and drafts by n-grams; a line for each iteration, and others every half a second. Times, throughputs
and the steps at which lines of the second kind come differ from run to run.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.vllm.runs import Situation, run_all
from tests.vllm.situations import DRAFTS
from tests.vllm.tiny_llama import make, words

OUT = Path(__file__).with_name("vllm_engine.log")
ENGINE = {
    "enable_prefix_caching": True, "long_prefill_token_threshold": 48,
    "speculative_config": DRAFTS, "enable_logging_iteration_details": True,
}  # fmt: skip
NUM_REQUESTS = 14
NAMES_A_FOLDER = re.compile(r"(?<![\w.])/[\w.-]+/|//")


def requests() -> list[dict[str, object]]:
    """Who comes before the first step, and who before the second."""
    shared = words(100, 5)
    return [
        {"id": f"req-{number}", "at": number // 7, "max_tokens": 8 + number * 7 % 24,
         "prompt": f"{shared} {words(10 + number * 11 % 70, 3 * number)}"}
        for number in range(NUM_REQUESTS)
    ]  # fmt: skip


def main() -> None:
    """Serve the requests and write the engine's own lines without paths of this machine."""
    os.environ |= {"VLLM_LOG_STATS_INTERVAL": "0.5"}
    situation = Situation("logged", requests(), ENGINE, profile=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_all([situation], make(folder / "model"), folder)
        text = (folder / "output.txt").read_text().replace(f"{folder}/", "")
    lines = text.splitlines(keepends=True)
    own = [line for line in lines if line.startswith("(") and not NAMES_A_FOLDER.search(line)]
    OUT.write_text("".join(own))


if __name__ == "__main__":
    main()
