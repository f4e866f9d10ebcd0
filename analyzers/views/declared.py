"""What the manifest declares of the engine, where it does: its sizes, and what it is set to.

Other engines spell their configuration as they like. What is not found is None, never a guess.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.ingest.schema import PHASES
from stepscope.ingest.trace import Trace

MOST_OF_A_PAGE = 2**20


def is_one_run(trace: Trace) -> bool:
    """Tell whether its ranks are of one engine: a log may hold lines of several, of other days.

    A log names where the lines of each rank come from, engine first: `vLLM 0`, `SGLang TP1`.
    """
    sources = _at(trace, "sources")
    named = sources.values() if isinstance(sources, dict) else ()
    return len({str(name).partition(" ")[0] for name in named}) < 2


def is_client_side(trace: Trace) -> bool:
    """Tell whether only clients were recorded, as in a benchmark's result, and no engine."""
    return isinstance(_at(trace, "benchmarks"), list)


def max_num_seqs(trace: Trace) -> int | None:
    """How many requests can run at once: `max_num_seqs`, or slots where these are fewer."""
    known = [_number(trace, "engine", "max_num_seqs"), num_slots(trace)]
    return min((number for number in known if number), default=None)


def num_slots(trace: Trace) -> int | None:
    """How many slots there are to keep requests in, whether or not so many can run at once."""
    return _number(trace, "engine", "num_slots") or _number(trace, "layout", "num_slots") or None


def block_size(trace: Trace) -> int | None:
    """Tokens of a KV block."""
    return _number(trace, "engine", "block_size") or None


def page_size(trace: Trace) -> int | None:
    """Tokens of a page, where a pool is counted in tokens and handed out in pages (SGLang)."""
    size = _number(trace, "page_size") or _number(trace, "engine", "page_size")
    return size if size and size < MOST_OF_A_PAGE else None


def slot_bytes(trace: Trace) -> int | None:
    """Bytes of one slot in a buffer that holds all of them, one after the other."""
    tokens = _number(trace, "layout", "slot_tokens")
    token_bytes = _number(trace, "layout", "token_bytes")
    return tokens * token_bytes if tokens and token_bytes else None


def is_by_priority(trace: Trace) -> bool:
    """Tell whether the engine schedules by priority, as vLLM and SGLang declare it."""
    parts = ("scheduler", "engine", "server_args")
    policies = {
        _at(trace, part, "policy") for part in parts if _is_text(_at(trace, part, "policy"))
    }
    return "priority" in policies or any(
        _at(trace, part, "enable_priority_scheduling") is True for part in parts
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def mixes(trace: Trace) -> bool | None:
    """Tell whether prompts and decodes may be in one batch; None where the engine does not say."""
    said = _at(trace, "scheduler", "mixed")
    return said if isinstance(said, bool) else None


def decode_rounds(trace: Trace) -> int:
    """How many steps after one with prompts are left to decodes, as far as the engine says so."""
    return _number(trace, "scheduler", "decode_rounds") or 0


def max_passes(trace: Trace) -> int | None:
    """How often one who lacks KV blocks may be passed by those behind, where that is bounded."""
    return _number(trace, "scheduler", "max_passes")


def drafts_unmixed(trace: Trace) -> bool:
    """Tell whether the engine makes drafts, and is not to run them in mixed batches."""
    return bool(_number(trace, "scheduler", "mtp_k")) and refuses_mixed_drafts(trace)


def refuses_mixed_drafts(trace: Trace) -> bool:
    """Tell whether the engine is not to run drafts in mixed batches, as far as it says so."""
    return _at(trace, "engine", "refuses_mixed_drafts") is True


def refuses_mixed_tbo(trace: Trace) -> bool:
    """Tell whether the engine is not to halve mixed batches, as far as it says so."""
    return _at(trace, "engine", "refuses_mixed_tbo") is True


def computes_every_row(trace: Trace) -> bool:
    """Tell whether logits are computed of each row, of chunks that don't end their prompt as well,
    whose tokens are thrown away; as far as the engine says so.
    """
    return _at(trace, "engine", "logits_of_every_row") is True


def eos_token(trace: Trace) -> int | None:
    """The token that ends an output."""
    return _number(trace, "engine", "eos_token")


def declared_paths(trace: Trace) -> pl.DataFrame:
    """The code paths that are declared for prefill and decode, and for which widths.

    `config["declared_paths"]` has a list of names for each phase, or a map from names to lists of
    the widths (tokens of a batch) that each is for. Columns: phase, path, width (null where nothing
    is said of widths).
    """
    rows = [
        (phase, path, width)
        for phase in PHASES
        for path, widths in _named(_at(trace, "declared_paths", phase)).items()
        for width in _widths(widths)
    ]
    schema = {"phase": pl.String, "path": pl.String, "width": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)


def _number(trace: Trace, *keys: str) -> int | None:
    value = _at(trace, *keys)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 2**40 else None


def _at(trace: Trace, *keys: str) -> Any:
    value: Any = trace.manifest.config
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _named(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        value = {each: None for each in value if isinstance(each, str)}
    return value if isinstance(value, dict) else {}


def _widths(value: Any) -> list[int | None]:
    listed = value if isinstance(value, list) else []
    widths = [each for each in listed if isinstance(each, int) and 0 < each < 2**31]
    return [*widths] if widths else [None]
