from __future__ import annotations

import polars as pl

from stepscope import Trace
from stepscope.analyzers.replay.contents import contents_of
from stepscope.ingest.manifest import Manifest


def told(*rows: tuple[str, int, str] | tuple[str, int, str, str]) -> dict[str, tuple[int, ...]]:
    frame = pl.DataFrame({
        "ts_ns": range(len(rows)),
        "resource": ["kv-block"] * len(rows),
        "op": [row[0] for row in rows],
        "id": [row[1] for row in rows],
        "owner": [row[2] for row in rows],
        "block_hash": [row[3] if len(row) == 4 else None for row in rows],
    }, schema_overrides={"block_hash": pl.String})  # fmt: skip
    return contents_of(Trace.from_tables({"allocations": frame}, Manifest("vllm")), 0)


def test_who_shares_a_block_has_what_its_owner_has_there_and_before() -> None:
    found = told(
        ("claim", 1, "a"),
        ("claim", 2, "a"),
        ("share", 1, "b"),
        ("share", 2, "b"),
        ("claim", 3, "b"),
    )

    assert found["a"] == found["b"][:2]
    assert found["b"][2] not in found["a"]


def test_a_block_that_was_claimed_anew_holds_something_else() -> None:
    found = told(("claim", 1, "a"), ("release", 1, "a"), ("claim", 1, "b"), ("share", 1, "c"))

    assert found["b"] == found["c"] != found["a"]


def test_what_a_request_computes_again_is_what_it_had() -> None:
    found = told(("claim", 1, "a"), ("release", 1, "a"), ("claim", 2, "a"), ("share", 2, "b"))

    assert len(found["a"]) == 1
    assert found["a"] == found["b"]


def test_equal_hashes_are_equal_contents_though_nobody_shared() -> None:
    found = told(
        ("claim", 1, "a"), ("cache", 1, "a", "x"), ("claim", 2, "b"), ("cache", 2, "b", "x"),
        ("claim", 3, "c"), ("cache", 3, "c", "y"),
    )  # fmt: skip

    assert found["a"] == found["b"] != found["c"]
