from __future__ import annotations

import re

import pytest

from stepscope.analyzers.replay.recorded_settings import ENGINES, config_of, settings_of
from stepscope.analyzers.replay.setting_values import VALUES, refused
from stepscope.ingest.errors import ConfigError, NotReplayed
from stepscope.ingest.manifest import Manifest
from tests.looped import looped

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


@looped(
    ("text", "takes"),
    [
        ("max_num_seqs=0", "a whole number from 1"), ("max_num_seqs=-3", "a whole number from 1"),
        ("max_num_seqs=1.5", "a whole number"), ("max_num_seqs=true", "a whole number"),
        ("max_num_seqs=", "a whole number"), ("max_num_seqs=[4]", "a whole number"),
        ("num_blocks=99999999999999", "to 4,194,304"), ("watermark=1.5", "a number from 0 to 1"),
        ("enable_prefix_caching=3", "true or false"), ("policy=lifo", "fcfs or priority"),
        ("scheduler_cls=3", "a name"), ("watermark=NaN", "a number from 0 to 1"),
    ],
)  # fmt: skip
def test_a_value_that_a_setting_does_not_take_is_told_with_those_it_takes(
    text: str, takes: str
) -> None:
    with pytest.raises(ConfigError, match=f"--set {re.escape(text)}: .*; give it .*{takes}"):
        settings_of([text], "vllm")


@looped("engine", ENGINES)
def test_of_every_setting_it_is_known_what_it_takes_and_none_is_a_recorded_nothing(
    engine: str,
) -> None:
    assert set(ENGINES[engine].known) <= set(VALUES)
    assert all(refused(name, None) is None for name in ENGINES[engine].known)
    assert all(refused(name, [1]) is not None for name in ENGINES[engine].known)


def test_another_block_size_is_that_of_the_groups_and_of_hashes_that_do_not_fit() -> None:
    groups = [{"spec": "FullAttentionSpec", "block_size": 16}]
    told = {**SECTIONS, "kv_cache_groups": groups, "scheduler": {"hash_block_size": 16}}
    manifest = Manifest("vllm", config=told)

    larger, smaller = (
        config_of("vllm", manifest, {"block_size": size}, "a.trace") for size in (32, 8)
    )

    assert [each["kv_cache_groups"][0]["block_size"] for each in (larger, smaller)] == [32, 8]
    assert [each["hash_block_size"] for each in (larger, smaller)] == [16, 8]
    assert [each["content_block_size"] for each in (larger, smaller)] == [16, 16]


def test_another_block_size_of_several_groups_is_refused() -> None:
    told = {**SECTIONS, "kv_cache_groups": [{"block_size": 16}, {"block_size": 32}]}

    with pytest.raises(ConfigError, match="leave block_size as it was recorded"):
        config_of("vllm", Manifest("vllm", config=told), {"block_size": 8}, "a.trace")


def test_a_setting_without_a_value_is_told() -> None:
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        settings_of(["policy"], "vllm")


@looped(
    ("engine", "more", "told"),
    [
        ("vllm", {"kv_transfer_config": {"kv_connector": "Nixl"}}, "another machine"),
        ("vllm", {"kv_cache_groups": [{"spec": "MambaSpec"}]}, "a KV cache of MambaSpec"),
        ("sglang", {"drafts": {"speculative_algorithm": "EAGLE"}}, "decoded with drafts"),
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
