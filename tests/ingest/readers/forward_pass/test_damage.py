"""Forward pass metrics that nobody would write raise nothing but our errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import TraceError
from stepscope.ingest.readers.forward_pass.reader import ForwardPassReader
from stepscope.ingest.trace import Trace
from tests.ingest.readers.forward_pass.test_reader import CAPTURE, JSON_LINES, record, sent


def read_or_refuse(folder: Path, content: bytes) -> None:
    file = folder / "hostile"
    file.write_bytes(content)
    ForwardPassReader().sniff(content, file)
    try:
        trace = Trace.from_tables(*ForwardPassReader().read(file, None))
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017 - any of ours will do
        return
    repr(trace)
    trace.manifest.to_json().encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@given(
    st.sampled_from([JSON_LINES.encode(), CAPTURE, sent(record(1), 1, 2)]),
    st.floats(0, 1), st.binary(max_size=6), st.integers(0, 6),
)  # fmt: skip
def test_mutated_records_raise_nothing_but_our_errors(
    folder: Path, content: bytes, place: float, junk: bytes, num_removed: int
) -> None:
    at = int(place * len(content))

    read_or_refuse(folder, content[:at] + junk + content[at + num_removed :])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats()
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from([*record(0), "more"]), VALUES))
@example({"worker_id": "\ud800\x1b[2J" * 90, "dp_rank": 1 << 62, "counter_id": 1 << 63})
@example({"scheduled_requests": {"a" * 9_000: 1e308, "sum_decode_kv_tokens": float("inf")}})
def test_records_with_fields_that_nobody_would_write_raise_nothing_but_our_errors(
    folder: Path, fields: dict[str, Any]
) -> None:
    said = record(0) | fields

    read_or_refuse(folder, json.dumps(said).encode("utf-8", "replace"))
