"""Build the scheduler of the vLLM that is installed, without a model and without a GPU.

The scheduler is vLLM's own class, with its own configuration classes as far as it looks at them;
the model's configuration alone is made up (`fakes.py`). What a version does not know of the
recorded configuration is left out and told.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from typing import Any

from stepscope.ingest.replay.vllm.fakes import FakeModel
from stepscope.ingest.replay.vllm.kv_groups import kv_cache_config

OF_THE_SCHEDULER = (
    "max_num_seqs", "max_num_batched_tokens", "max_num_scheduled_tokens", "max_num_active_seqs",
    "policy", "async_scheduling", "long_prefill_token_threshold",
    "long_prefill_token_threshold_adaptive", "enable_chunked_prefill", "watermark",
    "scheduler_reserve_full_isl", "max_num_partial_prefills", "max_long_partial_prefills",
    "disable_chunked_mm_input", "scheduler_cls", "prefill_schedule_interval",
    "max_num_queued_reqs", "max_num_queued_tokens",
)  # fmt: skip
OF_THE_CACHE = ("block_size", "enable_prefix_caching", "sliding_window")
OF_THE_RUN = (
    "num_blocks", "max_model_len", "num_spec_tokens", "pipeline_parallel_size", "max_loras",
)  # fmt: skip
KNOWN = (*OF_THE_SCHEDULER, *OF_THE_CACHE, *OF_THE_RUN)
Json = dict[str, Any]


def build(config: Json, grammars: Any) -> tuple[Any, list[str]]:
    """Build a scheduler as `config` says; returns it, and what this version does not know of it.

    `num_blocks` counts the blocks that requests can have: vLLM's null block comes on top.
    """
    vllm_config, unknown = _vllm_config(config)
    kv_cache = kv_cache_config(config)
    chosen = _scheduler_class(vllm_config.scheduler_config)
    given = {
        "vllm_config": vllm_config,
        "kv_cache_config": kv_cache,
        "structured_output_manager": grammars,
        "block_size": config["block_size"],
        "hash_block_size": config.get("hash_block_size") or config["block_size"],
        "include_finished_set": False,
        "log_stats": False,
    }
    takes = _parameters(chosen)
    return chosen(**{name: value for name, value in given.items() if name in takes}), unknown


def _scheduler_class(configured: Any) -> Any:
    """The class that the engine would take; versions before 0.12 chose it in their engine."""
    if hasattr(configured, "get_scheduler_cls"):
        return configured.get_scheduler_cls()
    name = str(configured.scheduler_cls)
    if name.startswith("vllm.core."):  # the default there: the scheduler of engines before V1
        name = "vllm.v1.core.sched.scheduler.Scheduler"
    if getattr(configured, "async_scheduling", False):
        name = "vllm.v1.core.sched.async_scheduler.AsyncScheduler"
    module, _, cls = name.rpartition(".")
    return getattr(importlib.import_module(module), cls)


def _parameters(chosen: Any) -> set[str]:
    """The parameters that a class takes, those of the class above it where it passes on any."""
    found: set[str] = set()
    for each in chosen.__mro__:
        if "__init__" not in vars(each):
            continue
        parameters = inspect.signature(each.__init__).parameters.values()
        found |= {parameter.name for parameter in parameters}
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return found


def _vllm_config(config: Json) -> tuple[Any, list[str]]:
    from vllm.config import CacheConfig, ParallelConfig, SchedulerConfig, VllmConfig

    unknown: list[str] = []
    max_model_len = config["max_model_len"]
    scheduler = _made(SchedulerConfig, config, OF_THE_SCHEDULER, unknown, {
        "max_model_len": max_model_len, "is_encoder_decoder": False,
    })  # fmt: skip
    cache = _made(CacheConfig, config, OF_THE_CACHE, unknown, {})
    cache.num_gpu_blocks = config["num_blocks"] + 1
    parallel = _made(ParallelConfig, config, ("pipeline_parallel_size",), unknown, {})
    made = _unasked(VllmConfig)
    made.__dict__.update(
        model_config=_model(max_model_len), scheduler_config=scheduler, cache_config=cache,
        parallel_config=parallel, speculative_config=_drafting(config), lora_config=_lora(config),
    )  # fmt: skip
    return made, unknown


def _made(kind: Any, config: Json, names: tuple[str, ...], unknown: list[str], fixed: Json) -> Any:
    """Call vLLM's own class with what of the configuration it has a field for."""
    takes = {each.name for each in dataclasses.fields(kind)} | set(
        inspect.signature(kind).parameters
    )
    given = {name: config[name] for name in names if config.get(name) is not None}
    unknown += [name for name in given if name not in takes]
    return kind(**{name: value for name, value in (given | fixed).items() if name in takes})


def _unasked(kind: Any) -> Any:
    """An instance with the defaults of its fields, past checks that ask for a model or a GPU."""
    made = object.__new__(kind)
    for each in dataclasses.fields(kind):
        if each.default_factory is not dataclasses.MISSING:
            value = _or_none(each.default_factory)
        else:
            value = None if each.default is dataclasses.MISSING else each.default
        made.__dict__[each.name] = _default_of(value)
    return made


def _default_of(value: Any) -> Any:
    """The default that pydantic's Field() stands for."""
    if type(value).__name__ != "FieldInfo":
        return value
    return _or_none(value.default_factory) if value.default_factory else value.default


def _or_none(make: Any) -> Any:
    try:
        return make()
    except Exception:  # a part of the configuration that wants a GPU: no scheduler looks at it
        return None


def _model(max_model_len: int) -> FakeModel:
    return FakeModel(
        max_model_len=max_model_len, runner_type="generate", is_encoder_decoder=False,
        uses_mrope=False, supports_multimodal_inputs=False, is_multimodal_model=False,
        is_diffusion=False, skip_tokenizer_init=True, return_sampling_mask=False,
        is_hybrid=False, is_attention_free=False, enable_return_routed_experts=False,
        architectures=(),
    )  # fmt: skip


def _lora(config: Json) -> Any:
    """The configuration of LoRA adapters: of which a scheduler looks at how many fit."""
    if not config.get("max_loras"):
        return None
    made = _unasked(importlib.import_module("vllm.config").LoRAConfig)
    made.__dict__.update(max_loras=config["max_loras"])
    return made


def _drafting(config: Json) -> Any:
    """The configuration of drafts, of n-grams where the trace names no method."""
    if not config.get("num_spec_tokens"):
        return None
    made = _unasked(importlib.import_module("vllm.config").SpeculativeConfig)
    method = config.get("spec_method") or "ngram"
    made.__dict__.update(method=method, num_speculative_tokens=config["num_spec_tokens"])
    return made
