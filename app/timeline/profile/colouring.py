"""Which spans have a colour by their name, and which by their state: the two ways to colour lanes.

Names have colours where many things are told apart by them alone: what a GPU executed; where none
is in the profile, what the threads of the CPU did; on core groups, the tasks. Everything else is
always in the colour of its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.analyzers.latency.kernel_kinds import kind_of
from stepscope.app import palette
from stepscope.app.timeline.lanes.lane import TABLES, placeable
from stepscope.app.timeline.lanes.texts_by_number import TextsByNumber, numbers
from stepscope.app.timeline.profile.top_names import TopName, state_by_name, top_names
from stepscope.app.timeline.span_index import Section
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.trace import Trace

Colours = Literal["name", "state"]
States = npt.NDArray[np.uint8]
OF_CPU = (
    "cpu_op", "user_annotation", "overhead", "operator", "cuda_runtime", "cuda_driver",
    "hip_runtime", "hip_driver", "hip_api", "runtime", "driver",
)  # fmt: skip
"""Categories of what a thread of the CPU does itself, in small letters."""
COLOURED = ("core groups", "GPU streams", "collectives", "CPU threads")
"""The sections whose spans can have a colour by their name."""
EXECUTED, OWN_TIME, BUSY = "what the GPU executed", "the CPU threads' own time", "the cores' work"


@dataclass(frozen=True, slots=True)
class Named:
    """Rows of `table` in the state of their name; the names that took most, and `share_of` what."""

    table: str
    rows: npt.NDArray[np.int64]
    states: States
    top: tuple[TopName, ...]
    share_of: str


def by_category(categories: TextsByNumber) -> States:
    """The state of spans by their category."""
    return categories.told(palette.shade)


def names_that_took_most(trace: Trace, executed: pl.DataFrame) -> Named:
    """The spans of a profile by their names: what a device executed, else what the CPU did.

    `executed` has the number (`ref`), name and dur_ns of the former.
    """
    if len(executed):
        return _named("spans", executed, EXECUTED)
    kind = pl.col("category").str.to_lowercase()
    own = _own_time(placeable(trace, "spans", "track")).filter(kind.is_in(OF_CPU))
    return _named("spans", own.select("ref", "name", dur_ns="own_ns").collect(), OWN_TIME)


def names_of_tasks(trace: Trace) -> Named:
    """The blocks of core groups by the names of their tasks."""
    key = ["rank", "task"]
    tasks = trace.tasks.select(*key, "name").unique(key, keep="first", maintain_order=True)
    dur_ns = pl.col("end_ns") - pl.col("ts_ns")
    blocks = placeable(trace, "core_spans", "core").select(*key, "ref", dur_ns=dur_ns)
    found = blocks.join(tasks, on=key, how="left", maintain_order="left")
    return _named("core_spans", found.select("ref", "name", "dur_ns").collect(), BUSY)


def kinds_of_executed(trace: Trace) -> tuple[npt.NDArray[np.int64], States]:
    """The rows that a device executed, in the state of what each was for."""
    ran = pl.col("category").str.to_lowercase().is_in(ON_DEVICE)
    kind = kind_of(pl.col("name").fill_null(""), pl.col("category"))
    state = kind.replace_strict(palette.OF_KINDS, return_dtype=pl.UInt8)
    found = placeable(trace, "spans", "track").filter(ran).select("ref", state=state).collect()
    return found["ref"].cast(pl.Int64).to_numpy(), found["state"].to_numpy()


def recoloured(
    trace: Trace, sections: Sequence[Section], colours: Colours
) -> tuple[list[Section], Named]:
    """Sections in the other colours than these, and the names that have one there."""
    if colours == "name":
        category = pl.col("category").fill_null("").cast(numbers())
        categories = TextsByNumber.of(trace.spans.select(category).collect()["category"])
        state = by_category(categories)
        rows, kinds = kinds_of_executed(trace)
        state[rows] = kinds
        none = Named("spans", rows[:0], kinds[:0], (), "")
        return [_in_states(each, "spans", state) for each in sections], none
    named = names_of_tasks(trace)
    state = np.zeros(trace.num_rows("core_spans"), np.uint8)
    state[named.rows] = named.states
    return [_in_states(each, "core_spans", state) for each in sections], named


def _in_states(section: Section, table: str, states: States) -> Section:
    """A section whose spans of a table have the states of their rows; who is held or idle stays."""
    index = section.index
    stays = np.isin(index.state, (palette.HELD, palette.IDLE))
    own = (index.table == TABLES.index(table)) & ~stays
    if section.name not in COLOURED or not own.any():
        return section
    state = index.state.copy()
    state[own] = states[index.ref[:][own]]
    return replace(section, index=index.recoloured(state))


def _own_time(rows: pl.LazyFrame) -> pl.LazyFrame:
    """With `own_ns`: how long a span took without what is nested in it directly."""
    key = ["rank", "span"]
    dur_ns = pl.col("dur_ns").fill_null(0).clip(0, 1 << 62)
    nested = rows.group_by("rank", span="parent").agg(nested_ns=dur_ns.cast(pl.Int128).sum())
    own = (dur_ns.cast(pl.Int128) - pl.col("nested_ns").fill_null(0)).clip(0)
    return rows.join(
        nested.drop_nulls("span"), on=key, how="left", maintain_order="left"
    ).with_columns(own_ns=own.cast(pl.Int64))


def _named(table: str, found: pl.DataFrame, share_of: str) -> Named:
    top = top_names(found)
    states = state_by_name(found["name"].unique().to_list(), top)
    state = found["name"].replace_strict(list(states), list(states.values()), return_dtype=pl.UInt8)
    rows = found["ref"].cast(pl.Int64).to_numpy()
    return Named(table, rows, state.to_numpy(), top, share_of if top else "")
