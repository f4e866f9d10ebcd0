"""Drives SGLang's real scheduler, a tiny random Llama on the CPU behind it, and writes its truth.

    PYTHON drive_to_replay.py FOLDER SETTINGS

`FOLDER/truth.json` gets the scheduler's own state at each step: batch, queue, tokens that
each request of the batch has. `SETTINGS` is JSON of server arguments. Not imported by tests: it
runs in the environment that has SGLang.
"""

# ruff: noqa: PLC0415 - what is SGLang's is imported when its plug-ins can be hooked
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import random
import sys
from array import array
from pathlib import Path
from typing import Any

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256, "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5, "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip
DEFAULTS = {
    "disable_overlap_schedule": True, "max_running_requests": 16, "grammar_backend": "none",
}  # fmt: skip
"""What a situation's settings replace."""
STOPS = list(range(3, 24))
"""Tokens that end whoever does not ignore them."""


def scheduler_of(folder: Path, settings: dict[str, Any]) -> Any:
    """Make a scheduler as its process does, hooks of plug-ins applied."""
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG))
    from sglang.srt.managers import scheduler as module
    from sglang.srt.plugins.hook_registry import HookRegistry
    from sglang.srt.server_args import PortArgs, ServerArgs

    from stepscope.ingest.attach.sglang.registering import register

    register()
    HookRegistry.apply_hooks()
    args = ServerArgs(
        model_path=str(folder / "model"), device="cpu", attention_backend="torch_native",
        sampling_backend="pytorch", load_format="dummy", skip_tokenizer_init=True,
        dtype="float32", mem_fraction_static=0.5, disable_cuda_graph=True, **(DEFAULTS | settings),
    )  # fmt: skip
    module.publish(
        args, role="scheduler", ranks=module.SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0)
    )
    return module.Scheduler(args, PortArgs.init_new(args))


def add(scheduler: Any, number: int, prompt: list[int], max_tokens: int) -> None:
    """Give the scheduler a request: every third ends at its length alone, some have priorities."""
    from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
    from sglang.srt.sampling.sampling_params import SamplingParams

    sampling = SamplingParams(
        max_new_tokens=max_tokens, temperature=0, ignore_eos=number % 3 == 0, stop_token_ids=STOPS
    )
    sampling.normalize(None)
    has_priority = scheduler.enable_priority_scheduling and number % 5
    scheduler.handle_generate_request(
        TokenizedGenerateReqInput(
            rid=f"r{number:02}", input_text=None, input_ids=array("q", prompt), input_embeds=None,
            mm_inputs=None, token_type_ids=None, sampling_params=sampling, return_logprob=False,
            logprob_start_len=-1, top_logprobs_num=0, token_ids_logprob=None, stream=False,
            priority=number % 4 if has_priority else None,
        )
    )  # fmt: skip


def run(scheduler: Any, most: int) -> list[dict[str, Any]]:
    """Run steps as the scheduler's own loop does, until nobody waits or runs."""
    truth = []
    for _ in range(most):
        plan = scheduler.get_next_batch_to_run(
            running_batch=scheduler.running_batch, last_batch=scheduler.last_batch
        )
        scheduler.running_batch, batch = plan.running_batch, plan.batch_to_run
        queue = [req.rid for req in scheduler.waiting_queue]
        if batch:
            scheduler.process_batch_result(batch, scheduler.run_batch(batch))
            tokens = {req.rid: len(req.output_ids) for req in batch.reqs}
            truth.append({"batch": [*tokens], "waiting": queue, "tokens": tokens})
        scheduler.last_batch = batch
        if not batch and not queue:
            break
    return truth


def main() -> None:
    """Run two bursts of requests that share a prefix, and abort one that waits."""
    from sglang.srt.managers.io_struct import AbortReq

    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    scheduler, draw = scheduler_of(folder, settings), random.Random(3)
    shared, truth = [5 + at for at in range(24)], []
    for number in range(14):
        if number == 8:
            truth += run(scheduler, 12)
            if scheduler.waiting_queue:
                scheduler.abort_request(AbortReq(rid=scheduler.waiting_queue[-1].rid))
        length = draw.randrange(6, 40)
        own = [3 + (11 * number + at) % 240 for at in range(length - length // 2)]
        add(scheduler, number, shared[: length // 2] + own, draw.randrange(10, 60))
    truth += run(scheduler, 900)
    scheduler._stepscope.close()
    (folder / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main()
