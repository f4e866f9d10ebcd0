"""A replay from a trace to what came of it; whoever can start a process does so in `Runner`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    trace: Trace, engine: str, settings: Mapping[str, Any], out: Path, runner: Runner
) -> Replay:
    """Replay every rank of a trace; `runner` runs a script in the engine's environment into `out`.

    Where requests are told and no steps, they are served on a clock that is computed. Raises
    `ConfigError` where the trace does not tell what a replay has to know.
    """
    asked = ranks_of(trace)
    if not asked:
        raise ConfigError("no request arrives in it", where=trace.name)
    config = config_of(engine, trace.manifest, settings, trace.name)
    ENGINES[engine].refuse_requests(trace)
    has_steps = trace.has("steps") and trace.has("batch_rows")
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
    ranks = tuple(
        RankReplay(
            rank, said[rank], compare(trace, replayed, rank) if has_steps else None, costs[rank]
        )
        for rank in said
    )
    return Replay(engine, trace, replayed, settings, ranks, served(trace, replayed, _judged(ranks)))


def _judged(ranks: tuple[RankReplay, ...]) -> frozenset[str] | None:
    """The requests that say how good the replay is: none that the costs were fitted to."""
    costs = ranks[0].costs if ranks else None
    return costs.held_out if isinstance(costs, ServedCosts) else None
