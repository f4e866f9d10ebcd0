"""A Llama of half a million random weights and a tokenizer of words, made on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 512,
}
RANK = 8
"""Of a LoRA."""
SPECIAL = ("<unk>", "<s>", "</s>")
LETTERS = '{}[]":,.-+ \n' + "0123456789abcdefghijklmnopqrstuvwxyz"


def make(folder: Path, *, num_experts: int = 0) -> Path:
    """Write the model and its tokenizer into `folder`, the same whenever it is made.

    With experts it is a Mixtral, of which each token has two.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_model(folder, num_experts)
    _write_tokenizer(folder)
    return folder


def make_shape(folder: Path, sizes: Mapping[str, int]) -> Path:
    """Write a model's configuration and its tokenizer, and no weights."""
    from transformers import LlamaConfig

    folder.mkdir(parents=True, exist_ok=True)
    known = {**SIZES, **sizes, "max_position_embeddings": 4096, "dtype": "bfloat16"}
    LlamaConfig(
        **known, architectures=["LlamaForCausalLM"], bos_token_id=1, eos_token_id=2
    ).save_pretrained(folder)
    _write_tokenizer(folder)
    return folder


def make_adapter(folder: Path, number: int) -> Path:
    """Write a LoRA of random weights for two of the model's projections."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(number)
    heads = {"q_proj": SIZES["num_attention_heads"], "v_proj": SIZES["num_key_value_heads"]}
    weights = {}
    for layer in range(SIZES["num_hidden_layers"]):
        for name, num_heads in heads.items():
            at = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{at}.lora_A.weight"] = torch.randn(RANK, SIZES["hidden_size"]) / 8
            weights[f"{at}.lora_B.weight"] = torch.randn(num_heads * SIZES["head_dim"], RANK) / 8
    save_file(weights, folder / "adapter_model.safetensors")
    told = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": RANK,
        "target_modules": list(heads), "bias": "none", "lora_dropout": 0.0,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def words(count: int, first: int = 0) -> str:
    """A prompt of so many tokens, beside the one that begins every prompt."""
    known = len(_vocabulary()) - len(SPECIAL) - len(LETTERS)
    return " ".join(f"w{(first + number * 7) % known}" for number in range(count))


def _write_model(folder: Path, num_experts: int) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    sizes = {
        **SIZES, "max_position_embeddings": 4096, "tie_word_embeddings": True, "bos_token_id": 1,
        "eos_token_id": 2, "dtype": "float32",
    }  # fmt: skip
    if num_experts:
        config = MixtralConfig(**sizes, num_local_experts=num_experts, num_experts_per_tok=2)
        MixtralForCausalLM(config).save_pretrained(folder)
    else:
        LlamaForCausalLM(LlamaConfig(**sizes)).save_pretrained(folder)


def _write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel(_vocabulary(), unk_token=SPECIAL[0]))
    split = pre_tokenizers.Split(pattern=" ", behavior="removed")
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": SPECIAL[0], "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 4096,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")


def _vocabulary() -> dict[str, int]:
    named = [*SPECIAL, *LETTERS]
    named += [f"w{number}" for number in range(SIZES["vocab_size"] - len(named))]
    return {word: number for number, word in enumerate(named)}
