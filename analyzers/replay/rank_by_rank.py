"""A replay from a trace to what came of it; whoever can start a process does so in `Runner`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analyzers.replay.recorded_settings import ENGINES, config_of
from stepscope.analyzers.replay.same_decisions import Compared, compare
from stepscope.analyzers.replay.script_of import ranks_of, requests_and_calls
from stepscope.analyzers.replay.served import Served, served
from stepscope.analyzers.replay.served_costs import ServedCosts, fit_served
from stepscope.analyzers.replay.step_costs import FittedCosts, fit_costs
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.replay.script import Script
from stepscope.ingest.trace import Trace

Json = dict[str, Any]
Runner = Callable[[Script], Json]


@dataclass(frozen=True)
class RankReplay:
    """What came of the replay of a rank.

    `said` is what the engine's process told: the version and class of the scheduler, settings that
    it does not know, how many steps it followed and how many more it made. `compared` is None where
    no step was recorded. `costs` is None where they are too few to fit a model to.
    """

    rank: int
    said: Json
    compared: Compared | None
    costs: FittedCosts | ServedCosts | None


@dataclass(frozen=True)
class Replay:
    """A replay of a trace: each rank of it, and how requests were served in both runs."""

    engine: str
    recorded: Trace
    replayed: Trace
    settings: Mapping[str, Any]
    ranks: tuple[RankReplay, ...]
    served: Served

    @property
    def is_same(self) -> bool:
        """Whether no rank decided at any step otherwise than was recorded."""
        return all(each.compared is None or each.compared.divergence is None for each in self.ranks)


def replay(
    trace: Trace, engine: str, settings: Mapping[str, Any], out: Path, runner: Runner,
    ranks: Collection[int] = (),
) -> Replay:  # fmt: skip
    """Replay ranks of a trace, all of them where none is named; `runner` runs a script in the
    engine's environment into `out`.

    Where requests are told and no steps, they are served on a clock that is computed. Raises
    `ConfigError` where the trace does not tell what a replay has to know.
    """
    asked = _asked_for(trace, ranks)
    config = config_of(engine, trace.manifest, settings, trace.name)
    ENGINES[engine].refuse_requests(trace)
    has_steps = _has_steps(trace)
    said: dict[int, Json] = {}
    costs: dict[int, FittedCosts | ServedCosts | None] = {}
    for rank in asked:
        requests, calls = requests_and_calls(trace, rank, config)
        fitted = fit_costs(trace, rank) if has_steps else fit_served(trace)
        if fitted is None and not has_steps:
            raise ConfigError(
                "it has no steps, and too few requests with a recorded first and last token",
                where=trace.name, todo="record the engine itself, see docs/replay.md",
            )  # fmt: skip
        costs[rank] = fitted
        script = Script(engine, config, requests, calls, rank, fitted.costs if fitted else None)
        said[rank] = runner(script)
    replayed = Trace.open(out)
    found = tuple(
        RankReplay(
            rank, said[rank], compare(trace, replayed, rank) if has_steps else None, costs[rank]
        )
        for rank in said
    )
    return Replay(engine, trace, replayed, settings, found, served(trace, replayed, _judged(found)))


def _asked_for(trace: Trace, ranks: Collection[int]) -> list[int]:
    known = ranks_of(trace)
    if not known:
        raise ConfigError("no request arrives in it", where=trace.name)
    if gone := [str(each) for each in ranks if each not in known]:
        raise ConfigError(
            f"no request arrives at rank {', '.join(gone)}", where=trace.name,
            todo=f"its ranks are {', '.join(map(str, known))}",
        )  # fmt: skip
    return [each for each in known if not ranks or each in ranks]


def _has_steps(trace: Trace) -> bool:
    """Whether steps are told, with what was in them, and what came of them where anything did."""
    if not trace.has("steps"):
        return False
    gave = pl.col("event").is_in(["first-token", "finish"])
    has_given = not trace.lifecycle.filter(gave).head(1).collect().is_empty()
    needed = {"batch_rows": True, "outputs": has_given}
    lacking = [name for name, is_needed in needed.items() if is_needed and not trace.has(name)]
    if len(lacking) == 1:
        raise ConfigError(
            f"it has steps, but no {lacking[0]}, without which they cannot be made again",
            where=trace.name, todo="record the engine itself, see docs/replay.md",
        )  # fmt: skip
    return not lacking


def _judged(ranks: tuple[RankReplay, ...]) -> frozenset[str] | None:
    """The requests that say how good the replay is: none that the costs were fitted to."""
    costs = ranks[0].costs if ranks else None
    return costs.held_out if isinstance(costs, ServedCosts) else None
