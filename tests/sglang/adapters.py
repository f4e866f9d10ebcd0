"""LoRA adapters of the tiny Llama: small, and of random numbers."""

# ruff: noqa: PLC0415 - what is the engine's is imported where it is
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RANK = 4


def settings_for(settings: dict[str, Any]) -> dict[str, Any]:
    """SGLang's settings, where `adapters` of a situation says how many are to be loaded."""
    given = {name: value for name, value in settings.items() if name != "adapters"}
    if "adapters" not in settings:
        return given
    without_pinned_memory()
    return {
        **given, "enable_lora": True, "lora_backend": "torch_native", "max_lora_rank": RANK,
        "lora_target_modules": {"o_proj"}, "lora_paths": [],
    }  # fmt: skip


def load(scheduler: Any, llama: dict[str, Any], number: int) -> None:
    """Load as many as `adapter-0`, ... as a client does that has their numbers at hand."""
    from sglang.srt.lora.lora_registry import LoRARef

    if not number:
        return
    told = {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "target_modules": ["o_proj"]}
    for each in range(number):
        ref = LoRARef(lora_id=id_of(f"adapter-{each}"), lora_name=f"adapter-{each}",
                      lora_path="__tensor__", pinned=False)  # fmt: skip
        manager = scheduler.tp_worker.model_runner.lora_manager
        loaded = manager.load_lora_adapter_from_tensors(ref, _numbers(llama), told)
        assert loaded.success, loaded.error_message


def without_pinned_memory() -> None:
    """SGLang pins what it sends to a GPU, which PyTorch refuses where there is none."""
    import torch

    def unpinned(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: make(*args, **{**kwargs, "pin_memory": False})

    for name in ("tensor", "empty", "zeros"):
        setattr(torch, name, unpinned(getattr(torch, name)))
    torch.Tensor.pin_memory = lambda tensor, *_: tensor  # type: ignore[method-assign]  # no pinned memory


def id_of(name: str | None) -> str | None:
    """The number by which SGLang knows an adapter."""
    return None if name is None else f"{name}-loaded-once"


def _numbers(llama: dict[str, Any]) -> dict[str, Any]:
    import torch

    width = llama["num_attention_heads"] * llama["head_dim"]
    numbers = {}
    for layer in range(llama["num_hidden_layers"]):
        at = f"base_model.model.model.layers.{layer}.self_attn.o_proj"
        numbers[f"{at}.lora_A.weight"] = torch.randn(RANK, width) / 8
        numbers[f"{at}.lora_B.weight"] = torch.randn(llama["hidden_size"], RANK) / 8
    return numbers
