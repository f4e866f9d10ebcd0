"""Build the scheduler of the SGLang that is installed, on a CPU, with nothing to compute.

It is SGLang's own class with its own pools and radix cache. It builds its worker itself, so that
worker is given a Llama of one layer and a few numbers, which is never run (`worker.py`).
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from stepscope.ingest.attach.sglang.settings import MEMORY, SCHEDULE

KNOWN = (*SCHEDULE, *MEMORY, "context_len")
NOT_CARRIED = ("context_len", "environment")
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
    "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1,
    "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 64, "rms_norm_eps": 1e-5,
    "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": True,
    "hidden_act": "silu",
}  # fmt: skip
MANY_TOKENS = 1 << 40
"""A request is told by a token of its own: there are more of them than any vocabulary has."""
Json = dict[str, Any]


def build(config: Json) -> tuple[Any, list[str]]:
    """Build a scheduler as `config` says; returns it, and what this version does not know of it."""
    os.environ.update(config.get("environment") or {})
    with tempfile.TemporaryDirectory(prefix="stepscope-sglang-") as folder:
        llama = {**LLAMA, "max_position_embeddings": config["context_len"]}
        (Path(folder) / "config.json").write_text(json.dumps(llama), encoding="utf-8")
        scheduler, unknown = _scheduler(config, folder)
    scheduler.model_config.vocab_size = MANY_TOKENS
    for sender in ("send_to_tokenizer", "send_to_detokenizer"):
        getattr(scheduler.ipc_channels, sender).socket = None  # nobody listens
    return scheduler, unknown


def _scheduler(config: Json, model: str) -> tuple[Any, list[str]]:
    from sglang.srt.managers import scheduler as module
    from sglang.srt.plugins.hook_registry import HookRegistry
    from sglang.srt.server_args import PortArgs, ServerArgs

    from stepscope.ingest.attach.sglang.registering import hook

    hook()
    HookRegistry.apply_hooks()
    given = {name: value for name, value in config.items()
             if name not in NOT_CARRIED and value is not None}  # fmt: skip
    unknown = [name for name in given if not hasattr(ServerArgs, name)]
    args = ServerArgs(
        model_path=model, device="cpu", attention_backend="torch_native",
        sampling_backend="pytorch", load_format="dummy", skip_tokenizer_init=True,
        dtype="float32", mem_fraction_static=0.5, disable_cuda_graph=True, grammar_backend="none",
        **{name: value for name, value in given.items() if name not in unknown},
    )  # fmt: skip
    ranks = module.SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0)
    module.publish(args, role="scheduler", ranks=ranks)
    return module.Scheduler(args, PortArgs.init_new(args)), unknown
