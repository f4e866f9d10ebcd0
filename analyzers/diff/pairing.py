"""Which request of one run is which of another, where a server makes up new ids for each run.

Ids that both runs have are taken at their word. Of those that are left, one is paired with another
by the id that its client gave, by what of its own id is not made up (`0-9ab12cd3` is `0-*` in each
run of vLLM), else, in order of arrival, with the next one that asks for as much. That is inferred,
and is told by how many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from stepscope.analyzers.findings.fingerprint import stem
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

NAMES = ("request", "by_request", "owner")  # columns that name a request, in whatever table
ABOUT_REQUESTS = pl.col("subject_kind") == "request"
CLIENT, STEM, LENGTHS, PROMPT, ORDER = (
    "the ids that clients gave",
    "what of their ids is not made up",
    "prompt and output length, in order of arrival",
    "prompt length, in order of arrival",
    "order of arrival",
)
_SUFFIX = re.compile(r"-[0-9a-f]{8}$")
_BY_ID = ((CLIENT, ("external_id",)), (STEM, ("stem",)))
_BY_LENGTH = ((LENGTHS, ("prompt_len", "max_tokens")), (PROMPT, ("prompt_len",)), (ORDER, ()))


@dataclass(frozen=True, slots=True)
class Pairing:
    """`b` with its requests called as in A, where they were called otherwise.

    `names` are A's ids by B's, `inferred` the number of pairs by what they were inferred from.
    """

    b: Trace
    names: Mapping[str, str] = field(default_factory=dict)
    inferred: Mapping[str, int] = field(default_factory=dict)


def pair(a: Trace, b: Trace) -> Pairing:
    """Find which of B's requests is which of A's; where all ids are shared, nothing is inferred.

    Where less than half of them can be paired, the runs served other requests: nobody is.
    """
    ours, theirs = _requests(a), _requests(b)
    shared = ours.join(theirs, on=["rank", "request"], how="semi")
    left = [each.join(shared, on=["rank", "request"], how="anti") for each in (ours, theirs)]
    if not shared.is_empty():
        # The ids of these runs do tell who is who, but for those that were made up.
        left = [each.filter(pl.col("stem") != pl.col("request")) for each in left]
    fewest = min(map(len, left))
    names: dict[str, str] = {}
    inferred: dict[str, int] = {}
    for how, keys in (*_BY_ID, *_BY_LENGTH):
        found = _nth(left[0], left[1], keys, alone=(how, keys) in _BY_ID)
        names |= dict(found.select("request_b", "request").iter_rows())
        inferred |= {how: len(found)} if len(found) else {}
        left[0] = left[0].join(found, on=["rank", "request"], how="anti")
        left[1] = left[1].join(found, left_on=["rank", "request"], right_on=["rank", "request_b"],
                               how="anti")  # fmt: skip
    if 2 * sum(inferred.values()) < fewest or not names:
        return Pairing(b)
    return Pairing(_renamed(b, names), names, inferred)


def _requests(trace: Trace) -> pl.DataFrame:
    """Who is named, in order of arrival: rank, request, stem, external_id, and what it asks for."""
    asked = ("prompt_len", "max_tokens", "external_id")
    arrived = trace.lifecycle.select("rank", "request", "ts_ns", *asked)
    scheduled = trace.batch_rows.select("rank", "request", "ts_ns")
    named = (
        pl.concat([arrived, scheduled], how="diagonal_relaxed")
        .filter(pl.col("request").is_not_null())
        .group_by("rank", "request", maintain_order=True)
        .agg(pl.col("ts_ns").min(), pl.col(asked).max())
        .sort("rank", "ts_ns", maintain_order=True)
        .collect()
    )
    return named.with_columns(pl.Series("stem", _stems(named["request"].to_list()), pl.String))


def _stems(ids: list[str]) -> list[str]:
    stems = [stem(each) for each in ids]
    if stems != ids and all(map(_SUFFIX.search, ids)):
        # One in 43 of eight hexadecimal digits has no letter.
        return [_SUFFIX.sub("-*", each) for each in ids]
    return stems


def _nth(
    ours: pl.DataFrame, theirs: pl.DataFrame, keys: tuple[str, ...], *, alone: bool
) -> pl.DataFrame:
    """Pair the first of each run with equal keys, the second, and so on; rank, request, request_b.

    With `alone` only those are paired of which a run has no other. A key that is not known of a
    request pairs it with nobody; where it is known of none, order alone is asked for after it.
    """
    of = ["rank", *keys]
    numbered = [
        each.drop_nulls(of).with_columns(nth=pl.int_range(pl.len()).over(of), num=pl.len().over(of))
        for each in (ours, theirs)
    ]
    if not keys:
        numbered = [each.filter(pl.col("prompt_len").is_null()) for each in numbered]
    if alone:
        numbered = [each.filter(pl.col("num") == 1) for each in numbered]
    both = numbered[0].join(numbered[1], on=[*of, "nth"], suffix="_b")
    return both.select("rank", "request", "request_b")


def _renamed(trace: Trace, names: Mapping[str, str]) -> Trace:
    frames = {}
    for table in TABLES:
        columns = [pl.col(name).replace(names).alias(name) for name in NAMES if name in table.names]
        if table.name == "decisions":
            columns += [
                pl.when(ABOUT_REQUESTS)
                .then(pl.col(name).replace(names))
                .otherwise(name)
                .alias(name)
                for name in ("subject", "holder", "instead")
            ]
        if columns:
            frames[table.name] = trace.table(table.name).with_columns(columns)
    return trace.replacing(frames, _asked_as(trace.manifest, names))


def _asked_as(manifest: Manifest, names: Mapping[str, str]) -> Manifest:
    """The manifest with the ids of its workload, where it lists any, replaced too."""
    workload = manifest.workload or {}
    listed = workload.get("requests")
    if not isinstance(listed, list):
        return manifest
    return replace(
        manifest, workload={**workload, "requests": [_as(each, names) for each in listed]}
    )


def _as(request: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(request, dict) or "id" not in request:
        return request
    return {**request, "id": names.get(str(request["id"]), request["id"])}
