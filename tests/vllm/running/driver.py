"""Runs engines of vLLM, one after the other: `python -m tests.vllm.running.driver FOLDER...`.

Each folder has a `spec.json`: `engine` (arguments of `LLM`), `requests`, and how they come: all at
once by `generate`, or at the step that each says. It gets the trace, the witness's lines, and
`metrics.json`, what vLLM itself says of each request.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
ADAPTERS = "STEPSCOPE_TEST_LORA"
"""The variable with the path of LoRAs, but for their numbers."""


def main(folders: Sequence[str]) -> None:
    """Run what each folder says."""
    for folder in folders:
        os.environ["STEPSCOPE_TRACE"] = f"{folder}/traces"
        os.environ["STEPSCOPE_TRUTH"] = f"{folder}/truth"
        _run(Path(folder))
        gc.collect()


def _let_grammars_in() -> None:
    """Give lm-format-enforcer what it imports from where older vLLM and transformers had it."""
    from transformers import PreTrainedTokenizerBase, tokenization_utils

    tokenization_utils.PreTrainedTokenizerBase = PreTrainedTokenizerBase
    sys.modules["transformers.tokenization_utils"] = tokenization_utils
    old = types.ModuleType("vllm.transformers_utils.tokenizer")
    vars(old)["MistralTokenizer"] = type("MistralTokenizer", (), {})
    sys.modules[old.__name__] = old


def _run(folder: Path) -> None:
    from vllm import LLM

    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    _let_grammars_in()
    llm = LLM(**spec["engine"])
    if spec.get("profile"):
        llm.start_profile()
    run = _generate if spec.get("at_once") else _step
    began = time.perf_counter()
    outputs = run(llm, spec["requests"])
    took = time.perf_counter() - began
    if spec.get("profile"):
        llm.stop_profile()
    told = {
        "seconds": took,
        "mono_minus_wall": time.monotonic() - time.time(),
        "requests": [_told(output) for output in outputs],
    }
    (folder / "metrics.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    llm.llm_engine.engine_core.shutdown()


def _generate(llm: Any, requests: Sequence[Row]) -> list[Any]:
    params = [_params(request) for request in requests]
    prompts = [request["prompt"] for request in requests]
    priority = [request.get("priority", 0) for request in requests]
    lora = [_lora(request) for request in requests]
    given: Row = {"lora_request": lora} if any(lora) else {}
    return list(llm.generate(prompts, params, priority=priority, use_tqdm=False, **given))


def _step(llm: Any, requests: Sequence[Row]) -> list[Any]:
    """Step the engine by hand: requests come and are aborted at the steps that they name."""
    engine, step, ended = llm.llm_engine, 0, []
    named: dict[str, str] = {}
    while step == 0 or engine.has_unfinished_requests() or len(named) < len(requests):
        for request in requests:
            if request.get("at", 0) == step:
                named[request["id"]] = engine.add_request(
                    request["id"], request["prompt"], _params(request),
                    priority=request.get("priority", 0), lora_request=_lora(request),
                )  # fmt: skip
            if request.get("abort_at") == step:
                engine.abort_request([request["id"]])
        ended += [output for output in engine.step() if output.finished]
        step += 1
    return ended


def _params(request: Row) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    schema = request.get("schema")
    limits = StructuredOutputsParams(json=schema) if schema else None
    return SamplingParams(
        max_tokens=request["max_tokens"],
        temperature=0.0,
        ignore_eos=request.get("ignore_eos", not schema),
        structured_outputs=limits,
    )


def _lora(request: Row) -> Any:
    from vllm.lora.request import LoRARequest

    number = request.get("lora")
    return (
        LoRARequest(f"lora-{number}", number, os.environ[ADAPTERS] + str(number))
        if number
        else None
    )


def _told(output: Any) -> Row:
    metrics = output.metrics
    told = {name: getattr(metrics, name, None) for name in METRICS} if metrics else {}
    return {
        "id": output.request_id,
        "prompt": len(output.prompt_token_ids or ()),
        "out": len(output.outputs[0].token_ids),
        "reason": output.outputs[0].finish_reason,
        "cached": output.num_cached_tokens,
        **told,
    }


METRICS = (
    "arrival_time", "queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts",
    "first_token_latency", "num_generation_tokens", "num_preemptions",
)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
