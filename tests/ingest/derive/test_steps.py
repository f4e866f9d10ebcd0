"""Steps out of tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.derive.launches import tag_spans
from stepscope.ingest.derive.step_tags import is_unread, looks_like_tag, parse_tag
from stepscope.ingest.derive.steps import UNREAD, infer_steps
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.ingest.kineto_files import open_events, slice_

# kind, prefill rows and tokens, decode rows and tokens
TAGS = [
    ("execute_context_3(64)_generation_0(0)", "prefill", 3, 64, 0, 0),
    ("execute_context_2(63)_generation_1(1)", "mixed", 2, 63, 1, 1),
    ("execute_context_0(0)_generation_6(64)", "decode", 0, 0, 6, 64),
    ("execute_context_0(0)_generation_0(0)", "idle", 0, 0, 0, 0),
    (
        "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
        "_generation_37(sq37sk34489sqsq37sqsk34489)",
        "mixed", 9, 8155, 37, 37,
    ),
    ("execute_context_1(888_788544)_generation_0(0)", "prefill", 1, 888, 0, 0),
    ("execute_context_2(10_52)_generation_37(37_37)", "mixed", 2, 10, 37, 37),
    ("execute_context_0(0_0)_generation_3(9_27)", "decode", 0, 0, 3, 9),
    ("execute_context_2_generation_64", "mixed", 2, None, 64, None),
    ("execute_context_0_generation_64", "decode", 0, 0, 64, None),
    ("execute_new_2_cached_0", "prefill", 2, None, 0, 0),
    ("execute_new_0_cached_0", "idle", 0, 0, 0, 0),
    ("execute_new_1_cached_4", None, None, None, None, None),
    ("execute_new_0_cached_4", None, None, None, None, None),
    (
        "execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)",
        "decode", 0, 0, 32, 128,
    ),
    ("step[EXTEND bs=15 toks=15360]", "prefill", 15, 15360, 0, 0),
    (
        "step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=120007533 c_sk=16221]",
        "prefill", 2, 14721, 0, 0,
    ),
    ("step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", "prefill", 2, 12, 0, 0),
    ("step[DECODE bs=32]", "decode", 0, 0, 32, 32),
    ("step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]", "decode", 0, 0, 2, 2),
    ("step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]", "decode", 0, 0, 64, 128),
    (
        "step[MIXED bs=1 c=1 g=0 c_sq=3 c_sk=3 c_sqsq=9 c_sqsk=9 g_sq=0 g_sk=0 g_sqsq=0 g_sqsk=0]",
        "prefill", 1, 3, 0, 0,
    ),
    ("step[TARGET_VERIFY bs=4]", "decode", 0, 0, 4, None),
    ("step[MIXED bs=2]", "mixed", None, None, None, None),
    (
        "step[MIXED bs=3 c=1 g=2 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40"
        " g_sq=2 g_sk=12 g_sqsq=1 g_sqsk=12]",
        "mixed", 1, 5, 2, 2,
    ),
    ("step[IDLE bs=0]", "idle", 0, 0, 0, 0),
    ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", "prefill", 2, 14721, 0, 0),
    ("prefill[bs=8 tok=8000 ctx=[0, 1, 2]...+5 tbo=1]", "prefill", 8, 8000, 0, 0),
    ("decode[bs=117/128 tok=117 d=117]", "decode", 0, 0, 117, 117),
    ("decode[bs=16]", "decode", 0, 0, 16, None),
    ("decode[bs=128 tok=512 d=128 spec=3]", "decode", 0, 0, 128, 512),
    ("decode[bs=128 tok=900 p=2 d=126]", "mixed", 2, None, 126, None),
    ("eager_decode[bs=300 tok=300 ctx=9]", "decode", 0, 0, 300, 300),
    ("dummy_decode[bs=1/8 tok=1 d=1]", "dummy", 0, 0, 1, 1),
    ("dummy_prefill[bs=1 tok=8192 ctx=8192]", "dummy", 1, 8192, 0, 0),
    ("mixed[n_p=1934 n_d=114]", "mixed", None, 1934, None, 114),
    ("mixed[n_p=1934 n_d=114] tbo=0", "mixed", None, 1934, None, 114),
    ("mixed[n_p=1934 n_d=114 tbo=1]", "mixed", None, 1934, None, 114),
    ("ProfilerStep#7", None, None, None, None, None),
]  # fmt: skip


def test_a_tag_tells_kind_rows_and_tokens() -> None:
    read = []
    for text, *_ in TAGS:
        tag = parse_tag(text)
        assert tag is not None, text
        read.append((
            text, tag.kind, tag.num_prefill_reqs, tag.num_prefill_tokens,
            tag.num_decode_reqs, tag.num_decode_tokens,
        ))  # fmt: skip

    assert read == TAGS


def test_a_tag_tells_whether_two_batches_overlapped() -> None:
    paths = {
        "mixed[n_p=1934 n_d=114] tbo=1": "mixed+tbo",
        "mixed[n_p=1934 n_d=114 tbo=1]": "mixed+tbo",
        "mixed[n_p=1934 n_d=114] tbo=0": None,
        "prefill[bs=8 tok=8000 ctx=[0, 1, 2]...+5 tbo=1]": "tbo",
        "decode[bs=4 tok=4 d=4] tbo=1": "graph+tbo",
        "eager_decode[bs=4 tok=4 ctx=9 tbo=0]": "eager",
    }
    tags = {text: parse_tag(text) for text in paths}

    assert {text: tag and tag.executed_path for text, tag in tags.items()} == paths
    assert all(tags.values())


def test_other_annotations_are_no_steps() -> None:
    texts = (
        "draft[1/3 bs=4]", "propose_eagle[0/3 tok=8 bs=4]", "mixed_seg[prefill] n=12",
        "step[DRAFT_EXTEND bs=4]", "execute_model", "execute_context_1(2)", "decode[bs=x]",
        "prefill[tok=4]", "execute_context_99999999999(1)_generation_0(0)", "decode[bs=1.5]",
        "my decode[bs=4]", "ProfilerStep#", "", "execute_context_1(888_788545)_generation_0(0)",
        "execute_context_2(10_49)_generation_0(0)", "execute_context_2(10_101)_generation_0(0)",
        "decode[bs=1 p=5]", "decode[bs=1 p=99999999999 d=1]", "decode[bs=1 d=99999999999]",
        "step[MIXED bs=3 c=99999999999 g=2]", "execute_context_0(0_1)_generation_0(0)",
        "execute_diffusion_1_1024x1024",
    )  # fmt: skip

    assert [text for text in texts if parse_tag(text) is not None] == []


@given(st.text() | st.from_regex(r"(step|decode|prefill|mixed)\[[a-z0-9_=/. ]*\]"))
def test_any_text_is_a_tag_or_none(text: str) -> None:
    tag = parse_tag(text)

    assert tag is None or tag.grammar


def spans(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Spans of (name, ts, dur) on one track, or (name, ts, dur, category, track[, correlation])."""
    filled = [(*row, *("user_annotation", "main", None)[len(row) - 3 :]) for row in rows]
    frame = pl.DataFrame(
        filled,
        schema={
            "name": pl.String, "ts_ns": pl.Int64, "dur_ns": pl.Int64,
            "category": pl.String, "track": pl.String, "correlation": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    form = pl.when(pl.col("dur_ns").is_null()).then(pl.lit("unfinished")).otherwise(pl.lit("slice"))
    return with_lanes(frame.with_columns(form.alias("form"), base="track"))


def steps_of(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return infer_steps(spans(*rows)).to_dicts()


def test_steps_are_numbered_in_order_of_time() -> None:
    steps = steps_of(("decode[bs=2]", 50, 5), ("prefill[bs=1 tok=8]", 10, 20))

    assert [(step["step"], step["ts_ns"], step["dur_ns"], step["kind"]) for step in steps] == [
        (1, 10, 20, "prefill"),
        (2, 50, 5, "decode"),
    ]


def test_tags_within_a_tag_are_the_same_step_and_fill_its_gaps() -> None:
    (step,) = steps_of(
        ("step[MIXED bs=4]", 0, 100), ("execute_context_1(16)_generation_3(3)", 10, 50)
    )

    assert (step["tag"], step["dur_ns"]) == ("step[MIXED bs=4]", 100)
    assert (step["num_prefill_reqs"], step["num_decode_tokens"]) == (1, 3)


def test_mixed_tags_of_every_layer_say_how_a_prefill_divides() -> None:
    layers = [("mixed[n_p=1934 n_d=114]", 10 * layer, 5) for layer in range(1, 9)]

    (step,) = steps_of(
        ("prefill[bs=116 tok=2048 ctx=[9, 9]...+114]", 0, 200),
        *layers,
        ("decode[bs=114]", 11, 2),
    )

    assert step["kind"] == "mixed"
    assert (step["num_prefill_reqs"], step["num_decode_reqs"]) == (2, 114)
    assert (step["num_prefill_tokens"], step["num_decode_tokens"]) == (1934, 114)


def test_the_devices_copy_of_a_tag_is_not_a_second_step() -> None:
    steps = steps_of(
        ("decode[bs=2]", 0, 10),
        ("decode[bs=2]", 12, 10, "gpu_user_annotation", "stream 7"),
        ("decode[bs=2]", 30, 10),
    )

    assert [step["ts_ns"] for step in steps] == [0, 30]


def test_the_devices_tags_count_where_the_host_has_none() -> None:
    steps = steps_of(
        ("decode[bs=2]", 0, 10, "gpu_user_annotation", "stream 7"),
        ("decode[bs=2]", 30, 10, "gpu_user_annotation", "stream 7"),
        ("decode[bs=2]", 8, 10, "gpu_user_annotation", "stream 9"),
    )

    assert [step["ts_ns"] for step in steps] == [0, 30]


def test_profiler_steps_count_only_where_nothing_else_does() -> None:
    alone = steps_of(("ProfilerStep#4", 0, 10), ("ProfilerStep#5", 10, 10))
    beside = steps_of(("ProfilerStep#4", 0, 10), ("decode[bs=2]", 1, 5))

    assert [step["step"] for step in alone] == [4, 5]
    assert [step["tag"] for step in beside] == ["decode[bs=2]"]


def test_numbers_that_repeat_give_way_to_a_count() -> None:
    steps = steps_of(("ProfilerStep#4", 0, 10), ("ProfilerStep#4", 10, 10))

    assert [step["step"] for step in steps] == [1, 2]


def test_a_step_that_never_ended_has_no_duration() -> None:
    (step,) = steps_of(("decode[bs=2]", 0, None))

    assert step["dur_ns"] is None


def test_functions_and_kernels_with_such_names_are_no_tags() -> None:
    assert not steps_of(
        ("decode[bs=2]", 0, 10, "python_function", "main"),
        ("decode[bs=2]", 0, 10, "kernel", "stream 7"),
    )


def test_spans_belong_to_the_step_around_them_or_around_their_launch() -> None:
    found = spans(
        ("decode[bs=2]", 0, 10),
        ("launch", 2, 3, "cuda_runtime", "main", 9),
        ("after", 10, 3, "cpu_op", "main"),
        ("elsewhere", 2, 3, "cpu_op", "other"),
        ("kernel", 40, 3, "kernel", "stream 7", 9),
    )

    tagged = tag_spans(found, infer_steps(found))

    assert dict(tagged.select("name", "step").rows()) == {
        "decode[bs=2]": 1, "launch": 1, "after": None, "elsewhere": None, "kernel": 1,
    }  # fmt: skip


def test_whatever_is_read_as_a_tag_looks_like_one() -> None:
    texts = pl.Series([tag[0] for tag in TAGS])

    assert texts.filter(~looks_like_tag(texts)).to_list() == []
    assert [text for text in texts if is_unread(text)] == []


UNKNOWN = ["execute_diffusion_1_1024x1024", "step[PREBUILT bs=3]", "execute_context_1(2)"]


@pytest.mark.parametrize("is_perfetto", [False, True])
def test_tags_that_are_not_understood_are_counted_and_one_of_them_shown(
    tmp_path: Path, is_perfetto: bool
) -> None:
    names = [*UNKNOWN, UNKNOWN[0], "decode[bs=2]", "step[DRAFT_EXTEND bs=2]", "execute_model"]

    trace = open_events(tmp_path, *(slice_(name, 10 * at, 5) for at, name in enumerate(names)))
    if is_perfetto:
        write_perfetto(trace, tmp_path / "a.pftrace")
        trace = Trace.open(tmp_path / "a.pftrace")

    report = trace.manifest.report
    assert report is not None
    assert report.skipped == {UNREAD: 4}
    assert report.notes[-1] == (
        "no steps of 4 annotations that look like tags of steps and are not understood: "
        "execute_diffusion_1_1024x1024 and 2 other texts"
    )
    assert trace.num_rows("steps") == 1
