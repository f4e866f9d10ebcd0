"""What `record` and `replay` are given for a run of the reference engine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.given import given_twice
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.engine.executors.simulated import CostModel


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """Return what `--set KEY=VALUE` was given, by key; ConfigError for another form, or twice."""
    pairs = list(texts)
    for pair in pairs:
        if "=" not in pair:
            raise ConfigError(f"--set {pair}: not of the form key=value")
    if again := given_twice(pair.partition("=")[0] for pair in pairs):
        raise ConfigError(f"--set {again}=... is given more than once")
    return dict(pair.split("=", 1) for pair in pairs)


def cost_of(priced: Path | None) -> CostModel | None:
    """Return what steps cost by the trace `priced`, None without one; says how well it fits."""
    if priced is None:
        return None
    from stepscope.engine.executors.fit import fit
    from stepscope.ingest.trace import Trace

    found = fit(Trace.open(priced))
    click.echo(f"steps cost {found}", err=True)
    for doubt in found.doubts:
        click.echo(f"warning: {doubt}", err=True)
    return found.cost
