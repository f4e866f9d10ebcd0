"""Commands that a head gives its workers, and what the manifest declares of them."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.collectives import operations
from stepscope.ingest.trace import Trace

NUM_WORDS = 1 << 32
SLOT, ALLOCATE = "slot", "allocate"


def codebook(trace: Trace) -> dict[int, str]:
    """The words that are commands, by their value: `parallel.codebook` of the manifest's config.

    A word is a number, or text that is one (`0xfffffff0`). Empty where none is declared.
    """
    declared = _parallel(trace).get("codebook")
    words = declared.items() if isinstance(declared, dict) else ()
    values = {name: _number(word) for name, word in words}
    return {value: str(name) for name, value in values.items() if value is not None}


def num_slots(trace: Trace) -> int | None:
    """How many slots a worker has: `parallel.num_slots`, None where that is not declared."""
    declared = _number(_parallel(trace).get("num_slots"))
    return declared if declared and declared < NUM_WORDS else None


def commands(trace: Trace) -> pl.LazyFrame:
    """Commands for a slot as the workers received them, which is every rank but the first.

    Adds word: the slot as 32 bits carry it. What follows a command (`prefill: tokens`) and the
    collectives of the layers are not commands of their own.
    """
    is_said = (pl.col("kind") == "broadcast") & ~pl.col("command").str.contains(":", literal=True)
    head = pl.col("rank").min().over("group")
    return (
        operations(trace)
        .filter(pl.col("rank") > head)
        .filter(is_said, pl.col("slot").is_not_null())
        .with_columns(word=as_word("slot"))
    )


def as_word(column: str) -> pl.Expr:
    """A number as 32 bits carry it, read without a sign."""
    return pl.col(column).cast(pl.Int64) % NUM_WORDS


def _parallel(trace: Trace) -> dict[str, object]:
    declared = trace.manifest.config.get("parallel")
    return declared if isinstance(declared, dict) else {}


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        number = value if isinstance(value, int) else int(value[:18], 0)
    except ValueError:
        return None
    return number if 0 <= number < NUM_WORDS else None
