from __future__ import annotations

import pytest

from stepscope.analyzers.replay.recorded_settings import config_of, settings_of
from stepscope.ingest.errors import ConfigError, NotReplayed
from stepscope.ingest.manifest import Manifest

SECTIONS = {
    "scheduler_config": {"max_num_seqs": 8, "max_num_batched_tokens": 64, "policy": "priority"},
    "cache_config": {"block_size": 16, "num_gpu_blocks": 25, "enable_prefix_caching": True},
    "model_config": {"max_model_len": 512, "dtype": "float32"},
    "speculative_config": {"method": "ngram", "num_speculative_tokens": 3},
}


SGLANG = {
    "max_running_requests": 16, "max_total_num_tokens": 160, "is_mixed_chunk": True,
    "context_len": 2048, "enable_overlap": False,
    "schedule": {"max_total_tokens": None, "schedule_conservativeness": 0.5},
    "environment": {"SGLANG_TEST_RETRACT": "true"},
}  # fmt: skip


def test_sections_of_vllm_become_one_table_without_the_null_block() -> None:
    config = config_of("vllm", Manifest("vllm", config=SECTIONS), {}, "a.trace")

    assert config["num_blocks"] == 24
    assert (config["policy"], config["num_spec_tokens"]) == ("priority", 3)
    assert "dtype" not in config


def test_a_setting_takes_the_place_of_what_was_recorded() -> None:
    config = config_of(
        "vllm", Manifest("vllm", config=SECTIONS), settings_of(["policy=fcfs"], "vllm"), "a.trace"
    )

    assert config["policy"] == "fcfs"


def test_values_are_read_as_json_writes_them_and_else_as_text() -> None:
    assert settings_of(["max-num-seqs=4", "async_scheduling=True", "policy=fcfs"], "vllm") == {
        "max_num_seqs": 4, "async_scheduling": True, "policy": "fcfs",
    }  # fmt: skip


def test_a_setting_that_does_not_exist_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean max_num_seqs"):
        settings_of(["max_num_seq=4"], "vllm")


def test_a_setting_without_a_value_is_told() -> None:
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        settings_of(["policy"], "vllm")


@pytest.mark.parametrize(
    ("engine", "more", "told"),
    [
        ("vllm", {"kv_transfer_config": {"kv_connector": "Nixl"}}, "another machine"),
        ("vllm", {"kv_cache_groups": [{"spec": "MambaSpec"}]}, "a KV cache of MambaSpec"),
        ("sglang", {"enable_overlap": True}, "its steps overlapped"),
    ],
)
def test_what_no_replay_repeats_is_refused_with_a_code_of_its_own(
    engine: str, more: dict[str, object], told: str
) -> None:
    with pytest.raises(NotReplayed, match=told) as refused:
        config_of(engine, Manifest(engine, config={**SECTIONS, **more}), {}, "a.trace")

    assert refused.value.exit_code == 5


def test_kv_cache_groups_and_how_many_adapters_fit_are_replayed() -> None:
    groups = [{"spec": "FullAttentionSpec"}, {"spec": "SlidingWindowSpec", "sliding_window": 64}]
    more = {"kv_cache_groups": groups, "lora_config": {"max_loras": 2}}

    config = config_of("vllm", Manifest("vllm", config={**SECTIONS, **more}), {}, "a.trace")

    assert config["kv_cache_groups"] == groups
    assert config["max_loras"] == 2


def test_the_effective_settings_of_sglang_take_the_place_of_those_it_was_given() -> None:
    config = config_of("sglang", Manifest("sglang", config=SGLANG), {}, "a.trace")

    assert config["max_total_tokens"] == 160
    assert config["enable_mixed_chunk"] is True
    assert config["schedule_conservativeness"] == 0.5
    assert config["environment"] == {"SGLANG_TEST_RETRACT": "true"}


def test_a_trace_of_one_engine_is_not_replayed_on_another() -> None:
    with pytest.raises(ConfigError, match="written by sglang, not by vllm"):
        config_of("vllm", Manifest("sglang", config=SGLANG), {}, "a.trace")
