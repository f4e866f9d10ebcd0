"""Faults in random configurations: in which of them one shows, and whether its rules find it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.engine.faults import FAULTS, Fault
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.matrix import FIRES
from tests.random_configurations import (
    shown_batches,
    shown_queues,
    shown_ranks,
    shown_requests,
)  # fmt: skip
from tests.random_configurations.draw import Configuration, of_fault
from tests.random_configurations.run import limited, recorded
from tests.random_configurations.tables import Tables

SHOWN: Mapping[str, shown_requests.Shown] = {
    **shown_requests.SHOWN, **shown_batches.SHOWN, **shown_ranks.SHOWN, **shown_queues.SHOWN,
}  # fmt: skip
TRIED = tuple(fault for fault in FAULTS if fault.executor is None)
"""Those that need no decoder: two are of the attention of `torch` alone."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A configuration in which a fault shows, and which rules fired."""

    configuration: Configuration
    fired: frozenset[str]

    @property
    def is_found(self) -> bool:
        """Whether one of the rules fired that are made for the fault."""
        return bool(self.fired & set(FIRES[self.configuration.fault or ""]))


def trials(fault: Fault, count: int, seed: int = 0, most: int = 400) -> list[Tried]:
    """The first `count` configurations, of at most so many, in which the fault shows."""
    return list(islice(_shown(fault, range(seed, seed + most)), count))


def _shown(fault: Fault, seeds: range) -> Iterator[Tried]:
    for seed in seeds:
        configuration = of_fault(fault, seed)
        with tempfile.TemporaryDirectory() as folder, limited(configuration):
            out = Path(folder) / "drawn.trace"
            try:
                recorded(configuration, out)
            except StepscopeError:  # the fault may break what the engine holds to
                continue
            trace = Trace.open(out)
            if SHOWN[fault.name](Tables(trace)) and not _shows_without(configuration, folder):
                fired = frozenset(each.code for each in check(trace).findings)
                yield Tried(configuration, fired)


def _shows_without(configuration: Configuration, folder: str) -> bool:
    """Whether the same is to be seen in the run without the fault: other settings do it, then."""
    out = Path(folder) / "sound.trace"
    try:
        recorded(configuration, out, with_fault=False)
    except StepscopeError:  # what the fault lets through is refused without it
        return False
    return SHOWN[configuration.fault or ""](Tables(Trace.open(out)))
