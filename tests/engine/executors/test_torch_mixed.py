"""`mixed-batches` on a real decoder: every variant says what solo runs say, and faults do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from stepscope.engine.executors import ExecutionFailed
from stepscope.engine.executors.decoding.profiling import KINETO_FILE
from stepscope.engine.faults import fault
from stepscope.engine.runs.scenario import Metric, Options
from stepscope.engine.scenarios.mixed_batches import MixedBatches
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.rows import Rows
from tests.tiers import sampled, slow

SCENARIO = MixedBatches()
COMPUTED = [name for name in SCENARIO.variants if name != "data-parallel"]
# The first step that cannot be run, under each fault; one before it may have run on wrong numbers.
CRASHES = {
    "lengths-not-rebased": 4,
    "input-ids-not-sliced": 4,
    "slot-mapping-missing": 4,
    "lengths-missing": 4,
    "decode-overwrites-shared-view": 6,
    "plans-not-cloned": 7,
}
FIRST = next(iter(CRASHES.items()))
WRONG = (
    "decode-region-stale",
    "lengths-stale",
    "tbo-with-mixed",
    "pinned-buffer-overwritten",
    "logits-per-token",
    "logits-per-batch",
    "empty-merge-nan",
    "history-seen-by-chunk-end",
    "placeholder-read-as-token",
    "token-of-partial-prefill",
)


PARTS = [
    {"window": "8", "experts": "4", "prefix_cache": "true"},
    {"window": "8"},
    {"window": "8", "ratios": "0+4+128", "layers": "3", "prompt_len": "160"},
    {"experts": "4"},
    {"prefix_cache": "true"},
    {"layers": "1"},
    {"tbo": "true"},
    {"tbo": "true", "window": "8"},
    {"backend": "mla"},
    {"budget": "3"},
]


def on_torch(settings: dict[str, str]) -> Options:
    return replace(asked(settings), executor="torch")


def metrics(variant: str, **settings: str) -> dict[str, Metric]:
    return SCENARIO.record(variant, None, on_torch(settings)).metrics


@slow
@pytest.mark.parametrize("variant", sampled(COMPUTED, ["before", "after"]))
def test_every_output_equals_its_solo_run(variant: str) -> None:
    found = metrics(variant)

    assert found["equal_to_solo"] == "12/12"
    assert (found["mixed_steps"] == 0) == (variant in {"flag-off", "flag-off-deferred", "mtp"})


@slow
def test_small_sizes_keep_the_reports_shape() -> None:
    before, after = metrics("before"), metrics("after")

    assert [before[f"{kind}_steps"] for kind in ("prefill", "mixed", "decode")] == [22, 4, 12]
    assert [after[f"{kind}_steps"] for kind in ("prefill", "mixed", "decode")] == [3, 24, 7]


@slow
@pytest.mark.parametrize("settings", sampled(PARTS, PARTS[:1]), ids=str)
def test_every_part_of_the_decoder_serves(settings: dict[str, str]) -> None:
    assert metrics("after", **settings)["equal_to_solo"] == "12/12"


@slow
@pytest.mark.parametrize("name", sampled(WRONG, ["logits-per-token", "empty-merge-nan"]))
def test_a_fault_that_touches_what_is_computed_makes_outputs_differ(name: str) -> None:
    options = on_torch({**needed(name), "fault": name})
    found = SCENARIO.record(fault(name).variant, None, options).metrics

    assert found["equal_to_solo"] != "12/12"


@slow
@pytest.mark.parametrize(
    "name", sampled(["empty-merge-nan", "history-seen-by-chunk-end"], ["empty-merge-nan"])
)
def test_a_fault_of_the_attention_runs_on_torch_without_being_asked(name: str) -> None:
    assert SCENARIO.record("after", None, asked({"fault": name})).metrics["equal_to_solo"]


def needed(name: str) -> dict[str, str]:
    """What a fault cannot do without, at the sizes of the decoder."""
    return {key: value for key, value in fault(name).settings.items() if key in {"tbo", "window"}}


@slow
@pytest.mark.parametrize(
    ("name", "step"),
    [pytest.param(*crash, marks=[slow] * (crash != FIRST)) for crash in CRASHES.items()],
)
def test_metadata_that_do_not_fit_stop_a_mixed_step_and_the_trace_holds_them(
    name: str, step: int, tmp_path: Path
) -> None:
    with pytest.raises(ExecutionFailed, match=rf"^step {step}, mixed: the model failed: .*$"):
        SCENARIO.record("after", tmp_path / "run.trace", on_torch({**needed(name), "fault": name}))

    rows = Rows.read(Trace.open(tmp_path / "run.trace"))
    steps = rows.of("steps")
    assert [each["kind"] for each in steps] == ["prefill"] * 3 + ["mixed"] * (step - 3)
    assert [each["step"] for each in steps if each["dur_ns"] is None] == [step]
    assert len(rows.of("segments", step=step)) == 2


@slow
def test_an_overwritten_pinned_buffer_is_hidden_for_short_chunks_and_fires_for_long_ones() -> None:
    name = "pinned-buffer-overwritten"

    assert metrics("after", fault=name, budget="16")["equal_to_solo"] == "12/12"
    assert metrics("after", fault=name, budget="32")["equal_to_solo"] != "12/12"


@slow
def test_not_a_number_is_told_in_the_outputs(tmp_path: Path) -> None:
    for number, faults in enumerate(({}, {"fault": "empty-merge-nan"})):
        SCENARIO.record("after", tmp_path / str(number), on_torch(faults))

    sound, faulty = (Rows.read(Trace.open(tmp_path / str(number))) for number in (0, 1))
    assert sound.of("outputs", digest="nan") == []
    assert faulty.of("outputs", digest="nan")


def test_ranks_that_keep_step_run_on_costs_alone() -> None:
    with pytest.raises(ConfigError, match="data-parallel runs on costs alone"):
        metrics("data-parallel")


@slow
def test_the_profile_of_a_mixed_step_has_a_tag_for_each_of_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "mixed.trace"
    SCENARIO.record("after", path, replace(on_torch({"requests": "6"}), profile=True))

    profile = Trace.open(path / KINETO_FILE)

    named = profile.spans.filter(pl.col("name").str.contains(r"^(mixed|prefill|decode)\["))
    spans = named.select("span", "name", "ts_ns", "dur_ns").collect().to_dicts()
    mixed = [span for span in spans if span["name"].startswith("mixed")]
    steps = profile.steps.collect()
    recorded = Trace.open(path).steps.filter(pl.col("kind") == "mixed").collect()
    assert len(mixed) == len(recorded) > 0
    for span, step in zip(mixed, recorded.iter_rows(named=True), strict=True):
        ends = span["ts_ns"] + span["dur_ns"]
        inner = [
            other["name"]
            for other in spans
            if other is not span and span["ts_ns"] <= other["ts_ns"] < ends
        ]
        prefill, decode = inner
        assert f"tok={step['num_prefill_tokens']}]" in prefill
        assert f"tok={step['num_decode_tokens']} " in decode
    assert steps["kind"].to_list().count("mixed") == len(recorded)
