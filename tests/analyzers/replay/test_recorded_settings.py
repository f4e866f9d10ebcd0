from __future__ import annotations

import pytest

from stepscope.analyzers.replay.recorded_settings import config_of, settings_of
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import Manifest

SECTIONS = {
    "scheduler_config": {"max_num_seqs": 8, "max_num_batched_tokens": 64, "policy": "priority"},
    "cache_config": {"block_size": 16, "num_gpu_blocks": 25, "enable_prefix_caching": True},
    "model_config": {"max_model_len": 512, "dtype": "float32"},
    "speculative_config": {"method": "ngram", "num_speculative_tokens": 3},
}


def test_sections_of_vllm_become_one_table_without_the_null_block() -> None:
    config = config_of(Manifest("vllm", config=SECTIONS), {}, "a.trace")

    assert config["num_blocks"] == 24
    assert (config["policy"], config["num_spec_tokens"]) == ("priority", 3)
    assert "dtype" not in config


def test_a_setting_takes_the_place_of_what_was_recorded() -> None:
    config = config_of(Manifest("vllm", config=SECTIONS), settings_of(["policy=fcfs"]), "a.trace")

    assert config["policy"] == "fcfs"


def test_values_are_read_as_json_writes_them_and_else_as_text() -> None:
    assert settings_of(["max-num-seqs=4", "async_scheduling=True", "policy=fcfs"]) == {
        "max_num_seqs": 4, "async_scheduling": True, "policy": "fcfs",
    }  # fmt: skip


def test_a_setting_that_does_not_exist_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean max_num_seqs"):
        settings_of(["max_num_seq=4"])


def test_a_setting_without_a_value_is_told() -> None:
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        settings_of(["policy"])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"kv_transfer_config": {"kv_connector": "Nixl"}}, "another machine"),
        ({"lora_config": {"max_loras": 2}}, "LoRA"),
        ({"kv_cache_groups": [{}, {}]}, "2 KV cache groups"),
    ],
)
def test_what_is_not_replayed_is_refused(more: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        config_of(Manifest("vllm", config={**SECTIONS, **more}), {}, "a.trace")
