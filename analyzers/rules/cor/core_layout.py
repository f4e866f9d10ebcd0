"""Which core is what: the kind of each core, and the group that it belongs to.

A configuration that says so is believed: `device.core_types`, core by core, or `settings.groups`,
the number N of groups of the reference engine, of which group g holds the cores g, N + 2g and
N + 2g + 1. Without one, a core is what most of the blocks on it were built for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.rules.cor.occupancy import CORE, CORE_KIND, places
from stepscope.ingest.trace import Trace

MOST_CORES = 1 << 20
PLACE = ("core_kind", "group")
_COLUMNS = ("core", "true_core_kind", "true_group")
_SCHEMA = pl.Schema(zip(_COLUMNS, (pl.Int32(), CORE_KIND, pl.Int32()), strict=True))
Place = tuple[str, int]


def configured(trace: Trace) -> list[Place]:
    """The kind and group of each core by its number, as configured; empty when it is not said."""
    config = trace.manifest.config
    types = _entry(config, "device", "core_types")
    if isinstance(types, list) and types and all(kind in ("aic", "aiv") for kind in types):
        return _of_types(types)
    num_groups = _entry(config, "settings", "groups")
    if isinstance(num_groups, int) and 0 < num_groups <= MOST_CORES:
        return _of_types(["aic"] * num_groups + ["aiv", "aiv"] * num_groups)
    return []


def layout(trace: Trace) -> tuple[pl.LazyFrame, str]:
    """What each core is (true_core_kind, true_group) by rank and core, and how that is known.

    A core of which no majority of blocks agrees is left out, and so is one that the configuration
    does not have.
    """
    configuration = configured(trace)
    if configuration:
        rows = [(core, *place) for core, place in enumerate(configuration)]
        known = pl.LazyFrame(rows, schema=_SCHEMA, orient="row")
        return places(trace).select(CORE).unique().join(known, on="core"), "configuration"
    return _majority(places(trace)), "majority of blocks"


def _majority(places: pl.LazyFrame) -> pl.LazyFrame:
    return (
        places.drop_nulls(PLACE)
        .group_by(*CORE, *PLACE)
        .agg(pl.col("num_blocks").sum())
        .with_columns(share=pl.col("num_blocks") / pl.col("num_blocks").sum().over(CORE))
        .filter(pl.col("share") > 0.5)
        .select(*CORE, true_core_kind="core_kind", true_group="group")
    )


def _of_types(types: list[str]) -> list[Place]:
    """The AICs in order are groups 0, 1, ...; the AIVs in order are theirs, two by two."""
    seen = {"aic": 0, "aiv": 0}
    places: list[Place] = []
    for kind in types[:MOST_CORES]:
        number, seen[kind] = seen[kind], seen[kind] + 1
        places.append(("AIC", number) if kind == "aic" else (f"AIV{number % 2}", number // 2))
    return places


def _entry(config: Mapping[str, Any], section: str, name: str) -> Any:
    found = config.get(section)
    return found.get(name) if isinstance(found, Mapping) else None
